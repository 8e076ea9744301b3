"""The commands that the documentation shows, run as a reader would run them.

A block of language `console` is a command with its output, one of language `sh` is commands. A comment in the line before a
block gives the expected exit code (`exits with 1`), the e2e tests that run it on a cluster (`needs a cluster: FILE::TEST …`),
the values with which the chart does the same (`as the chart with: …`, which tests/deploy/test_chart.py compares), or the reason
why no test runs it (`not run here: …`).
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.docs.markdown import Block

ROOT = Path(__file__).parents[2]
README, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
PAGES = [README, CHINESE, *sorted((ROOT / "docs").glob("*.md"))]
TRANSLATIONS = [
    file for file in PAGES if file.name.endswith(".zh-CN.md")
]  # their blocks are those of the English pages
ENGLISH = [file for file in PAGES if file not in TRANSLATIONS]
SAMPLES = ROOT / "webhook" / "samples"
BIN = Path(sys.executable).parent
AS_THE_CHART = "as the chart with: "  # before a patch: the values that it does the same as
NOT_INHERITED = ("COLUMNS", "KUBECONFIG")  # by the commands

# Files that a reader has created with the commands of other pages.
FILES = {
    "fleet.yaml": SAMPLES / "fleet.yaml",
    "device-config.yaml": SAMPLES / "device-config.yaml",
    "policy.yaml": SAMPLES / "policy.yaml",
    "pod.yaml": SAMPLES / "pod-repaired.yaml",
    "audit.jsonl": SAMPLES / "audit.jsonl",
}

_CONSOLE = re.compile(r"(?<=^```console\n)\$ (?P<command>[^\n]*\n)(?P<output>.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def is_curl(block: Block) -> bool:
    """Whether a block needs a running console; tests/docs/test_console.py starts one."""
    return block.text.startswith("$ curl ")


def elsewhere(block: Block) -> bool:
    """Whether a block is marked as not run here."""
    return block.comment.startswith(("needs a cluster: ", "not run here: "))


def exit_code(block: Block) -> int:
    """The exit code that a block is marked with."""
    match = re.fullmatch(r"exits with (\d)", block.comment)
    return int(match[1]) if match else 0


def make_checkout(directory: Path) -> Path:
    """A directory like a checkout after `make`; what a command writes there does not change the project."""
    for entry in ROOT.iterdir():
        if entry.name not in (".git", ".venv"):
            (directory / entry.name).symlink_to(entry)
    (directory / ".venv").symlink_to(BIN.parent)
    for name, file in FILES.items():
        (directory / name).write_bytes(file.read_bytes())
    return directory


def run(
    script: str, checkout: Path, binaries: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of bash in a checkout, with the commands of this Python environment and of `binaries` on the PATH."""
    inherited = {key: value for key, value in os.environ.items() if key not in NOT_INHERITED}
    path = os.pathsep.join(map(str, filter(None, (BIN, binaries, inherited["PATH"]))))
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=checkout,
        env=inherited | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def renew_outputs(page: str, output: Callable[[str], str]) -> str:
    """The page with other outputs of the commands in its `console` blocks."""
    return _CONSOLE.sub(lambda match: f"$ {match['command']}{output(match['command'])}", page)
