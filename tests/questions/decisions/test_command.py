"""`vgpu-webhook decisions`: its filters, output formats, exit codes and errors."""

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from tests.audit import sample
from tests.cli.rows import rows
from tests.server.program import until
from webhook.cli.terminal import MAX_CELL
from webhook.settings.sources import SAMPLES

SAMPLE = SAMPLES / "audit.jsonl"
LINES = SAMPLE.read_bytes().splitlines(keepends=True)
# As a policy with `enforcement: audit` would record it.
OBSERVED = "".join([json.dumps({**json.loads(line), "allowed": True, "enforcement": "audit"}) + "\n" for line in LINES])

test_command = rows(__file__, sample=b"".join(sample.lines(sample.POLICY)).decode(), observed=OBSERVED)


def test_json_prints_the_lines_of_the_log(run):
    result = run("decisions", "-o", "json", "--endpoint", "validate", SAMPLE)
    assert result.lines == [line for line in map(json.loads, LINES) if line["endpoint"] == "validate"]


def test_a_decision_is_shown_with_its_mutation(run):
    repaired, refused = [json.loads(line) for line in LINES[:2]]
    result = run("decisions", "--id", refused["id"], SAMPLE)
    assert (result.code, result.err) == (0, "")
    assert all(text in result.out for text in (refused["id"], repaired["id"], "anna@example.org", "not verified"))
    assert all(finding["message"] in " ".join(result.out.split()) for finding in refused["findings"])
    assert run("decisions", "-o", "json", "--id", repaired["id"], SAMPLE).lines == [repaired, refused]


def test_ascii_output_prints_numbers_instead_of_bars(run, monkeypatch):
    monkeypatch.setattr(sys, "stdout", ascii_only := TextIOWrapper(BytesIO(), "ascii"))
    assert run("decisions", "--summary", SAMPLE).code == 0
    ascii_only.seek(0)
    assert "1 3" in ascii_only.readlines()[4]


def test_skipped_lines_are_counted(run, tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"started\n" + b"".join(LINES) + LINES[0][:80])
    result = run("decisions", log)
    assert (result.code, result.err) == (0, "warning: lines skipped: 1 foreign, 1 cut off at the end\n")
    assert len(result.out.splitlines()) == 17


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("name", [["-"], []])
def test_standard_input(run, compress: Any, name: list[str]):
    result = run("decisions", "-o", "json", *name, stdin=compress(b"".join(LINES)))
    assert (len(result.lines), result.code, result.err) == (16, 0, "")


@pytest.mark.parametrize("options", [[], ["--summary"], ["-o", "json"], ["--summary", "-o", "json"]])
def test_hostile_names_are_shown_escaped(run, tmp_path: Path, options: list[str]):
    log = tmp_path / "log"
    hostile = "\x1b[2J\u202eevil\n" + "x" * 3000
    record = json.loads(LINES[1])
    names = dict.fromkeys(("id", "uid", "user", "namespace", "kind", "name", "operation"), hostile)
    record["findings"][0] |= {"rule": hostile, "message": hostile, "path": hostile}
    log.write_text(json.dumps({**record, **names}) + "\n")
    result = run("decisions", *options, log)
    assert result.code == 0
    assert "evil" in result.out
    assert all(line.isprintable() or set(line) & set("▃█") for line in result.out.splitlines())
    if "json" not in options:
        assert max(map(len, result.out.splitlines())) < 6 * MAX_CELL


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Follow the file `log` with output to `out`. The process handles SIGINT even if the tests ignore it."""
    handle_sigint = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with ExitStack() as running:

        def start(*options: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "webhook", "decisions", "--follow", *options, str(tmp_path / "log")]
            out = running.enter_context((tmp_path / "out").open("wb"))
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, preexec_fn=handle_sigint)  # noqa: PLW1509
            running.enter_context(process)
            running.callback(process.kill)
            return process

        yield start


def stopped(process: subprocess.Popen[bytes]) -> bytes:
    """What it wrote to standard error, once it is interrupted."""
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 130
    return errors


def test_following(tmp_path: Path, follow: Callable[..., subprocess.Popen[bytes]]):
    log, out = tmp_path / "log", tmp_path / "out"
    log.write_bytes(LINES[0])
    process = follow("--refused", "-o", "json")

    def write(line: bytes) -> bool:
        with log.open("ab") as file:
            file.write(line)
        return bool(out.read_bytes())

    until(lambda: write(LINES[1]))  # the command may not have started yet
    log.rename(tmp_path / "log.1")
    log.write_bytes(LINES[2] + LINES[7])
    until(lambda: b"card-count" in out.read_bytes().splitlines()[-1] and b'"Pod","name":"nine"' in out.read_bytes())
    assert stopped(process) == b""
    assert {json.loads(line)["allowed"] for line in out.read_bytes().splitlines()} == {False}


def test_following_with_an_age_lists_earlier_decisions_too(tmp_path: Path, follow: Callable[..., Any]):
    log, out = tmp_path / "log", tmp_path / "out"
    (tmp_path / "log.2.gz").write_bytes(b"\x1f\x8b\x08 damaged")
    (tmp_path / "log.1").write_bytes(b"".join(LINES[:3]))
    log.write_bytes(b"".join(LINES[3:5]))
    process = follow("--since", "2026-11-20", "-o", "json")
    until(lambda: out.read_bytes().splitlines(keepends=True) == LINES[:5])
    with log.open("ab") as file:
        file.write(LINES[5])
    until(lambda: out.read_bytes().splitlines(keepends=True) == LINES[:6])
    (error,) = stopped(process).decode().splitlines()
    assert "log.2.gz: " in error
