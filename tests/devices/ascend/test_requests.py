"""The NPUs that a pod requests are read as the scheduler reads them."""

import pytest

from tests.devices.explaining import config_with_chips
from webhook import names
from webhook.devices.ascend.feasibility import is_hami_core, npu_requests
from webhook.devices.requests import DevicePod
from webhook.pod.view import PodView
from webhook.volcano.target import Target

MASTER = Target(volcano=(1, 16, 0))
WORDS = ("Ascend910B3", "Ascend310P")
B3, P = (f"huawei.com/{word}" for word in WORDS)
CONFIG = config_with_chips(*WORDS)


def requested(*limits, **others):
    kinds = {"containers": limits, **others}
    spec = {kind: [{"resources": {"limits": each}} for each in group] for kind, group in kinds.items()}
    requests = npu_requests(DevicePod(PodView({"spec": spec}), CONFIG), CONFIG.ascend, MASTER)
    return [
        (request.container.index, request.chip.word, request.number, request.memory, request.cores, request.usable)
        for request in requests
    ]


@pytest.mark.parametrize(
    "limits, expected",
    [
        ({B3: "2", f"{B3}-memory": "4k", f"{B3}-core": "50"}, [(0, "Ascend910B3", 2, 4000, 50, True)]),
        ({B3: "2"}, [(0, "Ascend910B3", 2, None, 0, True)]),
        ({f"{B3}-memory": "4000"}, [(0, "Ascend910B3", 1, 4000, 0, True)]),
        ({B3: "1", f"{B3}-memory": "0"}, [(0, "Ascend910B3", 1, None, 0, True)]),  # 0 is all of it
        ({f"{B3}-core": "50"}, []),  # the scheduler ignores it
        ({B3: "1", f"{B3}-memory": "4.5"}, [(0, "Ascend910B3", 1, None, 0, False)]),
        ({B3: "0"}, [(0, "Ascend910B3", 1, None, 0, False)]),
        ({B3: "1", P: "1"}, [(0, "Ascend910B3", 1, None, 0, True), (0, "Ascend310P", 1, None, 0, True)]),
        ({"cpu": "1"}, []),
    ],
)
def test_the_request_of_a_container_is_read(limits, expected):
    assert requested(limits) == expected


def test_only_regular_containers_are_served_in_their_order():
    assert requested(
        {B3: "1"}, {"cpu": "1"}, {B3: "2"}, initContainers=[{B3: "4"}], ephemeralContainers=[{B3: "5"}]
    ) == [(0, "Ascend910B3", 1, None, 0, True), (2, "Ascend910B3", 2, None, 0, True)]


@pytest.mark.parametrize(
    "text, expected", [("hami-core", True), ("Hami-Core", False), (" hami-core", False), ("", False)]
)
def test_the_mode_is_compared_exactly(text, expected):
    assert is_hami_core(PodView({"metadata": {"annotations": {names.VNPU_MODE: text}}})) is expected
