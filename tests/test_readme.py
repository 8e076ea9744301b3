"""The README is true: its commands run, what it prints is what they print, and its tables are what the code says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from webhook.observe.metrics import markdown
from webhook.policy import default_policy, parse_policy

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BEFORE, RULES, AFTER = re.split(r"<!-- (?:rules: .*?|end of rules) -->\n", README)
BIN = Path(sys.executable).parent


def blocks(language):
    """The blocks that were written by hand."""
    return re.findall(rf"^```{language}\n(.*?)^```$", BEFORE + AFTER, re.MULTILINE | re.DOTALL)


def run(command):
    program, *arguments = shlex.split(command)
    found = BIN / program
    command = [str(found) if found.exists() else program, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("block", blocks("console"))
def test_a_shown_command_prints_what_is_shown(block):
    command, _, shown = block.removeprefix("$ ").partition("\n")
    assert run(command).stdout == shown


def test_the_shown_refusal_is_what_the_webhook_says():
    shown = next(block for block in blocks("text") if block.startswith("Error from server"))
    printed = run("vgpu-webhook demo --once --port 0").stdout
    _, _, message = shown.partition("denied the request: ")  # kubectl goes on in the same line
    sentences = message.splitlines()[:-1]
    assert len(sentences) == 4
    assert all(sentence in printed for sentence in sentences)


def test_the_first_commands_are_targets_of_make():
    for line in blocks("sh")[0].splitlines() + next(b for b in blocks("text") if b.startswith("make")).splitlines():
        target = line.split()[1]
        assert run(f"make -n {target}").returncode == 0, target


def test_the_table_of_rules_is_generated():
    generated = run("vgpu-webhook rules -o markdown")
    assert generated.returncode == 0, generated.stderr
    assert generated.stdout == RULES, (
        "put what `vgpu-webhook rules -o markdown` prints between the README's `rules` markers"
    )


def test_the_shown_policy_is_the_default_policy():
    (shown,) = blocks("yaml")
    assert parse_policy(yaml.safe_load(shown), "README").digest == default_policy().digest


def test_the_options_of_serve_exist():
    line = next(
        line for block in blocks("text") for line in block.splitlines() if line.startswith("vgpu-webhook serve")
    )
    known = run("vgpu-webhook serve --help").stdout
    options = [word for word in shlex.split(line) if word.startswith("--")]
    assert options
    assert all(option in known for option in options)


def test_the_table_of_metrics_is_generated():
    table = re.search(r"<!-- metrics: .*? -->\n(.*?)<!-- end of metrics -->", README, re.DOTALL)[1]
    assert table == markdown(), (
        "put what webhook.observe.metrics.markdown() gives between the README's `metrics` markers"
    )
