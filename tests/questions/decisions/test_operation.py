"""The audit log in the API: filters, pages, counts, one decision in full, pairs of decisions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.audit import sample
from tests.console.audit_lines import LINES, console_client, get_decisions, get_page, numbers, write
from tests.questions import is_removed
from webhook.audit.database import Database
from webhook.audit.decision import parse_decision
from webhook.audit.follower import DecisionSource
from webhook.audit.store import DecisionStore


@pytest.fixture
def client(tmp_path: Path):
    return console_client(write(tmp_path / "audit.jsonl", LINES))


def test_decisions_come_newest_first(client: Any):
    found = get_decisions(client)
    assert [entry["number"] for entry in found["entries"]] == list(range(16, 0, -1))
    own = {
        key: LINES[0][key]
        for key in ("id", "time", "endpoint", "operation", "dryRun", "user", "namespace", "kind", "name")
    }
    rules = [{"rule": rule, "level": "repair"} for rule in LINES[0]["repairs"]]
    assert found["entries"][-1] == own | {"number": 1, "outcome": "repaired", "repair": None, "rules": rules}
    assert (own["endpoint"], own["user"], own["name"]) == ("mutate", "anna@example.org", "training")
    repairs = {entry["number"]: entry["repair"] for entry in found["entries"] if entry["repair"] is not None}
    assert repairs == {number: number - 1 for number in range(2, 17, 2)}
    assert (found["older"], found["newer"], found["newest"], found["leftOut"]) == (None, None, 16, 0)
    assert (found["log"]["count"], found["log"]["caughtUp"]) == (16, True)


def test_since_may_be_an_age(client: Any, tmp_path: Path):
    times = [f"{datetime.now(UTC) - timedelta(minutes=minutes):%FT%TZ}" for minutes in (200, 30)]
    recent = console_client(write(tmp_path / "recent.jsonl", [{**LINES[0], "time": time} for time in times]))
    assert numbers(recent, "?since=2h") == [2]


def test_the_summary_lists_at_most_a_hundred_names(tmp_path: Path):
    client = console_client(write(tmp_path / "log", [{**LINES[1], "namespace": f"n{at}"} for at in range(150)]))
    found = get_decisions(client, "/summary")
    assert len(found["namespaces"]) == len(found["refused"]) == 100
    assert found["leftOut"] == {"rules": 0, "namespaces": 50, "users": 0, "refused": 500}


def test_one_decision_has_every_field_of_its_line(client: Any):
    found = get_decisions(client, "/2")
    assert found["decision"] == LINES[1] | {"repairs": [], "exceptions": []}
    assert (found["number"], found["outcome"], found["current"]) == (2, "refused", LINES[1]["digests"])
    assert get_decisions(client, "/17", 404)["message"].startswith("there is no decision 17")


def pairs(client: Any, count: int) -> list[int | None]:
    return [get_decisions(client, f"/{number}")["pair"] for number in range(1, count + 1)]


def test_a_repair_and_its_validation_are_a_pair(client: Any):
    assert pairs(client, 16) == [number + 1 if number % 2 else number - 1 for number in range(1, 17)]


def test_of_two_pods_that_are_alike_each_has_its_own_repair(tmp_path: Path):
    client = console_client(write(tmp_path / "log", [LINES[0], LINES[0], LINES[1], LINES[1]]))
    assert [entry["repair"] for entry in get_decisions(client)["entries"]] == [2, 1, None, None]


WHO = {key: LINES[0][key] for key in ("user", "namespace")}
LONG = {
    "operation": "CREATE",
    "kind": "Pod",
    "request": {"pod": {"spec": {"containers": []}}},
    "patch": [],
    "findings": [],
}


def both(length: int) -> list[Any]:
    return [{**LINES[0], **LONG, "user": "[" * length, "endpoint": each} for each in ("mutate", "validate")]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([LINES[0], LINES[1] | {"time": "2026-11-20T08:06:00Z"}, LINES[1] | {"user": "mallory"}, LINES[3]], [None] * 4),
        (  # other pods of the same minute
            [
                LINES[0],
                LINES[4] | WHO | {"time": "2026-11-20T08:04:00.001000Z"},
                LINES[1],
                LINES[5] | WHO | {"time": LINES[1]["time"]},
            ],
            [3, 4, 1, 2],
        ),
        (both(300), [2, 1]),
        (both(301), [None, None]),  # a user of more characters is cut
    ],
)
def test_only_decisions_about_one_pod_are_a_pair(tmp_path: Path, lines: list[Any], expected: list[int | None]):
    assert pairs(console_client(write(tmp_path / "log", lines)), len(lines)) == expected


STORED = [(line, decision) for line in sample.lines() if (decision := parse_decision(line)) is not None]


def test_decisions_that_are_added_later_are_shown_and_kept(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/decisions.db"
    client = console_client(DecisionSource(DecisionStore(database=Database.at(url))))
    assert "makes the tables when it starts" in get_decisions(client, status=503)["message"]
    database = Database.at(url)
    database.make_tables()
    store = DecisionStore(database=database)
    for done in range(0, len(STORED), 4):
        store.add(STORED[done : done + 4])
        assert get_decisions(client)["newest"] == min(done + 4, len(STORED))
    store.close()
    again = console_client(DecisionSource(DecisionStore(database=Database.at(url))))
    assert get_decisions(again)["entries"] == get_decisions(client)["entries"]
    assert get_decisions(again, "/summary")["decisions"] == len(STORED)
    assert get_decisions(again, "/1")["decision"]["id"] == STORED[0][1].id


def test_an_unreachable_database_is_named_without_its_password():
    database = Database.at("postgresql://shipper:s3cret@127.0.0.1:1/decisions")
    client = console_client(DecisionSource(DecisionStore(database=database)))
    message = get_decisions(client, status=503)["message"]
    assert message.startswith("the store 127.0.0.1:1/decisions: ")
    assert "Connection refused" in message
    pages = [get_page(client, "/decisions", 503), *([] if is_removed("doctor") else [get_page(client, "/health")])]
    for text in (message, *(page.text for page in pages)):
        assert "the store 127.0.0.1:1/decisions" in text
        assert "s3cret" not in text
