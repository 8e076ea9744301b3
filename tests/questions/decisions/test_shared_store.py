"""A console on a database that other processes fill shows new decisions and reports problems of the database."""

from pathlib import Path

from tests.audit import sample
from tests.console.audit_lines import console_client, get_decisions, get_page
from tests.questions import is_removed
from webhook.audit.database import Database
from webhook.audit.decision import parse_decision
from webhook.audit.follower import DecisionSource
from webhook.audit.store import DecisionStore

LINES = [(line, decision) for line in sample.lines() if (decision := parse_decision(line)) is not None]


def test_decisions_that_are_added_later_are_shown_and_kept(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/decisions.db"
    client = console_client(DecisionSource(DecisionStore(database=Database.at(url))))
    assert "makes the tables when it starts" in get_decisions(client, status=503)["message"]
    database = Database.at(url)
    database.make_tables()
    store = DecisionStore(database=database)
    for done in range(0, len(LINES), 4):
        store.add(LINES[done : done + 4])
        assert get_decisions(client)["newest"] == min(done + 4, len(LINES))
    store.close()
    again = console_client(DecisionSource(DecisionStore(database=Database.at(url))))
    assert get_decisions(again)["entries"] == get_decisions(client)["entries"]
    assert get_decisions(again, "/summary")["decisions"] == len(LINES)
    assert get_decisions(again, "/1")["decision"]["id"] == LINES[0][1].id


def test_an_unreachable_database_is_named_without_its_password():
    database = Database.at("postgresql://shipper:s3cret@127.0.0.1:1/decisions")
    client = console_client(DecisionSource(DecisionStore(database=database)))
    message = get_decisions(client, status=503)["message"]
    assert message.startswith("the store 127.0.0.1:1/decisions: ")
    assert "Connection refused" in message
    texts = [message, get_page(client, "/decisions", 503).text]
    texts += [] if is_removed("doctor") else [get_page(client, "/health").text]
    for text in texts:
        assert "the store 127.0.0.1:1/decisions" in text
        assert "s3cret" not in text
