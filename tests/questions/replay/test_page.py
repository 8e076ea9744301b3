"""A replay of one decision gives the same result as a replay of the whole log."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.audit import sample
from tests.console.audit_lines import LINES, console_client, get_page, write
from tests.console.conftest import sample_parts
from tests.console.pages import get_json
from tests.console.rows import page_rows
from webhook.audit.decision import read_decision
from webhook.questions.replay.answer import Replayer
from webhook.settings.trial import try_out

test_page = page_rows(__file__)

OTHER_SCHEDULER = ["schedulerName=other", "schedulerNames=[other]"]
PARTS = sample_parts(sample.POLICY)


@pytest.fixture
def client(tmp_path: Path):
    return console_client(write(tmp_path / "audit.jsonl", LINES))


def replay(client: Any, status: int = 200, number: Any = 1, **query: Any) -> dict[str, Any]:
    return get_json(client, f"/decisions/{number}/replay", status, **query)


def test_a_replay_with_the_original_inputs_changes_nothing(client: Any):
    assert {replay(client, number=number)["verdict"] for number in range(1, 17)} == {"same"}


def _shuffled_pairs(count: int) -> list[Any]:
    """Pairs of decisions of many pods in random order; some have another device config, so that a replay repairs the pod."""
    chance = random.Random(5)
    lines = []
    for number in range(count):
        pod = chance.randrange(8)
        identity = {"namespace": f"team-{chance.randrange(4)}", "user": f"user-{number}", "name": f"job-{number}"}
        for part in (0, 1):
            moment = {"time": f"2026-11-20T08:{number % 60:02}:0{part}Z", "id": f"{number}-{part}"}
            line = {**LINES[2 * pod + part], **identity, **moment}
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


@pytest.mark.parametrize("settings", [["rules.card-count=" + "x" * 1000], ["a=b"] * 101])
def test_settings_that_are_too_long_are_refused(client: Any, settings: list[str]):
    assert "settings" in replay(client, 400, settings=settings)["message"]


def test_the_page_of_a_decision_replays_it(client: Any):
    (link,) = [each for each in get_page(client, "/decisions/8").links("/decisions/") if each.endswith("/replay")]
    assert "The same" in get_page(client, link).text
