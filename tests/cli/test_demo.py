"""What `make run` shows: three pods, and a webhook that serves on until Ctrl-C."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.questions import needs
from tests.server.program import free_port, until
from webhook.cli.demo import listening

PROGRAM = Path(sys.executable).parent / "vgpu-webhook"


@pytest.fixture
def demo():
    process = subprocess.Popen(
        [PROGRAM, "demo", "--port", str(free_port()), "--console-port", str(free_port())],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.terminate()
    process.communicate()


def read_until(process, wanted):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if wanted in line:
            return "".join(lines)
    pytest.fail("the demo ended early:\n" + "".join(lines) + process.stderr.read())


def console_of(shown):
    return re.search(r"The console: (http://localhost:\d+)", shown)[1]


def fetched(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def decided(console):
    decisions = json.loads(fetched(f"{console}/api/v1/decisions"))["entries"]
    return {decision["name"] for decision in decisions}


def child(demo, command):
    """The process of one of the two that the demo started."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(demo.pid)], capture_output=True, text=True, check=True
    )
    (found,) = [line.split()[0] for line in listed.stdout.splitlines() if f"-m webhook {command}" in line]
    return int(found)


def running(processes):
    return [number for number in processes if Path(f"/proc/{number}").exists()]


@needs("decisions")
@needs("review")
@needs("rules")
def test_three_pods_are_shown_and_the_webhook_serves_until_interrupted(demo):
    shown = read_until(demo, "Press Ctrl-C to stop")
    repaired, warned, refused = re.split(r"\n(?=[123]  webhook/samples)", shown)[1:]
    assert "+   schedulerName: volcano" in repaired
    assert "pod/notebook created" in repaired
    assert "Warning: percentage-to-memory" in warned
    assert "pod/inference created" in warned
    assert "Error from server (Forbidden)" in refused
    for rule in ("cores-range", "mode-invalid", "isolation-env", "card-count"):
        assert f"{rule}: " in refused
    ca, url = re.search(r"curl --cacert (\S+) (https://\S+)/metrics", shown).groups()
    with urllib.request.urlopen(f"{url}/metrics", context=ssl.create_default_context(cafile=ca)) as answer:
        assert b"vgpu_webhook_requests_total" in answer.read()
    console = console_of(shown)
    until(lambda: decided(console) == {"notebook", "inference", "training"})  # once it has read the log
    offered = re.findall(r"^  (.*vgpu-webhook (?:review|rules).*?)   #", shown, re.MULTILINE)
    assert len(offered) == 2
    for command in offered:
        ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert ran.returncode in (0, 1), ran.stderr
        assert ran.stdout
    children = [child(demo, "serve"), child(demo, "console")]
    # A closed terminal; a user presses Ctrl-C again and again.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGINT):
        demo.send_signal(number)
        time.sleep(0.05)
    assert demo.wait() == 0
    assert "Traceback" not in demo.stderr.read()
    assert not Path(ca).exists()
    assert running(children) == []


def test_a_port_that_is_taken_is_named(capsys):
    with listening(0, "--port") as taken:
        wanted = taken.getsockname()[1]
        with listening(wanted, "--console-port") as other:
            found = other.getsockname()[1]
    assert found != wanted
    assert capsys.readouterr().err == (
        f"warning: port {wanted} is in use or not allowed; port {found} is used instead: choose with --console-port\n"
    )


@pytest.mark.parametrize(
    ("killed", "name", "other"), [("serve", "webhook", "console"), ("console", "console", "serve")]
)
def test_the_end_of_one_process_ends_the_other(demo, killed, name, other):
    read_until(demo, "Press Ctrl-C to stop")
    left = child(demo, other)
    os.kill(child(demo, killed), signal.SIGKILL)
    assert demo.wait() == 2
    assert f"error: the {name} exited unexpectedly:" in demo.stderr.read()
    assert running([left]) == []
