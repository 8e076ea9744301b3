"""A reflector against a server over HTTP: it follows the collection and recovers from every failure."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.clock import Clock
from tests.cluster.apiserver import NODES, ApiServer
from tests.cluster.faults import drop, garbage, hang, sends, status
from tests.server.program import SECONDS, until
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.cluster.pace import Pace
from webhook.cluster.reflector import Access, Reflector, State
from webhook.errors import ClusterError

Start = Callable[..., Reflector[str]]
FIRST = 0.03  # seconds before the second attempt


def node(name: str, text: str = "") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": {"text": text}}}


def text_of(raw: dict[str, Any]) -> str | None:
    """Keep the text; ignore a node whose text is `none`."""
    text: str = raw["metadata"]["annotations"]["text"]
    return None if text == "none" else text


@pytest.fixture
def start(credentials: Credentials) -> Iterator[Start]:
    reflectors: list[Reflector[str]] = []

    def begin(
        *, listed: bool = True, stale_after: float = 600.0, optional: bool = False, **access: Any
    ) -> Reflector[str]:
        given = Access(**({"connect": lambda: Client(credentials, SECONDS), "pace": Pace(first_delay=FIRST)} | access))
        made: Reflector[str] = Reflector(given, "nodes", NODES, optional=optional)
        made.stale_after = stale_after
        made.follow(text_of)
        reflectors.append(made)
        if listed:
            until(lambda: made.version)
        return made

    yield begin
    for made in reflectors:
        made.stop()
    until(lambda: not any(made.running for made in reflectors))


def listed(api: ApiServer) -> int:
    return len(api.requests_for(NODES, watch=False))


def watched(api: ApiServer) -> int:
    return len(api.requests_for(NODES, watch=True))


def test_it_follows_added_changed_and_deleted_objects(api: ApiServer, start: Start):
    api.put(NODES, node("a", "1"), node("b", "2"), node("dull", "none"))
    reflector = start()
    assert reflector.objects == {"a": "1", "b": "2"}
    api.put(NODES, node("c", "3"), node("a", "one"))
    api.delete(NODES, "b")
    until(lambda: reflector.objects == {"a": "one", "c": "3"})
    api.put(NODES, node("a", "none"))
    until(lambda: reflector.objects == {"c": "3"})
    assert (listed(api), watched(api)) == (1, 1)


def test_an_event_without_a_difference_does_not_change_the_version(api: ApiServer, start: Start):
    api.put(NODES, node("a", "1"), node("dull", "none"))
    reflector = start()
    assert reflector.version == 1
    confirmed = reflector.confirmed
    api.put(NODES, node("a", "1") | {"status": {"phase": "x"}}, node("dull", "none"), node("duller", "none"))
    api.delete(NODES, "duller")
    until(lambda: reflector.confirmed > confirmed)
    api.put(NODES, node("a", "2"))
    until(lambda: reflector.objects == {"a": "2"})
    until(lambda: reflector.version == 2)


@pytest.mark.parametrize("fault", [sends(b'{"type":"ERROR","object":{"code":410}}\n'), status(410)])
def test_a_watch_that_is_gone_is_followed_by_a_list_without_a_warning(
    api: ApiServer, start: Start, fault: Any, caplog: pytest.LogCaptureFixture
):
    api.put(NODES, node("a"))
    api.fail(NODES, fault, 1, watch=True)
    reflector = start()
    until(lambda: watched(api) == 2)
    assert listed(api) == 2
    assert (reflector.version, reflector.problem) == (1, None), "the same nodes do not change the version"
    assert caplog.messages == []


def test_a_list_that_is_gone_starts_again(api: ApiServer, start: Start):
    api.put(NODES, *[node(f"n{number}") for number in range(60)])

    def compact_after_the_page(handler: Any) -> None:
        page = api.page(api.requests[-1])
        api.compact()
        handler.respond(200, json.dumps(page).encode())

    api.fail(NODES, compact_after_the_page, 1)
    reflector = start()
    assert (len(reflector.objects), listed(api)) == (60, 4)


def test_a_bookmark_advances_the_resource_version(api: ApiServer, start: Start):
    api.fail(NODES, sends(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2000"}}}\n'), 1, watch=True)
    start()
    until(lambda: watched(api) == 2)
    assert [watch.query["resourceVersion"] for watch in api.requests_for(NODES, watch=True)] == ["1000", "2000"]
    assert listed(api) == 1


def test_a_watch_ends_in_time_to_confirm_the_cache_and_restarts(api: ApiServer, start: Start):
    reflector = start(stale_after=4)
    assert reflector.version == 1, "an empty list is the first version"
    confirmed = reflector.confirmed
    until(lambda: watched(api) >= 2)
    assert {watch.query["timeoutSeconds"] for watch in api.requests_for(NODES, watch=True)} == {"1"}
    assert reflector.confirmed > confirmed
    assert (listed(api), reflector.problem) == (1, None)


def test_a_long_silence_is_followed_by_a_list(api: ApiServer, start: Start):
    clock = Clock()
    reflector = start(pace=Pace(first_delay=FIRST, clock=clock))
    until(lambda: watched(api) == 1)
    clock.now += 151
    api.break_watches()
    until(lambda: listed(api) == 2)
    until(lambda: reflector.problem is None)


@pytest.mark.parametrize(
    "fault",
    [
        drop,
        garbage,
        status(403),
        status(500),
        sends(b"garbage\n"),
        sends(b'{"type":"SURPRISE","object":{"metadata":{"resourceVersion":"1000"}}}\n'),  # is ignored
        sends(b'{"type":"ADDED","object":{"metadata":{}}}\n'),
        sends(b'{"type":"BOOKMARK","object":{"metadata":{}}}\n'),
        sends(b'{"type":"BOOKMARK","object":{"metadata":5}}\n'),
        sends(),
    ],
)
def test_a_failed_watch_is_retried_and_misses_no_change(api: ApiServer, start: Start, fault: Any):
    api.put(NODES, node("a", "1"))
    api.fail(NODES, fault, 2, watch=True)
    reflector = start()
    api.put(NODES, node("a", "2"))
    until(lambda: reflector.objects == {"a": "2"} and reflector.problem is None)
    assert (listed(api), watched(api)) == (1, 3)


@pytest.mark.parametrize("fault", [drop, garbage, status(403), status(503), status(410)])
def test_a_failed_list_is_retried(api: ApiServer, start: Start, fault: Any):
    api.put(NODES, node("a"))
    api.fail(NODES, fault, 2)
    reflector = start(listed=False)
    until(lambda: reflector.objects)
    assert listed(api) == 3


def test_outages_at_the_start_and_later_are_survived_and_logged_once(
    api: ApiServer, start: Start, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    api.put(NODES, node("a", "1"))
    api.stop()
    reflector = start(listed=False)
    until(lambda: reflector.problem)
    time.sleep(0.2)
    assert reflector.confirmed is None
    api.start()
    until(lambda: reflector.objects == {"a": "1"} and watched(api))
    api.stop()
    until(lambda: reflector.problem)
    time.sleep(0.2)
    assert reflector.objects == {"a": "1"}, "the cache keeps the last objects"
    api.put(NODES, node("a", "2"))
    api.start()
    until(lambda: reflector.objects == {"a": "2"})
    broke, refused, again = (
        f"nodes: {api.url}{NODES}: the connection broke; retrying until the API server answers",
        f"nodes: {api.url}{NODES}: Connection refused; retrying until the API server answers",
        "nodes: the API server answers again",
    )
    until(lambda: caplog.messages.count(again) == 2)
    messages = [message for message in caplog.messages if message != refused]
    assert messages == [again, broke, again]
    assert 1 <= caplog.messages.count(refused) <= 2, "one line per outage, not per attempt"


@pytest.mark.parametrize("fault", [status(500), sends()])
def test_requests_to_a_failing_server_become_less_frequent(api: ApiServer, start: Start, fault: Any):
    """A server that ends each watch at once counts as failing, too."""
    api.fail(NODES, fault)
    start(listed=False)
    until(lambda: len(api.requests) >= 6)
    pauses = [later.at - earlier.at for earlier, later in pairwise(api.requests)]
    assert [pause for number, pause in enumerate(pauses) if pause < FIRST * 2**number / 2] == []


def test_retry_after_is_respected(api: ApiServer, start: Start):
    api.fail(NODES, status(429, {"Retry-After": "1"}), 1)
    start()
    first, second = [request.at for request in api.requests[:2]]
    assert second - first >= 1


def test_an_unexpected_error_does_not_stop_it(api: ApiServer, start: Start, caplog: pytest.LogCaptureFixture):
    api.put(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "no annotations"}})
    reflector = start(listed=False)
    until(lambda: "nodes: a bug" in caplog.messages)
    api.delete(NODES, "no annotations")
    until(lambda: reflector.confirmed)


def test_missing_credentials_are_read_again(api: ApiServer, start: Start, credentials: Credentials):
    content = credentials.kubeconfig.read_text()
    credentials.kubeconfig.unlink()
    reflector = start(listed=False)
    until(lambda: "no credentials" in (reflector.problem or ""))
    credentials.kubeconfig.write_text(content)
    until(lambda: reflector.confirmed)


def test_it_starts_once(api: ApiServer, start: Start, credentials: Credentials):
    running = start()
    running.follow(text_of)
    running.stop()
    until(lambda: not running.running)
    stopped: Reflector[str] = Reflector(Access(lambda: Client(credentials)), "nodes", NODES)
    stopped.stop()
    for one in (running, stopped):
        one.follow(text_of)
        assert not one.running
    assert listed(api) == 1


def test_another_key_lists_again_and_the_copy_stays_until_then(api: ApiServer, start: Start):
    api.put(NODES, node("a", "1"))
    calls: list[int] = []
    reflector = start(changed=lambda: calls.append(reflector.version))
    until(lambda: watched(api) == 1)
    api.fail(NODES, status(503), watch=False)
    reflector.follow(str, key="other")
    until(lambda: reflector.problem)
    assert reflector.copy == (None, {"a": "1"})
    api.heal()
    until(lambda: reflector.copy.key == "other")
    assert reflector.objects["a"].startswith("{'apiVersion'")
    until(lambda: watched(api) == 2)
    assert calls[-1] == reflector.version == 2
    reflector.follow(str, key="other")
    assert not api.requests_for(NODES)[-1].query.get("continue")
    assert (reflector.problem, watched(api)) == (None, 2), "nothing happens for the same key"


def test_it_calls_back_when_something_changes(api: ApiServer, start: Start):
    calls: list[tuple[int, bool]] = []
    begun = threading.Event()
    reflector = start(
        listed=False, changed=lambda: begun.wait() and calls.append((reflector.version, reflector.failing))
    )
    begun.set()
    until(lambda: watched(api) == 1)
    api.put(NODES, node("a", "1"))
    until(lambda: reflector.objects)
    api.stop()
    until(lambda: reflector.failing)
    api.put(NODES, node("b", "2"))
    api.start()
    until(lambda: reflector.version == 3)
    until(lambda: calls[-1] == (3, False))
    known, broken = [(1, False), (2, False)], (2, True)
    assert calls[:3] == [*known, broken]
    assert calls[-2:] == [(3, True), (3, False)]
    assert set(calls[3:-2]) <= {broken}, "the connection breaks, and may then be refused"


@pytest.mark.parametrize(("code", "missing"), [(403, False), (404, True)])
def test_what_may_be_absent_is_no_problem(api: ApiServer, start: Start, code: int, missing: object):
    api.fail(NODES, status(code))
    reflector = start(listed=False, optional=True)
    until(lambda: reflector.state() is State.UNKNOWN)
    assert (reflector.missing, reflector.failing, reflector.objects) == (missing, False, {})
    assert str(code) in reflector.problem


def test_a_collection_can_be_listed_once(api: ApiServer, credentials: Credentials):
    def once(*, optional: bool) -> Reflector[str]:
        return Reflector(Access(lambda: Client(credentials), once=True), "nodes", NODES, optional=optional)

    api.put(NODES, node("a", "1"), node("dull", "none"))
    found = once(optional=False)
    found.follow(text_of)
    assert (found.objects, found.state(), found.running) == ({"a": "1"}, State.KNOWN, False)
    api.fail(NODES, status(403))
    with pytest.raises(ClusterError, match="403"):
        once(optional=False).follow(text_of)
    absent = once(optional=True)
    absent.follow(text_of)
    assert (absent.state(), absent.objects) == (State.UNKNOWN, {})
    assert watched(api) == 0


@pytest.mark.parametrize("fault", [None, hang, status(429, {"Retry-After": "100"})])
def test_it_stops_at_once(api: ApiServer, start: Start, fault: Any):
    if fault is not None:
        api.fail(NODES, fault, watch=fault is hang)
    reflector = start(listed=False)
    until(lambda: api.requests)
    time.sleep(0.2)
    reflector.stop()
    if fault is hang:
        api.stop()  # a request without a response cannot be interrupted; the thread is a daemon
    until(lambda: not reflector.running)


def test_a_jump_of_the_wall_clock_has_no_effect(api: ApiServer, start: Start, monkeypatch: pytest.MonkeyPatch):
    reflector = start()
    confirmed = reflector.confirmed
    monkeypatch.setattr(time, "time", lambda: 0.0)
    api.put(NODES, node("a"))
    until(lambda: reflector.objects)
    assert confirmed <= reflector.confirmed <= time.monotonic()
