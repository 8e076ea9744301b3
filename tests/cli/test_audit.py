"""`vgpu-webhook audit` as a user runs it."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import shell
from tests.server.program import until
from webhook.render.terminal import MAX_CELL
from webhook.settings.files import SAMPLES
from webhook.texts import legible

SAMPLE = SAMPLES / "audit.jsonl"
LINES = SAMPLE.read_bytes().splitlines(keepends=True)


def test_a_table(run):
    ran = run("audit", "--denied", "--user", "anna*", SAMPLE)
    assert (ran.code, ran.err) == (0, "")
    head, row = ran.out.splitlines()
    assert head.split() == ["TIME", "ENDPOINT", "OUTCOME", "NAMESPACE", "OBJECT", "USER", "RULES"]
    assert row.split()[:3] == ["2026-11-20", "08:04:00", "validate"]
    assert row.endswith("cores-range, mode-invalid, isolation-env, card-count")
    assert row.index("denied") == head.index("OUTCOME")


def test_json_is_what_the_log_has(run):
    ran = run("audit", "-o", "json", "--endpoint", "validate", SAMPLE)
    assert ran.lines == [line for line in map(json.loads, LINES) if line["endpoint"] == "validate"]


@pytest.mark.parametrize(
    "options, count",
    [
        ([], 16),
        (["--since", "2026-11-20T10:00"], 2),
        (["--until", "2026-11-20T08:09"], 2),
        (["--rule", "card-*", "--rule", "host-access"], 5),
        (["-n", "*-speech", "--endpoint", "mutate"], 3),
        (["--dry-run"], 0),
        (["--no-dry-run", "--denied"], 4),
        (["--outcome", "warned", "--outcome", "denied"], 5),
        (["--outcome", "would-be-denied"], 0),
        (["--name", "nine*", "--name", "debug"], 8),
    ],
)
def test_filters(run, options: list[str], count: int):
    assert len(run("audit", "-o", "json", *options, SAMPLE).lines) == count


@pytest.mark.parametrize("command", ["audit", "replay"])
@pytest.mark.parametrize(
    ("glob", "hint"), [("card-cout", "did you mean 'card-count'?"), ("?", "`vgpu-webhook rules` lists them")]
)
def test_a_filter_that_names_no_rule_is_refused(run, command: str, glob: str, hint: str):
    ran = run(command, "--rule", glob, SAMPLE)
    assert ran.code == 2
    assert f"'--rule': no rule is called {glob!r}; {hint}" in ran.err


def test_a_decision_is_looked_up_with_the_repair_before_it(run):
    mutated, denied = [json.loads(line) for line in LINES[:2]]
    ran = run("audit", "--id", denied["id"], SAMPLE)
    assert (ran.code, ran.err) == (0, "")
    assert all(text in ran.out for text in (denied["id"], mutated["id"], "anna@example.org", "not verified"))
    assert all(finding["message"] in " ".join(ran.out.split()) for finding in denied["findings"])
    assert run("audit", "-o", "json", "--id", mutated["id"], SAMPLE).lines == [mutated, denied]


def test_every_decision_is_found_by_its_id_with_its_pair(run):
    for place, line in enumerate(map(json.loads, LINES)):
        found = run("audit", "-o", "json", "--id", line["id"], SAMPLE).lines
        assert found == [json.loads(each) for each in LINES[place // 2 * 2 :][:2]]


def test_an_id_that_is_not_there(run):
    ran = run("audit", "--id", "000000000000", SAMPLE)
    assert (ran.code, ran.out) == (1, "")
    assert "no decision has the id 000000000000" in ran.err
    for options in (["--id", "nonsense"], ["--id", "0" * 12, "--denied"], ["--id", "0" * 12, "--summary"]):
        ran = run("audit", *options, SAMPLE)
        assert ran.code == 2
    assert "--id names one decision" in ran.err


@pytest.mark.parametrize("options", [[], ["-o", "json"]])
def test_nothing_found_is_said(run, options: list[str]):
    ran = run("audit", *options, "--rule", "family-mixed", SAMPLE)
    assert (ran.code, ran.out, ran.err) == (0, "", "warning: no decision matches\n")


def test_a_summary(run):
    ran = run("audit", "--summary", SAMPLE)
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[:2] == [
        "16 decisions 2026-11-20 08:04:00 to 2026-11-20 10:08:00 UTC",
        "4 denied, 8 mutated, 1 warned, 3 allowed; 8 /mutate, 8 /validate",
    ]
    assert "RULE DENIED WARNED AUDITED DENIED PER HOUR FROM 2026-11-20 08:00" in lines
    assert "card-count 4 0 0 ▃█" in lines
    assert "team-speech 6 0 1" in lines
    assert "card-count team-vision system:serviceaccount:team-vision:runner 3" in lines


def test_a_summary_for_programs(run):
    (told,) = run("audit", "--summary", "-o", "json", "--rule", "card-count", SAMPLE).lines
    assert told["decisions"] == 4
    assert told["first"] == "2026-11-20T08:04:00.003000Z"
    assert told["rules"]["card-count"] == {"decisions": 4, "denied": 4, "wouldBeDenied": 0, "warned": 0, "audited": 0}
    assert told["refused"][0]["times"] == 3
    trend = {"stepSeconds": 3600, "from": "2026-11-20T08:00:00Z", "counts": {"team-vision": [1, 3]}}
    assert told["denialsOverTime"]["byNamespace"] == trend
    assert told["outcomesOverTime"] == {**trend, "counts": {"denied": [1, 3]}}
    assert told["skipped"] == {"foreign": 0, "truncated": 0, "too_long": 0}


@pytest.fixture
def observed(write) -> str:
    """The sample as a policy with `enforcement: audit` would have left it."""
    records = [{**json.loads(line), "allowed": True, "enforcement": "audit"} for line in LINES]
    return write("observed.jsonl", "".join(json.dumps(record) + "\n" for record in records))


def test_what_would_have_been_refused_is_listed_apart(run, observed):
    ran = run("audit", "--outcome", "would-be-denied", observed)
    head, *rows = ran.out.splitlines()
    assert len(rows) == 4
    assert all(row[head.index("OUTCOME") :].startswith("would-be-denied   team-vision") for row in rows)
    assert len(run("audit", "--denied", observed).out.splitlines()) == 0


def test_what_would_have_been_refused_is_summed_up_apart(run, observed, write):
    lines = [" ".join(line.split()) for line in run("audit", "--summary", observed).out.splitlines()]
    assert lines[1] == "4 would-be-denied, 8 would-be-mutated, 4 allowed; 8 /mutate, 8 /validate"
    assert "RULE DENIED WOULD BE DENIED WARNED AUDITED DENIED OVER TIME" in lines
    assert "card-count 0 4 0 0" in lines
    assert "team-vision 10 0 4 0" in lines
    assert "WOULD BE REFUSED FOR IN USER TIMES" in lines
    assert "card-count team-vision system:serviceaccount:team-vision:runner 3" in lines
    assert not any(line.startswith("REFUSED FOR") for line in lines)
    (told,) = run("audit", "--summary", "-o", "json", observed).lines
    assert told["outcomes"] == {"would-be-mutated": 8, "would-be-denied": 4, "allowed": 4}
    assert told["rules"]["card-count"]["wouldBeDenied"] == 4
    assert not any(who["enforced"] for who in told["refused"])


def test_an_empty_log(run, write):
    ran = run("audit", "--summary", write("empty", ""))
    assert (ran.code, ran.out, ran.err) == (0, "no decisions\n", "")
    (told,) = run("audit", "--summary", "-o", "json", write("empty", "")).lines
    assert told["first"] is None


def test_numbers_where_bars_cannot_be_drawn():
    ran = shell("audit", "--summary", SAMPLE, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert b"1 3" in ran.stdout.splitlines()[4]
    assert ran.returncode == 0


def test_skipped_lines_are_counted(run, tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"started\n" + b"".join(LINES) + LINES[0][:80])
    ran = run("audit", log)
    assert (ran.code, ran.err) == (0, "warning: lines skipped: 1 foreign, 1 cut off at the end\n")
    assert len(ran.out.splitlines()) == 17


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", [["-"], []])
def test_standard_input(pack: Any, name: list[str]):
    ran = shell("audit", "-o", "json", *name, stdin=pack(b"".join(LINES)))
    assert len(ran.stdout.splitlines()) == 16
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("options", [[], ["--summary"], ["-o", "json"], ["--summary", "-o", "json"]])
def test_hostile_names_are_shown_escaped(run, tmp_path: Path, options: list[str]):
    log = tmp_path / "log"
    evil = "\x1b[2J\u202eevil\n" + "x" * 3000
    record = json.loads(LINES[1])
    names = dict.fromkeys(("id", "uid", "user", "namespace", "kind", "name", "operation"), evil)
    record["findings"][0] |= {"rule": evil, "message": evil, "path": evil}
    log.write_text(json.dumps({**record, **names}) + "\n")
    ran = run("audit", *options, log)
    assert ran.code == 0
    assert "evil" in ran.out
    assert all(line.isprintable() or set(line) & set("▃█") for line in ran.out.splitlines())
    if "json" not in options:
        assert max(map(len, ran.out.splitlines())) < 6 * MAX_CELL


@given(st.text(), st.integers(1, 30))
def test_no_name_breaks_a_column(text: str, width: int):
    assert len(legible(text, width)) <= width
    assert legible(text, width).isprintable()


@pytest.mark.parametrize("options", [[], ["--summary"]])
def test_binary_files_are_reported_and_read_only_in_part(run, tmp_path: Path, options: list[str]):
    log = tmp_path / "log"
    log.write_bytes(os.urandom(1 << 20) + b"\x00" * (40 << 20))
    ran = run("audit", *options, log, SAMPLE)
    assert ran.code == 2
    assert f"{log}: no audit line in 16 MiB, so the rest is not read" in ran.err
    assert "team-vision" in ran.out, "what can be read is told all the same"


@pytest.mark.parametrize(
    "options, message",
    [
        (["--since", "soon"], "'soon' is neither an age such as 2h nor a time such as 2026-11-20T10:00"),
        (["--follow", "--summary"], "--follow takes one file"),
        (["--follow", "b"], "--follow takes one file"),
    ],
)
def test_bad_options(run, options: list[str], message: str):
    ran = run("audit", "a", *options)
    assert ran.code == 2
    assert message in ran.err


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Follow the file `log`; what it tells goes to `out`. It hears Ctrl-C, which a job in the background may not."""
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with ExitStack() as running:

        def start(*options: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "webhook.cli.main", "audit", "--follow", *options, str(tmp_path / "log")]
            out = running.enter_context((tmp_path / "out").open("wb"))
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, preexec_fn=heard)  # noqa: PLW1509
            running.enter_context(process)
            running.callback(process.kill)
            return process

        yield start


def test_following(tmp_path: Path, follow: Callable[..., subprocess.Popen[bytes]]):
    log, out = tmp_path / "log", tmp_path / "out"
    log.write_bytes(LINES[0])
    process = follow("--denied", "-o", "json")

    def write(line: bytes) -> bool:
        with log.open("ab") as file:
            file.write(line)
        return bool(out.read_bytes())

    until(lambda: write(LINES[1]))  # it may not yet have begun
    log.rename(tmp_path / "log.1")
    log.write_bytes(LINES[2] + LINES[7])
    until(lambda: b"card-count" in out.read_bytes().splitlines()[-1] and b'"Pod","name":"nine"' in out.read_bytes())
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == 130
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
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=30)[1].decode().splitlines()
    assert [line.partition("log.2.gz: ")[1] for line in told] == ["log.2.gz: "]


def test_what_cannot_be_followed(run, tmp_path: Path):
    ran = run("audit", "--follow", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {tmp_path} is not a regular file")
