"""Logs with hostile text, with binary data, and logs that change while they are read."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.audit_lines import HOSTILE, LINES, console_client, get_decisions, get_page, numbers, read, write
from tests.console.pages import Page
from tests.questions import is_removed

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def _hostile(text: str) -> list[Any]:
    finding = {"rule": text, "level": "deny", "path": text, "message": text}
    patch = [{"op": text, "path": text, "value": {text: text}}, {"op": "move", "from": text, "path": "/" + text}, {}]
    names = dict.fromkeys(("id", "uid", "operation", "user", "namespace", "kind", "name"), text)
    kept = {"pod": {"metadata": {"annotations": {text: text}}}, text: [text]}
    digests = {"policy": text, text: 1}
    line = {**LINES[1], **names, "findings": [finding], "patch": patch, "request": kept, "digests": digests}
    of_pod = {"operation": "CREATE", "kind": "Pod", "patch": patch[:1]}
    return [
        line,
        {**line, "findings": [finding] * (400 if len(text) < 1000 else 20)},
        {**line, "allowed": True, "digests": {"config": {"a": [text]}}},
        {**LINES[0], **names, **of_pod},
        {**LINES[0], **names, **of_pod, "request": {"pod": {"spec": text}}},
        {**LINES[1], **names, **of_pod, "findings": [{**finding, "level": "warn"}]},
    ]


REPLAYS = ("1/replay?settings=rules.card-count%3Dwarn", "4/replay?split=4", "5/replay?split=4", "6/replay?split=4")
ADDRESSES = ["/decisions", *(f"/decisions/{at}" for at in ("1", "2", "3", *(() if is_removed("replay") else REPLAYS)))]


@pytest.fixture(scope="module")
def tame(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The elements of each page if its texts are ordinary words."""
    client = console_client(write(tmp_path_factory.mktemp("tame") / "log", _hostile("tame")))
    return {address: get_page(client, address).shape for address in ADDRESSES}


@pytest.mark.parametrize(
    "text",
    [HOSTILE, HOSTILE * 100, "javascript:alert(1)", "../../%2e%2e/?a=b&c#d"],
    ids=["hostile", "long", "script", "path"],
)
def test_hostile_text_is_only_text(tmp_path: Path, tame: dict[str, Any], text: str):
    client = console_client(write(tmp_path / "log", _hostile(text)))
    for address in ADDRESSES:
        response = client.get(address)
        assert response.status_code == 200
        assert CONTROL.search(response.text) is None
        assert Page(response.text).shape <= tame[address]
        assert len(response.text) < 1_000_000
    page = get_page(client, "/decisions")
    for link in page.links("/decisions"):
        assert client.get(link).status_code in (200, 404)
    assert get_decisions(client, "/1")["decision"]["name"] == text


def test_links_filter_by_the_exact_name(tmp_path: Path):
    lines = [{**LINES[1], "namespace": name} for name in ("team[a]*", "team[a]x", "teama")]
    client = console_client(write(tmp_path / "log", lines))
    link, *_ = get_page(client, "/decisions/1").links("/decisions?namespace")
    assert numbers(client, link.removeprefix("/decisions")) == [1]


def test_deep_and_large_requests_are_shortened(tmp_path: Path):
    deep: Any = "end"
    for _ in range(240):
        deep = {"a": deep}
    odd = ({"request": {"pod": deep}}, {"request": {"pod": {"spec": "x" * 400_000}}}, {"durationUs": 2**63})
    client = console_client(write(tmp_path / "log", [LINES[0] | each for each in odd]))
    assert "…" in get_page(client, "/decisions/1").text
    assert "more characters" in get_page(client, "/decisions/2").text
    get_page(client, "/decisions/3")
    assert get_decisions(client, "/1")["number"] == 1


@pytest.mark.parametrize("time", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_the_earliest_and_the_latest_times_are_shown(tmp_path: Path, time: str):
    client = console_client(write(tmp_path / "log", [*LINES, {**LINES[1], "time": time}]))
    page = get_page(client, "/decisions")
    assert "17 decisions" in page.text
    first, *_, last = page.links("/decisions?since")
    for link in (first, last, "/decisions/17"):
        get_page(client, link)


def test_a_binary_log_has_no_decisions_and_a_missing_one_is_reported(tmp_path: Path):
    (tmp_path / "log").write_bytes(os.urandom(200_000))
    page = get_page(console_client(read(tmp_path / "log")), "/decisions")
    assert "are not decisions and left out" in page.text
    assert "No decision is recorded yet" in page.text
    page = get_page(console_client(read(tmp_path / "<b>log")), "/decisions")
    assert "<b>log is not there yet" in page.text
    assert ("b", "") not in page.shape
