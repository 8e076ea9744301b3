"""A replay of one decision gives the same result as a replay of the whole log."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.audit import sample
from tests.cases import each_case
from tests.console.audit_lines import LINES, console_client, get_page, write
from tests.console.conftest import sample_parts
from webhook.audit.decision import read_decision
from webhook.questions.replay.answer import Replayer
from webhook.settings.trial import try_out

OTHER_SCHEDULER = ["schedulerName=other", "schedulerNames=[other]"]
PARTS = sample_parts(sample.POLICY)


@pytest.fixture
def client(tmp_path: Path):
    return console_client(write(tmp_path / "audit.jsonl", LINES))


def replay(client: Any, status: int = 200, number: Any = 1, **query: Any) -> dict[str, Any]:
    response = client.get(f"/api/v1/decisions/{number}/replay", query_string=query)
    assert response.status_code == status, response.text
    return response.json


def test_a_replay_with_the_original_inputs_changes_nothing(client: Any):
    assert {replay(client, number=number)["verdict"] for number in range(1, 17)} == {"same"}


def test_a_replay_of_one_decision_shows_what_other_settings_change(client: Any):
    found = replay(client, number=8, settings=["rules.card-count=warn"])
    assert (found["verdict"], found["direction"]) == ("changed", "refused -> allowed")
    assert (found["before"]["allowed"], found["after"]["allowed"]) == (False, True)
    assert (found["gained"], found["lost"]) == ([], [])
    assert found["levelChanges"] == [{"rule": "card-count", "before": "deny", "after": "warn"}]
    assert {each["level"] for each in found["after"]["findings"]} == {"warn"}
    assert found["repairedBy"] == 7


def _shuffled_pairs(count: int) -> list[Any]:
    """Pairs of decisions of many pods in random order; some have another device config, so that a replay repairs the pod."""
    chance = random.Random(5)
    lines = []
    for number in range(count):
        pod = chance.randrange(8)
        identity = {"namespace": f"team-{chance.randrange(4)}", "user": f"user-{number}", "name": f"job-{number}"}
        for part in (0, 1):
            line = {
                **LINES[2 * pod + part],
                **identity,
                "time": f"2026-11-20T08:{number % 60:02}:0{part}Z",
                "id": f"{number}-{part}",
            }
            line["digests"] = {**line["digests"], "config": "other"} if number % 3 == 0 else line["digests"]
            lines.append((number + part * chance.choice([0.1, 1.5, 3.2]), line))
    return [line for _, line in sorted(lines, key=lambda item: item[0])]


@pytest.mark.parametrize("settings", [[], ["rules.card-count=warn"], OTHER_SCHEDULER])
def test_a_replay_of_one_decision_equals_its_part_of_a_replay_of_the_log(tmp_path: Path, settings: list[str]):
    lines = _shuffled_pairs(30)
    client = console_client(write(tmp_path / "log", lines))
    replayer = Replayer(PARTS.snapshot(), try_out(PARTS, settings, None).snapshot())
    for number, line in enumerate(lines, 1):
        whole = replayer.replay(read_decision(line))
        one = replay(client, number=number, settings=settings)
        assert (one["verdict"], one["direction"]) == (whole.verdict, whole.direction), line
        assert whole.outcome is not None
        assert one["after"]["patch"] == list(whole.outcome.operations), line
        rules = [each.rule for each in whole.outcome.violations]
        assert [each["rule"] for each in one["after"]["findings"]] == rules, line


def test_a_replay_of_a_validation_repairs_the_pod_first(client: Any):
    """Without the repair the result differs, so the test above detects a missing repair."""
    alone = Replayer(PARTS.snapshot(), try_out(PARTS, OTHER_SCHEDULER, None).snapshot()).replay(read_decision(LINES[3]))
    assert alone.direction == "allowed -> refused"
    assert replay(client, number=4, settings=OTHER_SCHEDULER)["verdict"] == "same"


@each_case(
    ("body", "status", "message"),
    [
        ({"settings": ["rules.nothing=warn"]}, 422, "no rule is called"),
        ({"settings": ["x"]}, 422, "write KEY=VALUE"),
        ({"settings": ["rules.card-count=" + "x" * 1000]}, 400, "settings"),
        ({"settings": ["a=b"] * 101}, 400, "settings"),
        ({"split": 0}, 400, "split"),
        ({"number": 99}, 404, "no decision 99"),
        ({"number": "x"}, 404, "no decision x"),
        ({"limit": 1}, 400, "limit"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(client: Any, body: Any, status: int, message: str):
    assert message in replay(client, status, **body)["message"]


def test_without_an_audit_log_there_is_nothing_to_replay():
    client = console_client(None)
    assert "--audit-log FILE" in replay(client, 404, number=1)["message"]


# --- the pages --------------------------------------------------------------------------------------------------------


def test_the_page_of_a_decision_replays_it(client: Any):
    (link,) = [each for each in get_page(client, "/decisions/8").links("/decisions/") if each.endswith("/replay")]
    assert "The same" in get_page(client, link).text
    page = get_page(client, f"{link}?settings=rules.card-count%3Dwarn%0D%0A%0D%0Arules.host-access%3Ddeny&split=")
    assert "refused → allowed" in page.text
    assert "/decisions/7" in page.links("/decisions/")
    assert "rules.card-count=warn\nrules.host-access=deny" in page.text  # the form keeps it
    assert "write KEY=VALUE" in get_page(client, f"{link}?settings=x", 422).text


def test_the_form_keeps_invalid_input_and_shows_the_problem(client: Any):
    page = get_page(client, "/decisions/8/replay?settings=rules.card-cuont%3Dwarn&split=4", 422)
    assert "Cannot be replayed." in page.text
    assert "rules.card-cuont=warn" in page.text
    assert {each["name"]: each.get("value") for each in page.all("input")}["split"] == "4"
    assert "no such key" in get_page(client, "/decisions/8/replay?setings=x", 400).text
