"""A reflector against a real server: it follows, and survives everything."""

import logging
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.kube.apiserver import NODES, ApiServer
from tests.kube.faults import drop, garbage, hang, sends, status
from tests.server.program import until
from webhook.kube import reflector as module
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.kube.reflector import Reflector

Start = Callable[..., Reflector[str]]
FIRST = 0.03  # seconds before the second attempt


def node(name: str, text: str = "") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"text": text}}}


def text_of(raw: dict[str, Any]) -> str | None:
    """Keep the text, and nothing of a node whose text is `none`."""
    text: str = raw["metadata"]["annotations"]["text"]
    return None if text == "none" else text


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_DELAY", FIRST)


@pytest.fixture
def start(credentials: Credentials) -> Iterator[Start]:
    """Start a mirror of the nodes; its thread has ended when the test has."""
    reflectors: list[Reflector[str]] = []

    def begin(*, listed: bool = True, **attributes: Any) -> Reflector[str]:
        made: Reflector[str] = Reflector("nodes", NODES, lambda: Client(credentials), text_of)
        for name, value in attributes.items():
            setattr(made, name, value)
        made.start()
        reflectors.append(made)
        if listed:
            until(lambda: made.confirmed)
        return made

    yield begin
    for made in reflectors:
        made.stop()
    until(lambda: not any(made.running for made in reflectors))


def listed(api: ApiServer) -> int:
    return len(api.asked(NODES, watch=False))


def watched(api: ApiServer) -> int:
    return len(api.asked(NODES, watch=True))


def test_it_follows_what_is_added_changed_and_removed(api: ApiServer, start: Start):
    api.put(NODES, node("a", "1"), node("b", "2"), node("dull", "none"))
    mirror = start()
    assert mirror.objects == {"a": "1", "b": "2"}
    api.put(NODES, node("c", "3"), node("a", "one"))
    api.delete(NODES, "b")
    until(lambda: mirror.objects == {"a": "one", "c": "3"})
    api.put(NODES, node("a", "none"))
    until(lambda: mirror.objects == {"c": "3"})
    assert (listed(api), watched(api)) == (1, 1)


def test_what_makes_no_difference_makes_no_version(api: ApiServer, start: Start):
    api.put(NODES, node("a", "1"), node("dull", "none"))
    mirror = start()
    assert mirror.version == 1
    heard = mirror.confirmed
    api.put(NODES, node("a", "1") | {"status": {"phase": "x"}}, node("dull", "none"), node("duller", "none"))
    api.delete(NODES, "duller")
    until(lambda: mirror.confirmed > heard)
    api.put(NODES, node("a", "2"))
    until(lambda: mirror.objects == {"a": "2"})
    assert mirror.version == 2


def test_an_empty_collection_is_news(api: ApiServer, start: Start):
    assert start().version == 1


def test_lists_come_in_pages(api: ApiServer, start: Start):
    api.put(NODES, *[node(f"n{number}") for number in range(120)])
    assert len(start().objects) == 120
    assert listed(api) == 3


@pytest.mark.parametrize("fault", [sends(b'{"type":"ERROR","object":{"code":410}}\n'), status(410)])
def test_a_watch_that_is_gone_brings_a_list_and_no_complaint(
    api: ApiServer, start: Start, fault: Any, caplog: pytest.LogCaptureFixture
):
    api.put(NODES, node("a"))
    api.fail(NODES, fault, 1, watch=True)
    mirror = start()
    until(lambda: watched(api) == 2)
    assert listed(api) == 2
    assert (mirror.version, mirror.problem) == (1, None), "the same nodes are no change"
    assert caplog.messages == []


def test_a_list_that_is_gone_is_begun_anew(api: ApiServer, start: Start):
    api.put(NODES, *[node(f"n{number}") for number in range(60)])
    api.fail(f"{NODES}", lambda handler: (api.compact(), api.heal(), handler.do_GET()), 1)
    mirror = start(listed=False)
    until(lambda: mirror.confirmed)
    assert len(mirror.objects) == 60


def test_a_broken_watch_continues_where_it_was(api: ApiServer, start: Start):
    mirror = start()
    api.put(NODES, node("a", "1"))
    until(lambda: mirror.objects)
    api.break_watches()
    api.put(NODES, node("a", "2"))
    until(lambda: mirror.objects == {"a": "2"})
    assert listed(api) == 1
    assert watched(api) == 2


def test_bookmarks_move_the_place_to_go_on_from(api: ApiServer, start: Start):
    api.bookmark_seconds = 0.05
    mirror = start()
    heard = mirror.confirmed
    api.put("/api/v1/pods", node("elsewhere"))
    until(lambda: mirror.confirmed > heard)
    api.compact()
    time.sleep(0.2)
    api.break_watches()
    until(lambda: watched(api) == 2)
    api.put(NODES, node("a"))
    until(lambda: mirror.objects)
    assert listed(api) == 1, "without the bookmark its place would have been gone"


def test_a_watch_that_ends_in_good_order_is_news_and_the_next_begins(api: ApiServer, start: Start):
    mirror = start(watch_seconds=1)
    heard = mirror.confirmed
    until(lambda: watched(api) == 2)
    assert mirror.confirmed > heard
    assert (listed(api), mirror.problem) == (1, None)


def test_a_long_silence_brings_a_list(api: ApiServer, start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.3)
    mirror = start()
    time.sleep(0.4)
    api.break_watches()
    until(lambda: listed(api) == 2)
    until(lambda: mirror.problem is None)


@pytest.mark.parametrize(
    "fault",
    [
        drop,
        garbage,
        status(403),
        status(500),
        sends(b"garbage\n"),
        sends(b'{"type":"ADDED","object":{"metadata":{}}}\n'),
        sends(b'{"type":"BOOKMARK","object":{"metadata":{}}}\n'),
        sends(b'{"type":"BOOKMARK","object":{"metadata":5}}\n'),
        sends(),
    ],
)
def test_a_watch_that_fails_is_tried_again_and_nothing_is_lost(api: ApiServer, start: Start, fault: Any):
    api.put(NODES, node("a", "1"))
    api.fail(NODES, fault, 2, watch=True)
    mirror = start()
    api.put(NODES, node("a", "2"))
    until(lambda: mirror.objects == {"a": "2"})
    assert (listed(api), watched(api)) == (1, 3)
    assert mirror.problem is None


def test_what_is_no_event_is_left_alone(api: ApiServer, start: Start):
    api.fail(NODES, sends(b'{"type":"SURPRISE","object":{"metadata":{"resourceVersion":"1000"}}}\n'), 1, watch=True)
    mirror = start()
    api.put(NODES, node("a"))
    until(lambda: mirror.objects)


@pytest.mark.parametrize("fault", [drop, garbage, status(403), status(503), status(410)])
def test_a_list_that_fails_is_tried_again(api: ApiServer, start: Start, fault: Any):
    api.put(NODES, node("a"))
    api.fail(NODES, fault, 2)
    mirror = start(listed=False)
    until(lambda: mirror.objects)
    assert listed(api) == 3


def test_a_server_that_is_dead_at_first_then_dies_and_comes_back(
    api: ApiServer, start: Start, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    api.put(NODES, node("a", "1"))
    api.stop()
    mirror = start(listed=False)
    until(lambda: mirror.problem)
    time.sleep(0.4)
    assert mirror.confirmed is None
    api.start()
    until(lambda: mirror.objects == {"a": "1"})
    api.stop()
    until(lambda: mirror.problem)
    time.sleep(0.4)
    assert mirror.objects == {"a": "1"}, "what is known stays known"
    api.put(NODES, node("a", "2"))
    api.start()
    until(lambda: mirror.objects == {"a": "2"})
    until(lambda: mirror.problem is None)
    broke, refused, again = (
        f"nodes: {api.url}{NODES}: the connection broke; retrying until the API server answers",
        f"nodes: {api.url}{NODES}: Connection refused; retrying until the API server answers",
        "nodes: the API server answers again",
    )
    told = [message for message in caplog.messages if message != refused]
    assert told == [again, broke, again]
    assert 1 <= caplog.messages.count(refused) <= 2, "a line each time, not each attempt"


@pytest.mark.parametrize("fault", [status(500), sends()])
def test_requests_to_a_failing_server_become_less_frequent(api: ApiServer, start: Start, fault: Any):
    """One that ends each watch at once fails, too, however politely it does so."""
    api.fail(NODES, fault)
    start(listed=False)
    until(lambda: len(api.requests) >= 6)
    pauses = [later.at - earlier.at for earlier, later in pairwise(api.requests)]
    assert [pause for number, pause in enumerate(pauses) if pause < FIRST * 2**number / 2] == []


def test_throttling_is_obeyed(api: ApiServer, start: Start):
    api.fail(NODES, status(429, {"Retry-After": "1"}), 1)
    start()
    first, second = [seen.at for seen in api.requests[:2]]
    assert second - first >= 1


def test_an_unexpected_error_does_not_end_it(api: ApiServer, start: Start, caplog: pytest.LogCaptureFixture):
    api.put(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "no annotations"}})
    mirror = start(listed=False)
    until(lambda: "nodes: a bug" in caplog.messages)
    api.delete(NODES, "no annotations")
    until(lambda: mirror.confirmed)


def test_credentials_that_are_lost_come_back(api: ApiServer, start: Start, credentials: Credentials):
    content = credentials.kubeconfig.read_text()
    credentials.kubeconfig.unlink()
    mirror = start(listed=False)
    until(lambda: "no credentials" in (mirror.problem or ""))
    credentials.kubeconfig.write_text(content)
    until(lambda: mirror.confirmed)


def test_it_starts_once(api: ApiServer, start: Start, credentials: Credentials):
    running = start()
    running.start()
    running.stop()
    until(lambda: not running.running)
    running.start()
    stopped: Reflector[str] = Reflector("nodes", NODES, lambda: Client(credentials), text_of)
    stopped.stop()
    stopped.start()
    assert not running.running
    assert not stopped.running
    assert listed(api) == 1


@pytest.mark.parametrize("fault", [None, hang, status(429, {"Retry-After": "100"})])
def test_it_stops_at_once(api: ApiServer, start: Start, fault: Any):
    if fault is not None:
        api.fail(NODES, fault, watch=fault is hang)
    mirror = start(listed=False)
    until(lambda: api.requests)
    time.sleep(0.2)
    mirror.stop()
    if fault is hang:
        api.stop()  # who has not answered at all cannot be interrupted; the thread is a daemon
    until(lambda: not mirror.running)


def test_a_jumping_clock_is_not_looked_at(api: ApiServer, start: Start, monkeypatch: pytest.MonkeyPatch):
    mirror = start()
    heard = mirror.confirmed
    monkeypatch.setattr(time, "time", lambda: 0.0)
    api.put(NODES, node("a"))
    until(lambda: mirror.objects)
    assert heard <= mirror.confirmed <= time.monotonic()
