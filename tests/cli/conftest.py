"""Run commands as a user does, and make small pods for them."""

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.questions import is_removed
from webhook.cli.main import COMMANDS, main
from webhook.rules.registry import DEFAULT_LEVELS

DATA = Path(__file__).parent.parent / "data"
FLEETS = DATA / "fleets"
REVIEWS = DATA / "reviews"
CONFIG = DATA / "config" / "device-config.yaml"


def there(cases: Iterable[Any]) -> list[Any]:
    """The cases of the commands that there are: a question may be gone. A case is a command's words, or begins with them."""
    return [case for case in cases if (case[0] if isinstance(case[0], str) else case[0][0]) in COMMANDS]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process, or skip the test if it is removed. What it does to logging ends with the test."""
    monkeypatch.setattr(logging.root, "handlers", [])
    before = logging.root.level
    logging.root.setLevel(logging.WARNING)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*argv: object, stdin: bytes | None = None) -> Result:
        if argv and is_removed(str(argv[0])):
            pytest.skip(f"`{argv[0]}` is removed")
        with ExitStack() as input_given:
            if stdin is not None:
                monkeypatch.setattr(sys, "stdin", input_given.enter_context(_standard_input(stdin)))
            code = main([str(argument) for argument in argv])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    yield run
    logging.root.setLevel(before)


@contextmanager
def _standard_input(content: bytes) -> Iterator[TextIO]:
    before = os.dup(0)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        os.dup2(file.fileno(), 0)
    try:
        with open(0, closefd=False) as stream:
            yield stream
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture
def write(tmp_path):
    """Write a file: text as it is, other documents as JSON, which is also YAML."""

    def write(name: str, *documents: Any) -> Path:
        path = tmp_path / name
        texts = [d if isinstance(d, str) else json.dumps(d, ensure_ascii=False) for d in documents]
        path.write_text("\n---\n".join(texts), encoding="utf-8")
        return path

    return write


def only_rules(*rules: str) -> dict[str, Any]:
    """The policy for a test that is about these checks, some as `ID=LEVEL`: what a new rule finds changes nothing."""
    levels = dict(rule.partition("=")[::2] for rule in rules)
    assert levels.keys() <= DEFAULT_LEVELS.keys()
    given = {rule: level for rule, level in levels.items() if level}
    return {"rules": {rule: "off" for rule in DEFAULT_LEVELS if rule not in levels} | given}


@pytest.fixture
def only(tmp_path_factory):
    """The options of a command that makes these checks alone."""

    def only(*rules: str) -> tuple[str, Path]:
        path = tmp_path_factory.mktemp("only") / "policy.yaml"
        path.write_text(json.dumps(only_rules(*rules)))
        return "--policy", path

    return only


def shell(*argv: object, stdin: bytes = b"", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "webhook.cli.main", *map(str, argv)],
        input=stdin,
        capture_output=True,
        env=env,
        check=False,
    )


def python(code: str, *argv: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | (env or {}),
    )


def pod(name: str = "train", *, limits: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A pod of one container, which already has what the webhook would add."""
    container = {"name": "main", "image": "cuda"}
    if limits is not None:
        container["resources"] = {"limits": limits, "requests": limits}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | fields.pop("metadata", {}),
        "spec": {
            "schedulerName": "volcano",
            "containers": [container],
            "tolerations": [{"key": "volcano.sh/vgpu", "operator": "Exists", "effect": "NoSchedule"}],
        }
        | fields,
    }


def vgpus(number: int, memory: int | None = None, cores: int | None = None) -> dict[str, str]:
    amounts = {"vgpu-number": number, "vgpu-memory": memory, "vgpu-cores": cores}
    return {f"volcano.sh/{name}": str(amount) for name, amount in amounts.items() if amount is not None}
