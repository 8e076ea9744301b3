"""No body blocks the event loop or takes long to review; refused bodies get a message."""

import asyncio
import contextlib
import gc
import json
import os
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import orjson
import pytest

from tests.hostile_bodies import MARKS, Body, bodies, containers, pod, review, template, vcjob, with_value
from tests.reviewing import snapshot
from tests.server.client import Connection, context
from tests.server.conftest import Start
from tests.server.program import until
from tests.server.reviews import GOOD, admission_response
from tests.settings.test_review import config_map
from tests.timing import within
from webhook import names
from webhook.audit.writer import AuditLogWriter
from webhook.server.admission import (
    DIRECT_BYTES,
    DIRECT_TEMPLATES,
    MAX_WAITING,
    MAX_WAITING_BEYOND,
    MAX_WAITING_SHARE,
    SETTING_BYTES,
    Admission,
    Sender,
)
from webhook.server.framing import MAX_BODY
from webhook.server.gunicorn import settle_memory
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.wire import codec

SLOWEST = 0.25  # seconds of work for one body
LONGEST = 0.05  # of the event loop's own work for it
NOISE = 2  # work takes longer where other processes share the processor's caches

# Bytes that parsing takes. One body is parsed at a time; a pod has 512 MiB: 100 for the process, 96 for connections, 8 for
# each body that waits.
MAX_GROWTH = 100 << 20

FILL = MAX_BODY - 4096
BODIES = [*bodies(), ("wide characters", lambda: with_value(b'"' + b"x" * (FILL - 4) + "\U0001f600".encode() + b'"'))]


VERIFIED = Sender("10.0.0.9", verified=True)
SNAPSHOT = snapshot("every-family", target={"volcano": "1.16.0"})


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def admission(tmp_path: Any, metrics: Metrics) -> Admission:
    return Admission(
        ServerState(SNAPSHOT), [AuditLogWriter(str(tmp_path / "audit.jsonl"), metrics.audit_failed)], metrics
    )


async def post(admission: Admission, path: str, body: bytes, sender: Sender = VERIFIED) -> tuple[int, Any]:
    """Review a body as the server does."""
    answered: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
    admission.review(path, body, lambda *answer: answered.set_result(answer), sender)
    status, response = await answered
    return status, orjson.loads(response)


@pytest.fixture(scope="module", autouse=True)
def settled() -> Any:
    """As in the server, the garbage collector skips objects that stay."""
    before = gc.get_threshold()
    settle_memory()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in BODIES])
def test_no_body_is_slow_blocks_the_event_loop_or_takes_much_memory(admission: Admission, make: Body):
    """Work is counted, not time: others may use the processor."""
    body = make()
    assert peak_growth(body) < MAX_GROWTH
    check_steps(body)

    def post_in_time(path: str) -> tuple[int, Any]:
        return within(NOISE * LONGEST, lambda: asyncio.run(post(admission, path, body)), time.thread_time)

    for path in ("/mutate", "/validate"):
        status, response = within(NOISE * SLOWEST, partial(post_in_time, path))
        assert status in (200, 400, 413)
        if status != 200:
            assert response["message"].startswith("vgpu-webhook: ")


def check_steps(body: bytes) -> None:
    """Fails if a function written in C, which holds the interpreter lock, runs long: it counts, parses, encodes, compares."""
    limit = NOISE * LONGEST
    most = within(limit, lambda: sum(map(body.count, MARKS)))
    if most > codec.MAX_STRUCTURAL_CHARS:
        return
    document = within(limit, lambda: orjson.loads(body))
    encoded = within(limit, lambda: orjson.dumps(document))
    if most <= codec.MAX_STRUCTURAL_CHARS_IN_DOUBT and encoded != body:
        within(limit, lambda: json.loads(body))


LARGE = pod(*containers(1000, {names.VGPU_NUMBER: "1", names.VGPU_MEMORY_PERCENTAGE: "50"}))
ROLES = vcjob(template(*containers(1, {names.VGPU_NUMBER: "1"})) for _ in range(DIRECT_TEMPLATES + 1))
POLICY = config_map("vgpu-webhook/vgpu-webhook-policy", "policy.yaml", "rules: {card-cuont: deny}")
SETTING = review(POLICY, kind="ConfigMap").replace(b'"uid":"u"', b'"uid":"u","name":"vgpu-webhook-policy"')


@pytest.mark.parametrize(("path", "slow"), [("/mutate", LARGE), ("/validate", ROLES), ("/settings", SETTING)])
def test_small_reviews_are_answered_while_a_large_one_or_a_setting_runs(admission: Admission, path: str, slow: bytes):
    small = pod(*containers(1, {names.VGPU_NUMBER: "1"}))
    assert max(len(small), len(ROLES)) < DIRECT_BYTES < len(LARGE)
    order: list[str] = []

    async def noted(name: str, path: str, body: bytes) -> None:
        status, _ = await post(admission, path, body)
        assert status == 200
        order.append(name)

    async def both() -> None:
        await asyncio.gather(noted("slow", path, slow), *[noted("small", "/mutate", small) for _ in range(20)])

    asyncio.run(both())
    assert order == ["small"] * 20 + ["slow"]


@pytest.mark.parametrize(("setting", "pod"), [(SETTING, 200), (SETTING + b" " * SETTING_BYTES, 429)])
def test_no_pod_waits_for_settings_but_for_those_that_are_not_read(admission: Admission, setting: bytes, pod: int):
    async def all_of_them() -> list[int]:
        settings = [post(admission, "/settings", setting) for _ in range(MAX_WAITING + 2)]
        responses = await asyncio.gather(*settings, post(admission, "/mutate", LARGE))
        return [status for status, _ in responses]

    assert asyncio.run(all_of_them()) == [200] * MAX_WAITING + [429] * 2 + [pod]


def test_large_and_small_reviews_are_recorded_once_each(admission: Admission, metrics: Metrics, tmp_path: Any):
    """Two threads record them."""
    sizes = [*range(900, 900 + MAX_WAITING), *[1] * 500]
    reviews = [pod(*containers(size, {names.VGPU_NUMBER: "1"})) for size in sizes]

    async def all_of_them() -> None:
        responses = await asyncio.gather(*[post(admission, "/mutate", body) for body in reviews])
        assert {status for status, _ in responses} == {200}

    asyncio.run(all_of_them())
    lines = [orjson.loads(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines()]
    assert len(lines) == len(sizes)
    labels = 'dry_run="false",endpoint="mutate",operation="CREATE",outcome="repaired"'
    counted = f"vgpu_webhook_requests_total{{{labels}}} {len(sizes)}.0"
    assert counted in metrics.exposition().decode()


@pytest.mark.parametrize(
    ("senders", "most"),
    [
        ([VERIFIED], MAX_WAITING),
        ([Sender("10.0.0.1", known=True), Sender("10.0.0.2", known=True)], MAX_WAITING),
        ([Sender("10.0.0.1", known=True)], MAX_WAITING_SHARE),
        ([Sender("10.0.0.1"), Sender("10.0.0.2")], MAX_WAITING_SHARE),
        (
            [*[Sender("10.0.0.1")] * MAX_WAITING_SHARE, *[Sender("10.0.0.1", known=True)] * 4],
            MAX_WAITING_SHARE + MAX_WAITING_BEYOND,
        ),
    ],
)
def test_too_many_large_reviews_wait_outside(admission: Admission, senders: list[Sender], most: int):
    large = pod(*containers(900, {names.VGPU_NUMBER: "1"}))

    async def all_of_them() -> None:
        reviews = [post(admission, "/mutate", large, senders[at % len(senders)]) for at in range(most + 2)]
        assert sorted(status for status, _ in await asyncio.gather(*reviews)) == [200] * most + [429] * 2

    for _ in range(2):  # nothing of the first ones waits any more
        asyncio.run(all_of_them())


DENSE = with_value(b"[" + b'"ab",' * 240_000 + b'"ab" ]')


@pytest.mark.parametrize(("body", "own", "status"), [(DENSE, "127.0.0.1", 413), (LARGE, "127.0.0.2", 200)])
def test_strangers_with_large_bodies_leave_room_for_a_client_that_had_a_review(
    start: Start, body: bytes, own: str, status: int
):
    """16 connections send bodies, each again as soon as it was answered; those of valid reviews have had one, too."""
    program, statuses, ended = start("--audit-log", ""), [], threading.Event()

    def flood() -> None:
        with Connection(program.port, context(program.ca), own=own) as stranger:
            while not ended.is_set():
                statuses.append(stranger.post("/validate", body).status)

    with program.connect() as canary, ThreadPoolExecutor(16) as strangers:
        admission_response(canary.post("/mutate", GOOD))
        floods = [strangers.submit(flood) for _ in range(16)]
        until(lambda: 429 in statuses)
        try:
            assert [canary.post("/mutate", LARGE).status for _ in range(25)] == [200] * 25
        finally:
            ended.set()
    for each in floods:
        each.result()
    assert set(statuses) == {status, 429}


def peak_growth(body: bytes) -> int:
    """How much memory the review of a body takes at its peak, in bytes, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with contextlib.suppress(BaseException):
            codec.decode(body)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        os.write(writer, b"%d" % ((after - before) << 10))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        grown = int(pipe.read())
    os.waitpid(child, 0)
    return grown
