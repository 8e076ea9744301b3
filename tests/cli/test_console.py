"""`vgpu-webhook console`: how it starts, ends, and outlives what goes wrong around it."""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from tests import fork_server
from tests.console.conftest import PAGE
from tests.console.running import responds
from tests.questions import needs
from tests.server.program import COMMAND, free_port, until
from webhook.cli.main import main
from webhook.settings.sources import SAMPLES

Start = Callable[..., "Running"]


class Running:
    """A console in a process of its own."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port, self.process = port, process

    def get(self, path: str, host: str | None = None) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Host": host} if host else {})
        with urllib.request.urlopen(request) as answer:
            body: bytes = answer.read()
            return body

    def is_ready(self) -> bool:
        return responds(self.port)

    def count(self) -> int:
        found: int = orjson.loads(self.get("/api/v1/decisions"))["log"]["count"]
        return found


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[Running] = []

    def run(*options: str, bind: str = "127.0.0.1") -> Running:
        port = free_port()
        command = [str(COMMAND), "console", "--bind", f"{bind}:{port}", *options]
        found = Running(port, fork_server.Popen(command, stderr=subprocess.PIPE, text=True))
        running.append(found)
        until(found.is_ready)
        return found

    yield run
    for each in running:
        with each.process:
            each.process.kill()


@needs("decisions")
@needs("doctor")
@needs("rules")
def test_it_follows_its_files_and_comes_back_when_its_worker_is_killed(start: Start, tmp_path: Path):
    log, policy = tmp_path / "audit.jsonl", tmp_path / "policy.yaml"
    policy.write_text("rules: {card-count: warn}\n")
    console = start("--sample", "--audit-log", str(log), "--policy", str(policy))
    assert b"not there yet" in console.get("/health")
    lines = (SAMPLES / "audit.jsonl").read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0])
    until(lambda: console.count() == 1)
    with log.open("ab") as file:
        file.write(b"\x00\xff binary\n" + lines[1] + lines[2][:50])
    until(lambda: console.count() == 2)
    until(lambda: b"not there yet" not in console.get("/health"))
    children = Path(f"/proc/{console.process.pid}/task/{console.process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    until(lambda: console.is_ready() and console.count() == 2)
    policy.write_text("rulse: {}\n")
    until(lambda: b"did you mean" in console.get("/health"))
    rules = {rule["id"]: rule["level"] for rule in orjson.loads(console.get("/api/v1/rules"))["rules"]}
    assert rules["card-count"] == "warn", "a bad file ends it only at the start"
    ends(console, signal.SIGTERM)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--policy", "/no/such/file"], "/no/such/file: No such file or directory"),
        (["--bind", "127.0.0.1"], "give --bind HOST:PORT"),
        (["--cluster", "--kubeconfig", "/no/such/file"], "no credentials for the API server"),
        (["--sample", "--bind", "0.0.0.0:0"], "add --without-password if that is meant"),
    ],
)
def test_unusable_options_are_errors(options: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert main(["console", *options]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors


def ends(console: Running, number: signal.Signals) -> str:
    """Send a signal; returns what the console printed."""
    console.process.send_signal(number)
    _, errors = console.process.communicate()
    assert console.process.returncode == 0
    assert "Traceback" not in errors
    assert not console.is_ready()
    return errors


def test_a_console_on_all_addresses_prints_a_warning_and_keeps_its_port(start: Start):
    console = start("--sample", "--without-password", "--allow-host", "console.example.org", bind="0.0.0.0")
    assert console.get(PAGE, host="console.example.org") != b""
    with pytest.raises(urllib.error.HTTPError, match="421") as refused:
        console.get(PAGE, host="another.example.org")
    refused.value.close()
    command = [str(COMMAND), "console", "--bind", f"127.0.0.1:{console.port}"]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 2
    assert "name another address with --bind" in second.stderr
    assert "it has no passwords" in ends(console, signal.SIGINT)
