"""Reviews follow the files of the settings; tests/settings/test_watcher.py has the cases."""

import json
import os
from pathlib import Path

from certs.pki import replace
from tests.server.conftest import Start
from tests.server.live import QUICK
from tests.server.program import until


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
