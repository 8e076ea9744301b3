"""Audit lines for tests, and a console that shows them."""

from pathlib import Path
from typing import Any

import orjson

from tests.console.conftest import OPEN, Fixed, sample_parts
from tests.console.pages import Page
from webhook.audit.follower import LogFollower
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.settings.files import SAMPLES

LINES = [orjson.loads(line) for line in (SAMPLES / "audit.jsonl").read_bytes().splitlines()]
API = "/api/v1/decisions"
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}\u202e\u2066\x00\x1b[31m\n*?[a]'


def write(file: Path, lines: list[Any]) -> LogFollower:
    """A log of some lines, read."""
    file.write_bytes(b"".join([orjson.dumps(line) + b"\n" for line in lines]))
    return read(file)


def read(file: Path) -> LogFollower:
    """A log as it is, read; closed behind the test."""
    journal = LogFollower(str(file))
    OPEN.append(journal)
    journal.look()
    return journal


def browse(journal: LogFollower | None) -> Any:
    """A console on a journal, asked as a browser would."""
    return create_app(ConsoleState(Fixed(sample_parts()), journal)).test_client()


def ask(client: Any, query: str = "", status: int = 200) -> dict[str, Any]:
    """What the API answers about decisions."""
    answer = client.get(f"{API}{query}")
    assert answer.status_code == status, answer.text
    return answer.json


def numbers(client: Any, query: str) -> list[int]:
    """The numbers of those that match."""
    return [entry["number"] for entry in ask(client, query)["entries"]]


def look(client: Any, address: str, status: int = 200) -> Page:
    """A page, whatever it is."""
    answer = client.get(address)
    assert answer.status_code == status, answer.text[:2000]
    return Page(answer.text)
