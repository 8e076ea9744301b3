"""A policy by its digest: its content, and when the policy changed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from tests.console.audit_lines import LINES, get_page, write
from tests.console.conftest import Fixed, client_of, sample_parts
from tests.questions import needs
from webhook.audit.database import Database
from webhook.audit.decision import parse_decision
from webhook.audit.follower import DecisionSource
from webhook.audit.store import MAX_POLICIES, DecisionStore
from webhook.policy.policy import parse_policy
from webhook.questions.policy.page import PolicyKeeper

OLD, NEW = "0123456789ab", parse_policy({"rules": {"card-count": "warn"}}, "test")
START = datetime(2026, 11, 20, 8, tzinfo=UTC)


def made_with(digest: object, hours: int) -> tuple[bytes, object]:
    line = LINES[1] | {"time": (START + timedelta(hours=hours)).isoformat(), "digests": {"policy": digest}}
    raw = orjson.dumps(line)
    return raw, parse_decision(raw)


@pytest.fixture
def store(tmp_path: Path):
    database = Database.at(f"sqlite:///{tmp_path}/decisions.db")
    database.make_tables()
    yield DecisionStore(database=database)
    database.close()


@needs("decisions")
@needs("doctor")
def test_a_decision_leads_to_its_policy_and_to_when_it_changed(store: DecisionStore):
    store.add([made_with(OLD, 1), made_with("<script>", 2), made_with(None, 2)])
    store.add([made_with(NEW.digest, 3), made_with(OLD, 0), made_with(OLD, 2)])
    client = client_of(log=DecisionSource(store), policy=NEW)
    assert get_page(client, "/decisions/1").links("/policies/") == [f"/policies/{OLD}", f"/policies/{NEW.digest}"]
    assert get_page(client, "/decisions/2").links("/policies/") == [f"/policies/{NEW.digest}"]
    assert get_page(client, "/health").links("/policies/") == [f"/policies/{NEW.digest}"]
    found = client.get(f"/api/v1/policies/{NEW.digest}").json
    assert (found["inUse"], found["text"]) == (True, "rules:\n  card-count: warn\n")
    uses = [(use["digest"], use["since"][:13]) for use in found["history"]]
    assert uses == [(NEW.digest, "2026-11-20T11"), (OLD, "2026-11-20T08")]
    assert "is not known" in get_page(client, f"/policies/{OLD}").text
    assert [client.get(f"/api/v1/policies/{text}").status_code for text in ("f" * 12, "x")] == [404, 400]


def test_the_content_is_kept_when_another_policy_comes_into_use(store: DecisionStore):
    settings = Fixed(sample_parts(NEW))
    keeper = PolicyKeeper(settings, store)
    keeper.keep()
    settings.inputs = sample_parts(parse_policy({}, "test"))
    keeper.keep()
    page = get_page(client_of(settings, DecisionSource(store)), f"/policies/{NEW.digest}")
    assert "card-count: warn" in page.text
    assert ", in use now" not in page.text


def test_the_latest_policies_are_kept(store: DecisionStore):
    store.add([made_with(f"{number:012x}", number) for number in range(MAX_POLICIES + 3)])
    assert [use.digest for use in store.policies()] == [f"{number:012x}" for number in range(MAX_POLICIES + 2, 2, -1)]


@needs("doctor")
def test_without_decisions_the_policy_in_use_is_shown(tmp_path: Path):
    client = client_of()
    (link,) = get_page(client, "/health").links("/policies/")
    assert "every key has its default" in get_page(client, link).text
    follower = write(tmp_path / "audit.jsonl", LINES)
    assert len(follower.store.policies()) == 1
