"""The statements of docs/console.md hold for a console that is started as the page shows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.console.audit_lines import console_client, read
from tests.console.conftest import OPEN, Fixed, sample_parts
from tests.docs.commands import PAGES, ROOT, is_curl
from tests.docs.console import as_shown, curl, get
from tests.docs.generated import DOCS
from tests.docs.markdown import blocks, prose, spans, tables, targets
from tests.docs.test_generated import RENEW
from webhook.audit.store import Retention
from webhook.console import guard
from webhook.console.app import create_app
from webhook.console.state import ConsoleState

PAGE = (DOCS / "console.md").read_text()
NOT_TESTED = {
    "connection refused",
    "the console is busy with other requests",
}  # a message of kubectl, and one that takes seconds to cause


@pytest.fixture(scope="module")
def console() -> Iterator[int]:
    with as_shown() as port:
        yield port


def test_curl_prints_the_shown_output(console: int):
    shown = [block for block in blocks(PAGE, "console") if is_curl(block)]
    assert shown
    for block in shown:
        command, _, output = block.text.removeprefix("$ ").partition("\n")
        assert f"{curl(command, console)}\n" == output, RENEW


def test_the_description_of_the_api_is_at_the_shown_path(console: int):
    (path,) = {span for span in spans(prose(PAGE)) if span.endswith("/openapi.json")}
    status, _, described = get(console, path).partition(": ")
    assert (status, json.loads(described)["openapi"][:2]) == ("200", "3.")


def quoted() -> dict[str, str]:
    """The messages that the page quotes, each with the text before it."""
    (table,) = [table for table in tables(PAGE) if table[0][0] == "message"]
    cells = [row[0].split('"') for row in table[1:]]
    return {cell[1]: cell[0] for cell in cells if len(cell) > 1}


def test_quoted_messages_are_those_of_the_console(console: int, tmp_path: Path):
    found = {
        "this console answers only as localhost": get(console, "/", Host="elsewhere.example"),
        "a page of another site must not send requests to this console": get(
            console, "/api/v1/fleet", Origin="http://elsewhere.example"
        ),
        "No decision matches": get(console, "/decisions?name=no-such-pod"),
        "not checked": get(console, "/health?wait=20"),
    }
    without = create_app(ConsoleState(Fixed(replace(sample_parts(), nodes=None)))).test_client()
    found |= {
        "The console reads no audit log": _text(without, "/decisions"),
        "The fleet is not known": _text(without, "/fleet"),
        "What pods hold is not known": _text(without, "/fleet"),
    }
    absent = console_client(read(tmp_path / "audit.jsonl"))
    found["is not there yet"] = found["No decision is recorded yet"] = _text(absent, "/decisions")
    OPEN.pop().stop()
    assert quoted().keys() - NOT_TESTED == found.keys()
    for message, response in found.items():
        assert message in response.replace("&#39;", "'")
        status = quoted()[message].partition(":")[0]
        assert response.startswith(status if status.isdigit() else "200")


def _text(client: Any, path: str) -> str:
    response = client.get(path)
    return f"{response.status_code}: {response.text}"


def test_stated_limits_are_those_of_the_code():
    text = " ".join(PAGE.split())
    assert f"latest {Retention().decisions:,} decisions, at most {Retention().bytes >> 20} MiB" in text
    assert f", a request at most {guard.MAX_BODY >> 20} MiB" in text
    assert guard.MAX_COMPUTING == 2


def test_every_image_is_shown():
    pictures = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    shown = {Path(target).name for file in PAGES for target in targets(prose(file.read_text())) if "images/" in target}
    assert shown == pictures != set()
