"""The audit log on a page: the list, its filters and links, one decision."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cases import each_case
from tests.console.audit_lines import API, HOSTILE, LINES, console_client, get_decisions, get_page, write
from tests.console.rows import page_rows
from tests.questions import needs
from webhook.audit.decision import read_decision
from webhook.audit.follower import LogFollower
from webhook.parameters import parameters_of
from webhook.questions.decisions.page import decisions
from webhook.questions.decisions.text import facts

test_page = page_rows(__file__)


@pytest.fixture
def client(tmp_path: Path):
    return console_client(write(tmp_path / "audit.jsonl", LINES))


def test_a_mistaken_filter_is_explained_at_its_field_and_the_page_stays(client: Any):
    page = get_page(client, "/decisions?since=yesterdayish&outcome=refused&rule=x&rule=" + "y" * 301, 400)
    fields = {(each["name"], each["value"]): each.get("aria-invalid") for each in page.all("input") if each["value"]}
    assert fields == {("since", "yesterdayish"): "true", ("rule", "x"): "true", ("rule", "y" * 301): "true"}
    assert [each["text"].partition(" such as")[0] for each in page.all("span", "mistake") if each["text"]] == [
        f"it must be at most 300 characters long, not '{'y' * 59}…'",
        "'yesterdayish' is neither an age",
    ]
    assert "4 rows, 4 decisions that match" in page.text
    assert get_decisions(client, "?since=yesterdayish&outcome=refused", 400)["message"].startswith("since: ")


def test_the_list(client: Any):
    page = get_page(client, "/decisions")
    by_id = [f"/decisions/{line['id']}" for line in reversed(LINES[1::2])]  # one row for the two lines of a pod
    assert page.links("/decisions/") == [*by_id, "/decisions/0"]
    assert "8 rows, 16 decisions" in page.text
    assert [each["text"] for each in page.all("span", "level repair")].count("percentage-to-memory") == 1
    assert page.text.index("8 rows") < page.text.index("Outcomes") < page.text.index("Refused most often")
    assert "2 rows on this page, 16 decisions" in get_page(client, "/decisions?limit=4").text
    assert "/decisions?outcome=refused" in page.links("/decisions?")
    assert "/decisions?rule=card-count" in page.links("/decisions?")
    assert "2026-11-20 09:05 to 2026-11-20 09:10 UTC: 3 refused" in page.text
    others = set(page.links("/decisions")) - {*by_id, "/decisions/0"}
    assert all(get_page(client, link).text for link in others)
    found = [client.get(f"/api/v1{link}").json["number"] for link in by_id]
    assert found == list(range(16, 0, -2))
    assert page.links("/api/v1/decisions")[0] == API


def test_a_pod_is_one_row_with_its_repair_and_its_verdict(client: Any):
    def words(query: str) -> list[str]:
        return re.findall(r'<span class="outcome[^"]*">([^<]+)</span>', client.get(f"/decisions{query}").text)

    denied = next(number for number, line in enumerate(LINES, 1) if not line["allowed"])
    assert words(f"?before={denied + 1}&limit=2") == ["refused", "repaired"]
    assert words("?outcome=refused&limit=1") == ["refused"]  # the repair does not match
    allowed = next(n for n, line in enumerate(LINES, 1) if line["endpoint"] == "validate" and not line["findings"])
    assert words(f"?before={allowed + 1}&limit=2") == ["repaired"]


def test_a_decision_has_the_facts_that_the_terminal_shows(tmp_path: Path):
    line = {**LINES[1], "enforcement": "audit", "dryRun": True, "clientVerified": True}
    page = get_page(console_client(write(tmp_path / "log", [line])), "/decisions/1")
    found = facts(read_decision(line))
    assert {*found} >= {"request", "client", "enforcement", "took", "review"}
    assert all(text in page.text for text in found.values())


def test_filters_are_kept_by_links_and_forms(client: Any):
    page = get_page(client, "/decisions?user=anna*&user=b*&since=2026-11-20&dryRun=false&limit=2&before=16")
    older = next(link for link in page.links("/decisions?") if "before=" in link)
    assert [f in older for f in ("user=anna*&user=b*", "since=2026-11-20", "dryRun=false")] == [True] * 3
    users = [each["value"] for each in page.all("input") if each.get("name") == "user"]
    assert users == ["anna*", "b*"]
    assert not any("data-first" in each for each in page.elements)  # an older page is not followed
    assert any("data-first" in each for each in get_page(client, "/decisions?user=anna*").elements)


@each_case("name", [field.alias or name for name, field in parameters_of(decisions).model_fields.items()])
def test_a_page_with_any_filter_is_shown_with_its_links(client: Any, name: str):
    values = {"endpoint": "validate", "outcome": "refused", "before": "16", "after": "2", "limit": "2"}
    values |= {"refused": "true", "dryRun": "false", "since": "2026-11-20", "until": "2026-11-21", "rule": "card-count"}
    query = f"{name}={values.get(name, 'x')}"
    page = get_page(client, f"/decisions?{query}")
    if name not in ("before", "after", "limit"):
        assert any(query in link for link in page.links("/decisions?")), page.links("/decisions?")


def test_a_decision_by_its_id(client: Any, tmp_path: Path):
    link = f"/decisions/{LINES[1]['id']}"
    assert "Pod training" in get_page(client, link).text
    assert link in get_page(client, "/decisions/2").links("/decisions/")
    decimal = console_client(write(tmp_path / "decimal", [{**LINES[0], "id": "001234567890"}]))
    assert "Decision 001234567890" in get_page(decimal, "/decisions/001234567890").text


@needs("rules")
def test_a_decision_in_full(client: Any):
    page = get_page(client, "/decisions/2")
    assert '"HAMi-core", which equals no node\'s mode' in page.text
    assert page.links("/rules/")[:2] == ["/rules/cores-range", "/rules/mode-invalid"]
    assert "/decisions/1" in page.links("/decisions/")
    assert "CUDA_DISABLE_CONTROL" in page.text
    line = page.text[page.text.index('{"time"') :]
    assert orjson.loads(line[: line.index("}\n") + 1]) == LINES[1]
    assert "spec.schedulerName" in get_page(client, "/decisions/1").text
    get_page(client, f"/decisions/{'9' * 5000}", 404)  # more digits than Python reads


def test_the_places_of_a_patch_are_field_paths(tmp_path: Path):
    patch = [
        {"op": "add", "path": "/spec/tolerations/-"},
        {"op": "move", "from": "/metadata/labels/a~1b", "path": "/c/0"},
    ]
    page = get_page(console_client(write(tmp_path / "log", [LINES[0] | {"patch": patch}])), "/decisions/1")
    assert [text in page.text for text in ("spec.tolerations[end]", "metadata.labels[a/b]", "c[0]")] == [True] * 3


def test_a_decision_names_the_exceptions_that_it_used(tmp_path: Path):
    used = {"rule": "cores-range", "until": "2026-12-31", "reason": HOSTILE, "owner": "gpu-team"}
    client = console_client(write(tmp_path / "log", [LINES[1] | {"exceptions": [used, 7, {}]}]))
    page = get_page(client, "/decisions/1")
    assert "An exception from cores-range holds until 2026-12-31: " in " ".join(page.text.split())
    assert "(gpu-team)" in page.text
    assert not any(image["src"] == "x" for image in page.all("img"))


def test_while_the_log_is_still_read(tmp_path: Path):
    (tmp_path / "log").write_bytes(orjson.dumps(LINES[0]) + b"\n")
    page = get_page(console_client(LogFollower(str(tmp_path / "log"))), "/decisions")
    assert "Still reading the log: 0%" in page.text
