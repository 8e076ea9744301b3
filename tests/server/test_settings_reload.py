"""Reviews follow the files of the settings; tests/settings/test_watcher.py has the cases."""

import json
import os
from pathlib import Path

from certs.pki import replace
from tests.server.conftest import Start
from tests.server.live import QUICK
from tests.server.program import DATA, until
from tests.server.reviews import DENIED, admission_response, denying_rules, patch, review


def test_a_key_of_the_policy_forges_no_line(start: Start, tmp_path: Path):
    policy = tmp_path / os.fsdecode(b"p\xff")
    policy.write_text("{}")
    program = start("--policy", str(policy), "--audit-log", "", "--log-format", "json", pace=QUICK)
    replace(policy, rb'"x\nERROR forged\u001b[31m": 1', 0o644)
    page = until(lambda: "last good" in (text := program.readyz()) and text)
    assert r"p\udcff: " in page
    assert r"x\nERROR forged\x1b[31m" in page
    logged = [json.loads(line)["message"] for line in program.log().splitlines()]
    assert any("policy changed, but cannot be used" in message and r"p\udcff: " in message for message in logged)


def test_reviews_follow_the_policy_and_a_broken_one_is_reported_and_not_used(start: Start, tmp_path: Path):
    policy, fleet = tmp_path / "policy", DATA / "fleets" / "mixed.yaml"
    policy.write_text("{}")
    options = ("--policy", str(policy), "--fleet", str(fleet), "--audit-log", "")
    program = start(*options, pace=QUICK)

    def write(text: str) -> None:
        """Replace the file at once, so that the server never reads half of it."""
        replace(policy, text.encode(), 0o644)

    def denied() -> bool:
        return "cores-range" in denying_rules(admission_response(program.post("/validate", review(spec=DENIED))))

    def scheduler() -> str:
        operations = patch(admission_response(program.post("/mutate", review())))
        return next((op["value"] for op in operations if op["path"] == "/spec/schedulerName"), "")

    assert (denied(), scheduler()) == (True, "volcano")
    write("schedulerName: other\nschedulerNames: [other]")
    until(lambda: scheduler() == "other")
    write("rules: {no-such-rule: deny}")
    page = until(lambda: "last good" in (text := program.readyz()) and text)
    assert page.startswith("ready\n")
    assert str(policy) in page
    assert program.metric("config_reloads_total", source="policy", result="failure") == 1
    assert program.metric("fleet_nodes") > 0
    assert (denied(), scheduler()) == (True, "other")
    assert f"ERROR policy changed, but cannot be used: {policy}" in program.log()
    write("rules: {cores-range: off}")
    until(lambda: not denied())
    assert "last good" not in program.readyz()
    assert program.metric("config_reloads_total", source="policy", result="success") == 2
    assert "Traceback" not in program.log()
