"""Bad input of each command: one line that names the problem and what to do, and exit code 2."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import each_case
from tests.cli.conftest import pod, there
from tests.cli.rows import INTERNAL_WORDS
from webhook.cli.main import COMMANDS


@pytest.fixture(params=[b"a: [\n", None], ids=["not YAML", "a directory"])
def bad(request, tmp_path) -> Path:
    path = tmp_path / "bad"
    path.mkdir() if request.param is None else path.write_bytes(request.param)
    return path


def error_line(result) -> str:
    assert result.code == 2
    lines = result.err.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    assert INTERNAL_WORDS.search(lines[0]) is None, lines[0]
    return lines[0]


@pytest.mark.parametrize(
    "command",
    there(
        [
            ["review"],
            ["review", "good", "--policy"],
            ["review", "good", "--device-config"],
            ["review", "good", "--fleet"],
            ["scan"],
            ["scan", "good", "--policy"],
            ["scan", "--kubeconfig"],
            ["policy", "check"],
            ["manifests", "--policy"],
            ["manifests", "--device-config"],
            ["replay", "good", "--policy"],
            ["doctor", "--from", ".", "--policy"],
            ["doctor", "--kubeconfig"],
            ["serve", "--standalone", "--policy"],
            ["console", "--sample", "--policy"],
        ]
    ),
    ids=" ".join,
)
def test_files_that_cannot_be_read(command, bad, run, write, monkeypatch):
    monkeypatch.chdir(write("good", pod()).parent)
    line = error_line(run(*command, bad))
    assert "bad: " in line


@pytest.mark.parametrize(
    "command", there([["review"], ["policy", "check"], ["scan"], ["manifests", "--policy"]]), ids=" ".join
)
def test_a_file_that_may_not_be_opened(command, run, tmp_path, monkeypatch):
    original = Path.open

    def refuse(path, *args, **more):
        if path.name == "x":
            raise PermissionError(13, "Permission denied", str(path))
        return original(path, *args, **more)

    monkeypatch.setattr(Path, "open", refuse)
    assert "x: Permission denied; let this user read it" in error_line(run(*command, tmp_path / "x"))


@each_case("command", COMMANDS)
def test_a_mistyped_command(command, run):
    message = error_line(run(f"{command}e"))
    assert message.startswith(f"error: no such command '{command}e'. ")
    assert f"'{command}'" in message


@each_case("command", COMMANDS)
@each_case("argument", ["--no-such-option", "--port=99999999999999999999", "--policy", "\x1b[31m"])
def test_a_mistake_is_one_line_in_every_command(command, argument, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "\x1b" not in error_line(run(command, argument, "--also"))


@pytest.mark.parametrize(("command", "shown"), [("review -o json", r"a\udcff.yaml"), ("scan -o sarif", "a%FF.yaml")])
def test_the_name_of_a_file_is_no_utf_8(command, shown, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path(os.fsdecode(b"a\xff.yaml")).write_text(json.dumps(pod(limits={"volcano.sh/vgpu-cores": "200"})))
    result = run(*command.split(), ".")
    assert (result.code, shown in result.out) == (1, True)


SAMPLES = "webhook/samples"
REPORTS = [  # commands that handle errors of their input files, and some that read no file
    f"review {SAMPLES}/pod-refused.yaml",
    f"scan {SAMPLES}/pod-refused.yaml",
    f"decisions {SAMPLES}/audit.jsonl",
    f"replay {SAMPLES}/audit.jsonl",
    "rules",
    f"doctor --from {SAMPLES}/cluster",
    "manifests",
]


@pytest.mark.parametrize("command", there(each.split() for each in REPORTS), ids=" ".join)
def test_a_full_disk(command, run, monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        result = run(*command)
    assert result.code == 2
    *_, last = result.err.splitlines()
    assert last == "error: cannot write the report: No space left on device"
    assert INTERNAL_WORDS.search(result.err) is None


@pytest.mark.parametrize(
    "command", ["manifests --policy - <&-", "manifests >&-", "manifests >&- 2>&-", "manifests | head -c 1"]
)
def test_a_stream_is_closed(command):
    script = f"{sys.executable} -m webhook.cli.main {command}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert INTERNAL_WORDS.search(result.stderr.decode()) is None
