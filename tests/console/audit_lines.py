"""Audit lines for tests, and a console that shows them."""

from pathlib import Path
from typing import Any

import orjson

from tests.audit import sample
from tests.console.conftest import OPEN, client_of
from tests.console.pages import Page, get_json
from webhook.audit.follower import LogFollower

LINES = [orjson.loads(line) for line in sample.lines(sample.POLICY)]
API = "/api/v1/decisions"
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>{{7*7}}\u202e\u2066\x00\x1b[31m\n*?[a]'


def write(file: Path, lines: list[Any]) -> LogFollower:
    file.write_bytes(b"".join([orjson.dumps(line) + b"\n" for line in lines]))
    return read(file)


def read(file: Path) -> LogFollower:
    """Read a log; it is closed after the test."""
    follower = LogFollower(str(file))
    OPEN.append(follower)
    follower.look()
    return follower


def console_client(follower: LogFollower | None) -> Any:
    return client_of(log=follower, policy=sample.POLICY)


def get_decisions(client: Any, query: str = "", status: int = 200) -> dict[str, Any]:
    return get_json(client, f"/decisions{query}", status)


def numbers(client: Any, query: str) -> list[int]:
    return [entry["number"] for entry in get_decisions(client, query)["entries"]]


def get_page(client: Any, address: str, status: int = 200) -> Page:
    response = client.get(address)
    assert response.status_code == status, response.text[:2000]
    return Page(response.text)
