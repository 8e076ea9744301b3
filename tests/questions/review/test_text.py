"""Text output: verdicts, diffs, colour."""

import sys
from io import BytesIO, TextIOWrapper

import pytest

from tests.cli.conftest import pod, vgpus
from tests.cli.test_terminal import TerminalStream

# --- colour ---------------------------------------------------------------------------------------------------------


def test_colour_in_a_pipe(run, write, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31mREFUSED " in run("review", write("pod.yaml", pod(limits=vgpus(1, 1, 101)))).out


@pytest.mark.parametrize("environment, coloured", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_and_wrapped_lines(environment, coloured, run, write, monkeypatch):
    for name, value in ({"COLUMNS": "60", "TERM": "xterm"} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal := TerminalStream())
    run("review", path := write("pod.yaml", pod(limits=vgpus(1, 1, 101))))
    out = terminal.getvalue()
    assert ("\x1b" in out) is coloured
    message = out[out.index("cores-range") : out.index(f"at {path}:1:")]
    assert message.count("\n") > 1
    assert all(len(line) <= 60 for line in message.splitlines()[1:])


def test_output_without_utf_8_has_escaped_names(run, write, monkeypatch):
    monkeypatch.setattr(sys, "stdout", ascii_only := TextIOWrapper(BytesIO(), "ascii"))
    assert run("review", write("p.yaml", pod("训练"))).code == 0
    ascii_only.seek(0)
    assert "Pod \\u8bad\\u7ec3 in default" in ascii_only.read()
