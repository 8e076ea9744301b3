"""Verdicts equal those of the scheduler's own allocation code."""

import json
from pathlib import Path

from tests.cases import each_case
from tests.devices.explaining import fleet_of
from webhook.devices.config_file import parse_device_config
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, FitsTightly, Never
from webhook.devices.vgpu.eligibility import read_constraints
from webhook.devices.vgpu.feasibility import judge, slice_request
from webhook.pod.view import PodView
from webhook.volcano.target import Target

CASES = Path(__file__).parents[2] / "data" / "oracle" / "cases.jsonl"
MASTER = Target(volcano=(1, 16, 0))


@each_case("recorded", map(json.loads, CASES.read_text().splitlines()), ids=lambda recorded: recorded["id"])
def test_verdicts_equal_those_of_the_scheduler(recorded):
    config = parse_device_config(recorded["deviceConfig"], "oracle")
    built = fleet_of(*recorded["nodes"], config=config, target=MASTER).vgpu
    verdicts = {"allow": Fits, "either": FitsTightly, "deny": Never}
    for case in recorded["cases"]:
        view = PodView(case["pod"])
        request = slice_request(DevicePod(view, config).slices, read_constraints(view, MASTER), MASTER)
        assert type(judge(request, built)) is verdicts[case["expect"]], case["why"]
