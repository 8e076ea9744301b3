"""Reading audit logs: rotated, compressed, torn, with foreign or hostile lines."""

import bz2
import gzip
import json
import lzma
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.audit import sample
from tests.audit.recording import record
from tests.audit.test_follower import rename_files
from tests.cases import each_case
from tests.reviewing import ALL_FAMILIES, request, snapshot
from webhook.audit import reader as streams
from webhook.audit.decision import parse_decision, read_decision, to_record
from webhook.audit.reader import CHUNK, GIVE_UP, MAX_LINE, Lines, LogReader, Skipped

OLD = snapshot(*ALL_FAMILIES)
POD = {"kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main"}]}}


def line(uid: str) -> bytes:
    return record(request(POD)._replace(uid=uid), OLD)


LINES = {uid: line(uid) for uid in "abcdxy"}  # of one time each, so that copies are equal


def uids(paths: Any, problems: list[str] | None = None) -> list[str]:
    messages: list[str] = [] if problems is None else problems
    found = [decision.uid for decision in LogReader(messages.append).read([str(path) for path in paths])]
    assert problems is not None or not messages, messages
    return found


# --- lines ----------------------------------------------------------------------------------------------------------


def test_a_line_is_read_as_it_was_written():
    for written in sample.lines():
        decision = parse_decision(written)
        assert decision is not None
        assert orjson.loads(orjson.dumps(to_record(decision))) == orjson.loads(written)


def test_a_request_that_no_rule_reviews_has_its_own_word():
    """tests/audit/test_summary.py has the others."""
    deleted = parse_decision(record(request(POD)._replace(operation="DELETE"), OLD))
    assert deleted is not None
    assert deleted.word == "not-reviewed"


GOOD = orjson.loads(line("u"))


def deep_decision(key: str, nested: str) -> Any:
    value = f'[{{"op":"add","path":"/a","value":{nested}}}]' if key == "patch" else f'{{"pod":{nested}}}'
    return parse_decision(orjson.dumps({**GOOD, key: 0}).replace(f'"{key}":0'.encode(), f'"{key}":{value}'.encode()))


@given(st.sampled_from(sorted(GOOD)), strategies.hostile | strategies.json_values)
def test_a_line_with_a_changed_field_is_foreign_or_valid(key: str, value: Any):
    value = orjson.loads(json.dumps(value))
    found = read_decision({**GOOD, key: value})
    if found is not None:
        assert type(value) is type(GOOD[key])
        assert isinstance(found.word, str)
        orjson.dumps(to_record(found))


@each_case("depth", [200, 250, 300, 900, 2000])
@each_case("opening, closing", [("[", "]"), ('{"a":', "}")])
@each_case("key", ["request", "patch", "digests"])
def test_deep_lines_are_foreign_or_can_be_written_again(key: str, opening: str, closing: str, depth: int):
    found = deep_decision(key, opening * depth + "0" + closing * depth)
    assert (found is not None) is (depth < 252)
    if found is not None:
        orjson.dumps(to_record(found))


@given(strategies.json_values | st.just([]))
def test_other_json_is_foreign(value: Any):
    assert read_decision(value) is None


@pytest.mark.parametrize(
    "time", ["2026-11-20", "2026-11-20T10:00", "2026-11-20T10:00:00+01:00", "0001-01-01T00:00:00Z"]
)
def test_a_time_that_is_not_in_utc_or_long_ago_is_foreign(time: str):
    assert read_decision({**GOOD, "time": time}) is None


@given(st.lists(st.binary(max_size=30), max_size=20), st.integers(1, 50))
def test_lines_do_not_depend_on_the_chunks(inputs: list[bytes], size: int):
    whole = b"\n".join(inputs)
    lines = Lines()
    found = [text for at in range(0, len(whole), size) for text in lines.feed(whole[at : at + size])]
    assert [*found, lines.rest] == whole.split(b"\n")


def test_a_huge_line_is_dropped_and_the_next_one_is_read(tmp_path: Path):
    file = tmp_path / "log"
    file.write_bytes(line("a") + b"x" * (3 * MAX_LINE) + b"\n" + line("b"))
    reader = LogReader(pytest.fail)
    assert [decision.uid for decision in reader.read([str(file)])] == ["a", "b"]
    assert reader.skipped == Skipped(too_long=1)


# --- files ----------------------------------------------------------------------------------------------------------


def test_rotated_and_compressed_files_are_read_oldest_first(tmp_path: Path):
    log = tmp_path / "audit.jsonl"
    log.write_bytes(line("6"))
    (tmp_path / "audit.jsonl.1").write_bytes(line("5"))
    (tmp_path / "audit.jsonl.2.gz").write_bytes(gzip.compress(line("3")) + gzip.compress(line("4")))
    (tmp_path / "audit.jsonl.3.bz2").write_bytes(bz2.compress(line("2")))
    (tmp_path / "audit.jsonl.4.xz").write_bytes(lzma.compress(line("1")))
    (tmp_path / "audit.jsonl.6").write_bytes(line("0"))  # a rotation was killed, or is slow
    (tmp_path / "audit.jsonl.9").write_bytes(line("two are missing before it"))
    (tmp_path / "audit.jsonl.20260101").write_bytes(line("of another program"))
    assert uids([log]) == list("0123456")
    assert uids(sorted(tmp_path.glob("audit.jsonl"))) == list("0123456")
    assert uids([log, tmp_path / "audit.jsonl.1"]) == list("0123456"), "no line is read twice"
    assert uids([tmp_path / "audit.jsonl.2.gz"]) == list("34")


PACKED = [gzip.compress(line(uid)[:-1] + b"\n" * 30, mtime=0x6501000A + (uid == "b") * 0x20000) for uid in "ab"]


@each_case(
    ("files", "expected", "copies"),
    [
        ({"day1": "ab", "day2": "abcd"}, "abcd", ["day1"]),
        ({"day2": "abcd", "day1": "ab"}, "abcd", ["day1"]),
        ({"day1": "ab", "same": "ab"}, "ab", ["same"]),
        ({"day1": "abx", "day2": "abcd"}, "abxabcd", []),
        ({"log": "abc", "log.1": "ab", "log.2": "xy"}, "xyabc", []),  # logrotate copies, then truncates
        ({"log": "", "log.1": "ab"}, "ab", []),
        ({"log": "c", "log.1": "ab", "copy": "abc"}, "cabc", ["log.1"]),
        ({"a.gz": PACKED[0], "b.gz": PACKED[1]}, "ab", []),  # equal up to the first byte 0x0a
        ({"a.gz": PACKED[0], "b": "a"}, "aa", []),  # the lines differ at their end
        ({"day1.gz": gzip.compress(LINES["a"] + LINES["b"]), "day1": "ab"}, "ab", ["day1.gz"]),
        (
            {"day1.gz": gzip.compress(LINES["a"] + LINES["b"]), "day2": "acd"},
            "abacd",
            [],
        ),  # only the first line is equal
        ({"day1": "abcd", "day1.xz": lzma.compress(LINES["a"] + LINES["b"])}, "abcd", ["day1.xz"]),
    ],
)
def test_every_file_is_read_but_a_copy_of_the_beginning_of_another(
    files: dict[str, str | bytes], expected: str, copies: list[str]
):
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / name for name in files]
        for path, content in zip(paths, files.values(), strict=True):
            path.write_bytes(content if isinstance(content, bytes) else b"".join(LINES[uid] for uid in content))
        reader = LogReader(pytest.fail)
        found = reader.read([str(path) for path in paths if "log." not in path.name])
        assert "".join(decision.uid for decision in found) == expected
        assert [text.partition(":")[0] for text in reader.copies] == [f"{directory}/{name}" for name in copies]


def test_a_rotation_during_the_reading_loses_no_line(tmp_path: Path):
    log, first, second = (tmp_path / f"log{suffix}" for suffix in ("", ".1", ".2"))
    log.write_bytes(line("c"))
    first.write_bytes(line("b"))
    second.write_bytes(line("a"))
    found = LogReader(pytest.fail).read([str(log)])
    read = [next(found).uid]
    first.rename(second)
    log.rename(first)
    log.write_bytes(line("d"))
    assert read + [decision.uid for decision in found] == ["a", "b", "c"]


def test_the_reader_waits_for_a_number_that_a_rotation_is_about_to_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    log, first, second, third = (tmp_path / f"log{suffix}" for suffix in ("", ".1", ".2", ".3"))
    for file, uid in ((log, "d"), (first, "c"), (third, "a")):
        file.write_bytes(line(uid))

    def rotate(_: float) -> None:
        if first.exists():
            first.rename(second)

    monkeypatch.setattr(streams.time, "sleep", rotate)
    assert uids([log]) == ["a", "c", "d"]


@pytest.mark.parametrize(("before", "rotations"), [(2, 0), (1, 2)])
def test_files_that_are_renamed_before_they_are_opened_are_read_in_order(
    before: int, rotations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log, first, second, third = (tmp_path / f"log{suffix}" for suffix in ("", ".1", ".2", ".3"))
    for file, uid in ((log, "c"), (first, "b"), (second, "a")):
        file.write_bytes(line(uid))
    find = streams._kept

    def find_and_rotate(path: str, number: int) -> str | None:
        name = find(path, number)
        if number == before and not third.exists():
            if not rotations:  # only its first step
                second.rename(third)
            for uid in "de"[:rotations]:
                rename_files(log)
                log.write_bytes(line(uid))
        return name

    monkeypatch.setattr(streams, "_kept", find_and_rotate)
    assert "".join(uids([log])) == "abcde"[: 3 + rotations]


def test_foreign_lines_and_a_torn_one_are_counted(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(line("a") + b'I1120 started\n\n{"level":"info"}\n[]\n\xff\xfe\n' + line("b") + line("c")[:100])
    reader = LogReader(pytest.fail)
    assert [decision.uid for decision in reader.read([str(log)])] == ["a", "b"]
    assert reader.skipped == Skipped(foreign=4, truncated=1)
    assert reader.skipped.total == 5
    log.write_bytes(line("a").rstrip())
    assert uids([log]) == ["a"], "a line without its line break is read"


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[:30] + b"\xff" * 40 + b[70:]], ids=["short", "bad"])
def test_damaged_archives_are_reported(tmp_path: Path, pack: Any, damage: Any):
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(damage(pack(b"".join([line(f"{n}") for n in range(50)]))))
    good.write_bytes(line("good"))
    problems: list[str] = []
    assert uids([bad, good], problems)[-1] == "good"
    assert len(problems) == 1
    assert problems[0].startswith(f"{bad}: ")


def test_files_that_cannot_be_opened_are_reported(tmp_path: Path):
    (tmp_path / "zstd").write_bytes(b"\x28\xb5\x2f\xfd rest")
    problems: list[str] = []
    assert uids([tmp_path / "none", tmp_path, tmp_path / "zstd"], problems) == []
    assert problems == [
        f"{tmp_path}/none: No such file or directory",
        f"{tmp_path}: Is a directory; name a file in it",
        f"{tmp_path}/zstd: compressed by zstd, which cannot be read here; zstdcat FILE and a pipe can",
    ]


def test_reading_stops_at_a_file_without_audit_lines_and_uses_little_memory():
    problems: list[str] = []
    tracemalloc.start()
    assert uids(["/dev/zero"], problems) == []
    assert tracemalloc.get_traced_memory()[1] < 8 * MAX_LINE
    tracemalloc.stop()
    assert problems == [f"/dev/zero: no audit line in {GIVE_UP >> 20} MiB, so the rest is not read"]


def test_the_reader_reports_its_progress(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(line("a") * (3 * CHUNK // len(line("a"))))
    reader = LogReader(pytest.fail)
    shares = [reader.share for _ in reader.read([str(log)])]
    assert shares == sorted(shares)  # type: ignore[type-var]
    assert shares[0] is not None
    assert 0 < shares[0] < 0.6
    assert reader.share == 1.0
