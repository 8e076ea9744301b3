"""The audit log in the console: what matches, page by page; counts; one decision; hostile and broken logs."""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.console.decided import HOSTILE, LINES, browse, close, look, read, write
from webhook.decisions.journal import Journal

API = "/api/v1/decisions"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(autouse=True)
def _closed():
    yield
    close()


@pytest.fixture
def client(tmp_path: Path):
    return browse(write(tmp_path / "audit.jsonl", LINES))


def ask(client: Any, query: str = "", status: int = 200) -> dict[str, Any]:
    answer = client.get(f"{API}{query}")
    assert answer.status_code == status, answer.text
    return answer.json


def numbers(client: Any, query: str) -> list[int]:
    return [entry["number"] for entry in ask(client, query)["entries"]]


# --- the API ----------------------------------------------------------------------------------------------------------


def test_decisions_come_newest_first(client: Any):
    found = ask(client)
    assert [entry["number"] for entry in found["entries"]] == list(range(16, 0, -1))
    assert found["entries"][-1] == {
        "number": 1,
        "time": LINES[0]["time"],
        "endpoint": "mutate",
        "outcome": "mutated",
        "operation": "CREATE",
        "dryRun": False,
        "user": "anna@example.org",
        "namespace": "team-vision",
        "kind": "Pod",
        "name": "training",
        "rules": [],
    }
    assert (found["older"], found["newer"], found["newest"], found["leftOut"]) == (None, None, 16, 0)
    assert found["journal"]["count"] == 16
    assert found["journal"]["caughtUp"] is True


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?denied=true", [12, 10, 8, 2]),
        ("?outcome=denied", [12, 10, 8, 2]),
        ("?outcome=den*&outcome=warned", [14, 12, 10, 8, 2]),
        ("?rule=mode-*", [2]),
        ("?rule=mode-*&rule=host-access", [14, 2]),
        ("?namespace=team-v*&endpoint=validate", [12, 10, 8, 4, 2]),
        ("?user=chris*", [16, 15]),
        ("?name=n?ne&denied=true", [12, 10, 8]),
        ("?dryRun=true", []),
        ("?since=2026-11-20T09:30&until=2026-11-20T10:00", [14, 13]),
        ("?since=&user=chris*", [16, 15]),
        ("?before=3", [2, 1]),
        ("?after=14", [16, 15]),
        ("?after=10&limit=2", [16, 15]),
        ("?limit=1", [16]),
    ],
)
def test_filters(client: Any, query: str, found: list[int]):
    assert numbers(client, query) == found


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?since=yesterday", "since"),
        ("?outcome=refused", "untouched"),
        ("?rule=" + "x" * 301, "rule"),
        ("?" + "&".join(["rule=x"] * 21), "rule"),
        ("?endpoint=other", "endpoint"),
        ("?before=0", "before"),
        ("?limit=1001", "limit"),
        ("?rules=x", "did you mean 'rule'"),
        ("/summary?limit=1", "limit"),
    ],
)
def test_what_cannot_be_asked(client: Any, query: str, told: str):
    assert told in ask(client, query, 400)["message"]


def test_pages_go_back_and_forth(client: Any):
    middle = ask(client, "?denied=true&limit=1&before=10")
    assert [entry["number"] for entry in middle["entries"]] == [8]
    assert ask(client, f"?denied=true&limit=1&before={middle['older']}")["entries"][0]["number"] == 2
    assert ask(client, f"?denied=true&limit=1&before={middle['newer']}")["entries"][0]["number"] == 10
    assert ask(client, "?denied=true&limit=2&before=10")["newer"] == 0


def test_an_age_is_remembered_for_a_minute(client: Any, tmp_path: Path):
    lines = [
        {**LINES[0], "time": (datetime.now(UTC) - timedelta(minutes=at)).isoformat().replace("+00:00", "Z")}
        for at in (200, 30)
    ]
    recent = browse(write(tmp_path / "recent.jsonl", lines))
    assert numbers(recent, "?since=2h") == [2]


def test_the_tail_tells_what_it_leaves_out(client: Any):
    found = ask(client, "?after=4&limit=3&outcome=denied")
    assert ([entry["number"] for entry in found["entries"]], found["leftOut"], found["newest"]) == ([12, 10, 8], 0, 16)
    assert ask(client, "?after=1&limit=3&outcome=denied")["leftOut"] == 1
    assert ask(client, "?after=16")["entries"] == []


def test_the_summary(client: Any):
    found = ask(client, "/summary")
    assert found["outcomes"] == {"mutated": 8, "denied": 4, "allowed": 3, "warned": 1}
    assert found["rules"][0] == {"name": "card-count", "decisions": 4, "denied": 4, "warned": 0, "audited": 0}
    assert found["refused"][0]["times"] == 3
    assert sum(found["outcomesOverTime"]["counts"]["denied"]) == 4
    assert sum(found["denialsByRule"]["counts"]["card-count"]) == 4
    assert sum(found["denialsByNamespace"]["counts"]["team-vision"]) == 4
    assert found["denialsByRule"]["from"] == "2026-11-20T08:04:00Z"
    assert ask(client, "/summary?user=chris*")["decisions"] == 2


def test_of_many_names_the_most_refused_are_told(tmp_path: Path):
    client = browse(write(tmp_path / "log", [{**LINES[1], "namespace": f"n{at}"} for at in range(150)]))
    found = ask(client, "/summary")
    assert len(found["namespaces"]) == len(found["refused"]) == 100
    assert found["leftOut"] == {"rules": 0, "namespaces": 50, "users": 0, "refused": 500}


def test_one_decision_is_the_whole_line(client: Any):
    found = ask(client, "/2")
    told = {key: found.pop(key) for key in ("number", "outcome", "current", "pair")}
    assert found == LINES[1]
    assert told["number"] == 2
    assert told["outcome"] == "denied"
    assert told["current"] == LINES[1]["digests"]
    assert ask(client, "/17", 404)["message"].startswith("the journal holds no decision 17")


def test_pairs(client: Any):
    assert [ask(client, f"/{number}")["pair"] for number in range(1, 17)] == [
        number + 1 if number % 2 else number - 1 for number in range(1, 17)
    ]


def test_no_pair_is_made_up(tmp_path: Path):
    late = {**LINES[1], "time": "2026-11-20T08:06:00Z"}
    other = {**LINES[1], "user": "mallory"}
    client = browse(write(tmp_path / "log", [LINES[0], late, other, LINES[3]]))
    assert [ask(client, f"/{number}")["pair"] for number in (1, 2, 3, 4)] == [None] * 4


# --- the pages --------------------------------------------------------------------------------------------------------


def test_the_list(client: Any):
    page = look(client, "/decisions")
    assert page.links("/decisions/") == [f"/decisions/{number}" for number in range(16, 0, -1)] + ["/decisions/0"]
    assert "16 decisions" in page.text
    assert "/decisions?outcome=denied" in page.links("/decisions?")
    assert "/decisions?rule=card-count" in page.links("/decisions?")
    assert "2026-11-20 09:05 to 2026-11-20 09:10 UTC: 3 denied, 3 mutated" in page.text
    assert all(look(client, link).text for link in set(page.links("/decisions")) - {"/decisions/0"})
    assert page.links("/api/v1/decisions")[0] == API


def test_filters_are_kept_by_links_and_forms(client: Any):
    page = look(client, "/decisions?user=anna*&user=b*&since=2026-11-20&dryRun=false&limit=2&before=16")
    older = next(link for link in page.links("/decisions?") if "before=" in link)
    assert [f in older for f in ("user=anna*&user=b*", "since=2026-11-20", "dryRun=false")] == [True] * 3
    users = [at["value"] for tag, at in page.elements if tag == "input" and at.get("name") == "user"]
    assert users == ["anna*", "b*"] * 2  # the form of filters, and what the replay is asked for
    assert not any("data-first" in at for _, at in page.elements)  # an older page is not followed
    assert any("data-first" in at for _, at in look(client, "/decisions?user=anna*").elements)


def test_a_decision_in_full(client: Any):
    page = look(client, "/decisions/2")
    assert '"HAMi-core", which equals no node\'s mode' in page.text
    assert page.links("/rules/")[:2] == ["/rules/cores-range", "/rules/mode-invalid"]
    assert "/decisions/1" in page.links("/decisions/")
    assert "CUDA_DISABLE_CONTROL" in page.text
    assert (
        orjson.loads(page.text[page.text.index('{"time"') : page.text.index("}\n", page.text.index('{"time"')) + 1])
        == LINES[1]
    )
    assert "spec.schedulerName" in look(client, "/decisions/1").text
    look(client, "/decisions/99", 404)
    look(client, "/decisions/-1", 404)


def test_without_an_audit_log():
    client = browse(None)
    assert "--audit-log FILE" in look(client, "/decisions").text
    assert "--audit-log FILE" in look(client, "/decisions/1", 404).text
    assert ask(client)["journal"]["given"] is False
    assert ask(client, "/summary")["decisions"] == 0


def test_while_the_log_is_still_read(tmp_path: Path):
    (tmp_path / "log").write_bytes(orjson.dumps(LINES[0]) + b"\n")
    assert "Still reading the log: 0%" in look(browse(Journal(str(tmp_path / "log"))), "/decisions").text


# --- hostile and broken logs ------------------------------------------------------------------------------------------


def _hostile(text: str) -> list[Any]:
    finding = {"rule": text, "level": "deny", "path": text, "message": text}
    patch = [{"op": text, "path": text, "value": {text: text}}, {"op": "move", "from": text, "path": "/" + text}, {}]
    names = dict.fromkeys(("id", "uid", "operation", "user", "namespace", "kind", "name"), text)
    kept = {"pod": {"metadata": {"annotations": {text: text}}}, text: [text]}
    line = {
        **LINES[1],
        **names,
        "findings": [finding],
        "patch": patch,
        "request": kept,
        "digests": {"policy": text, text: 1},
    }
    return [
        line,
        {**line, "findings": [finding] * (400 if len(text) < 1000 else 20)},
        {**line, "allowed": True, "digests": {"config": {"a": [text]}}},
    ]


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        HOSTILE * 100,
        "javascript:alert(1)",
        "../../%2e%2e/?a=b&c#d",
        "\udfff\ud800".encode("utf-8", "replace").decode(),
    ],
)
def test_hostile_text_is_only_text(tmp_path: Path, text: str):
    tame = browse(write(tmp_path / "tame", _hostile("tame")))
    client = browse(write(tmp_path / "log", _hostile(text)))
    for address in (
        "/decisions",
        "/decisions/1",
        "/decisions/2",
        "/decisions/3",
        "/decisions/1?settings=rules.card-count%3Dwarn",
    ):
        answer = client.get(address)
        assert answer.status_code == 200
        assert CONTROL.search(answer.text) is None
        assert look(client, address).shape <= look(tame, address).shape
        assert len(answer.text) < 1_000_000
    page = look(client, "/decisions")
    for link in page.links("/decisions"):
        assert client.get(link).status_code in (200, 404)
    assert ask(client, "/1")["name"] == text


def test_links_ask_for_the_very_name(tmp_path: Path):
    lines = [{**LINES[1], "namespace": name} for name in ("team[a]*", "team[a]x", "teama")]
    client = browse(write(tmp_path / "log", lines))
    assert numbers(
        client, look(client, "/decisions/1").links("/decisions?namespace")[0].removeprefix("/decisions")
    ) == [1]


def test_deep_and_large_requests(tmp_path: Path):
    deep: Any = "end"
    for _ in range(240):
        deep = {"a": deep}
    lines = [
        {**LINES[0], "request": {"pod": deep}},
        {**LINES[0], "request": {"pod": {"spec": "x" * 400_000}}},
        {**LINES[0], "durationUs": 2**63},
    ]
    client = browse(write(tmp_path / "log", lines))
    assert "…" in look(client, "/decisions/1").text
    assert "more characters" in look(client, "/decisions/2").text
    look(client, "/decisions/3")
    assert ask(client, "/1")["number"] == 1


@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_times_at_the_end_of_all_times(tmp_path: Path, time: str):
    client = browse(write(tmp_path / "log", [*LINES, {**LINES[1], "time": time}]))
    page = look(client, "/decisions")
    assert "17 decisions" in page.text
    assert all(look(client, link) for link in page.links("/decisions?since"))
    look(client, "/decisions/17")


def test_a_binary_log(tmp_path: Path):
    (tmp_path / "log").write_bytes(os.urandom(200_000))
    journal = read(tmp_path / "log")
    page = look(browse(journal), "/decisions")
    assert "are no decision and left out" in page.text
    assert "Nothing is recorded yet" in page.text


def test_a_log_that_is_not_there(tmp_path: Path):
    journal = read(tmp_path / "<b>log")
    page = look(browse(journal), "/decisions")
    assert "<b>log is not there yet" in page.text
    assert ("b", "") not in page.shape


def test_the_tail_goes_on_when_the_log_is_truncated_or_rotated(tmp_path: Path):
    file = tmp_path / "log"
    journal = write(file, LINES[:4])
    client = browse(journal)
    file.write_bytes(orjson.dumps(LINES[4]) + b"\n")  # truncated, and written anew
    journal.look()
    assert numbers(client, "?after=4") == [5]
    file.rename(tmp_path / "log.1")
    file.write_bytes(orjson.dumps(LINES[5]) + b"\n" + orjson.dumps(LINES[6])[:50])
    journal.look()
    journal.look()
    assert numbers(client, "?after=5") == [6]
    assert ask(client, "/6")["id"] == LINES[5]["id"]
