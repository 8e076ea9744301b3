"""`vgpu-webhook console`: how it starts, ends, and outlives what goes wrong around it."""

import os
import signal
import subprocess
import urllib.error
from pathlib import Path

import orjson
import pytest

from tests.console.conftest import PAGE
from tests.console.running import Running, running
from tests.questions import needs
from tests.server.program import COMMAND, until
from webhook.settings.sources import SAMPLES


def count(console: Running) -> int:
    found: int = orjson.loads(console.get("/api/v1/decisions"))["log"]["count"]
    return found


@needs("decisions")
@needs("doctor")
@needs("rules")
def test_it_follows_its_files_and_comes_back_when_its_worker_is_killed(tmp_path: Path):
    log, policy = tmp_path / "audit.jsonl", tmp_path / "policy.yaml"
    policy.write_text("rules: {card-count: warn}\n")
    with running("--audit-log", str(log), "--policy", str(policy)) as console:
        until(lambda: b"not there yet" in console.get("/health"))
        lines = (SAMPLES / "audit.jsonl").read_bytes().splitlines(keepends=True)
        log.write_bytes(lines[0])
        until(lambda: count(console) == 1)
        with log.open("ab") as file:
            file.write(b"\x00\xff binary\n" + lines[1] + lines[2][:50])
        until(lambda: count(console) == 2)
        until(lambda: b"not there yet" not in console.get("/health"))
        children = Path(f"/proc/{console.process.pid}/task/{console.process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        until(lambda: console.responds() and count(console) == 2)
        policy.write_text("rulse: {}\n")
        until(lambda: b"did you mean" in console.get("/health"))
        rules = {rule["id"]: rule["level"] for rule in orjson.loads(console.get("/api/v1/rules"))["rules"]}
        assert rules["card-count"] == "warn", "a bad file ends it only at the start"
        console.end()
    assert (console.process.returncode, console.responds()) == (0, False)


def test_a_console_on_all_addresses_prints_a_warning_and_keeps_its_port():
    with running("--without-password", "--allow-host", "console.example.org", bind="0.0.0.0") as console:
        assert console.get(PAGE, host="console.example.org") != b""
        with pytest.raises(urllib.error.HTTPError, match="421") as refused:
            console.get(PAGE, host="another.example.org")
        refused.value.close()
        command = [str(COMMAND), "console", "--bind", f"127.0.0.1:{console.port}"]
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "name another address with --bind" in second.stderr
        console.end(signal.SIGINT)
    assert (console.process.returncode, console.responds()) == (0, False)
    assert "it has no passwords" in console.errors
