"""Bodies that are slow to review: the time of each, and the longest stall of the event loop."""

import asyncio
import time
from typing import Any

from tests.bench.engine import admission_of, snapshot_of
from tests.hostile_bodies import bodies
from webhook.server.admission import Admission
from webhook.server.gunicorn import settle_memory

SHOWN = 12
TICK = 0.001


def report() -> None:
    admission = admission_of(snapshot_of("every-family"))
    settle_memory()
    figures = [
        (*asyncio.run(_measured(admission, path, make())), path, name)
        for name, make in bodies()
        for path in ("/mutate", "/validate")
    ]
    stall = max(figure[1] for figure in figures)
    print(f"bodies made to be slow: the slowest of {len(figures)} (ms; aim: 250, and no stall above 50)")
    for took, stalled, path, name in sorted(figures, reverse=True)[:SHOWN]:
        print(f"  {path:<10}{name:<60}{took * 1000:>7.0f}{stalled * 1000:>7.0f}")
    print(f"  longest stall of the event loop: {stall * 1000:.0f} ms\n")


async def _measured(admission: Admission, path: str, body: bytes) -> tuple[float, float]:
    stall = 0.0

    async def tick() -> None:
        nonlocal stall
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK)
            stall = max(stall, time.perf_counter() - before - TICK)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(_: dict[str, Any]) -> None:
        pass

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "path": path, "method": "POST", "headers": headers, "query_string": b""}
    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    started = time.perf_counter()
    await admission(scope | {"client_verified": False}, receive, send)
    took = time.perf_counter() - started
    await asyncio.sleep(2 * TICK)
    ticking.cancel()
    return took, stall
