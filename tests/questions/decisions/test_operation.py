"""The audit log in the API: filters, pages, counts, one decision in full, pairs of decisions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.console.audit_lines import LINES, console_client, get_decisions, numbers, write


@pytest.fixture
def client(tmp_path: Path):
    return console_client(write(tmp_path / "audit.jsonl", LINES))


def test_decisions_come_newest_first(client: Any):
    found = get_decisions(client)
    assert [entry["number"] for entry in found["entries"]] == list(range(16, 0, -1))
    assert found["entries"][-1] == {
        "number": 1,
        "time": LINES[0]["time"],
        "endpoint": "mutate",
        "outcome": "repaired",
        "operation": "CREATE",
        "dryRun": False,
        "user": "anna@example.org",
        "namespace": "team-vision",
        "kind": "Pod",
        "name": "training",
        "id": LINES[0]["id"],
        "repair": None,
        "rules": [{"rule": rule, "level": "repair"} for rule in LINES[0]["repairs"]],
    }
    repairs = {entry["number"]: entry["repair"] for entry in found["entries"] if entry["repair"] is not None}
    assert repairs == {number: number - 1 for number in range(2, 17, 2)}
    assert (found["older"], found["newer"], found["newest"], found["leftOut"]) == (None, None, 16, 0)
    assert found["log"]["count"] == 16
    assert found["log"]["caughtUp"] is True


def test_since_may_be_an_age(client: Any, tmp_path: Path):
    lines = [
        {**LINES[0], "time": (datetime.now(UTC) - timedelta(minutes=at)).isoformat().replace("+00:00", "Z")}
        for at in (200, 30)
    ]
    recent = console_client(write(tmp_path / "recent.jsonl", lines))
    assert numbers(recent, "?since=2h") == [2]


def test_the_summary_lists_at_most_a_hundred_names(tmp_path: Path):
    client = console_client(write(tmp_path / "log", [{**LINES[1], "namespace": f"n{at}"} for at in range(150)]))
    found = get_decisions(client, "/summary")
    assert len(found["namespaces"]) == len(found["refused"]) == 100
    assert found["leftOut"] == {"rules": 0, "namespaces": 50, "users": 0, "refused": 500}


def test_one_decision_has_every_field_of_its_line(client: Any):
    found = get_decisions(client, "/2")
    assert found["decision"] == LINES[1] | {"repairs": [], "exceptions": []}
    assert found["number"] == 2
    assert found["outcome"] == "refused"
    assert found["current"] == LINES[1]["digests"]
    assert get_decisions(client, "/17", 404)["message"].startswith("there is no decision 17")


def test_a_repair_and_its_validation_are_a_pair(client: Any):
    assert [get_decisions(client, f"/{number}")["pair"] for number in range(1, 17)] == [
        number + 1 if number % 2 else number - 1 for number in range(1, 17)
    ]


def test_decisions_that_differ_are_no_pair(tmp_path: Path):
    late = {**LINES[1], "time": "2026-11-20T08:06:00Z"}
    other = {**LINES[1], "user": "mallory"}
    client = console_client(write(tmp_path / "log", [LINES[0], late, other, LINES[3]]))
    assert [get_decisions(client, f"/{number}")["pair"] for number in (1, 2, 3, 4)] == [None] * 4


def test_pods_of_one_minute_are_distinguished(tmp_path: Path):
    who = {key: LINES[0][key] for key in ("user", "namespace")}
    other = {**LINES[4], **who, "time": "2026-11-20T08:04:00.001000Z"}
    client = console_client(
        write(tmp_path / "log", [LINES[0], other, LINES[1], {**LINES[5], **who, "time": LINES[1]["time"]}])
    )
    assert [get_decisions(client, f"/{number}")["pair"] for number in (1, 2, 3, 4)] == [3, 4, 1, 2]


@pytest.mark.parametrize(("length", "pairs"), [(300, [2, 1]), (301, [None, None])])
def test_a_decision_with_a_too_long_user_has_no_pair(tmp_path: Path, length: int, pairs: Any):
    pod = {"pod": {"spec": {"containers": []}}}
    both = {
        **LINES[0],
        "operation": "CREATE",
        "kind": "Pod",
        "user": "[" * length,
        "request": pod,
        "patch": [],
        "findings": [],
    }
    client = console_client(write(tmp_path / "log", [{**both, "endpoint": each} for each in ("mutate", "validate")]))
    assert [get_decisions(client, f"/{number}")["pair"] for number in (1, 2)] == pairs
