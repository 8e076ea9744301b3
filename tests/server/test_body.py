"""Reading the body of a request: its size and its time are limited."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import pytest

from tests.cases import each_case
from webhook.errors import RequestError, TooLarge, TooSlow, WrongMediaType
from webhook.server import body
from webhook.server.body import ClientGone, Receive, check_headers, linger, read_body, read_seconds


def receiver(pieces: Iterable[bytes], *, whole: bool = True) -> Receive:
    """ASGI's `receive` for a body in pieces; without `whole` the connection ends before the body."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.request", "body": b"", "more_body": False} if whole else {"type": "http.disconnect"})

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    return receive


def read(receive: Receive, seconds: float = 5.0) -> bytes:
    return asyncio.run(read_body(receive, seconds))


def test_pieces_are_joined():
    assert read(receiver([b"a", b"", b"bc"])) == b"abc"
    assert read(receiver([])) == b""


def test_a_connection_that_ends_early_raises_client_gone():
    for pieces in ([], [b"a"]):
        with pytest.raises(ClientGone):
            read(receiver(pieces, whole=False))


def test_a_body_above_the_limit_is_too_large():
    piece = b"x" * (body.MAX_BODY // 8)
    assert len(read(receiver([piece] * 8))) == body.MAX_BODY
    with pytest.raises(TooLarge):
        read(receiver([piece] * 8 + [b"x"]))


async def _endless() -> dict[str, Any]:
    """Like gunicorn's receive on Python 3.11: a piece that arrives at the timeout cancels the timeout."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0.02)
    return {"type": "http.request", "body": b"x", "more_body": True}


def test_reading_ends_even_if_the_timeout_is_lost(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(body, "LINGER_SECONDS", 0.1)

    async def bounded() -> None:
        with pytest.raises(TooSlow):
            await read_body(_endless, 0.1)
        await linger(_endless)

    asyncio.run(asyncio.wait_for(bounded(), 60))


@each_case(
    "query, seconds",
    [
        (b"", 10.0),
        (b"timeout=5s", 5.0),
        (b"timeout=10s&x=1", 10.0),
        (b"x=1&timeout=1s", 1.0),
        (b"timeout=1.5s", 1.5),
        (b"timeout=250ms", 0.25),
        (b"timeout=1m", 30.0),
        (b"timeout=1m30s", 30.0),
        (b"timeout=999999s", 30.0),
        (b"timeout=0s", 0.001),
        (b"timeout=", 10.0),
        (b"timeout=5", 10.0),
        (b"timeout=-5s", 10.0),
        (b"timeout=5h", 10.0),
        (b"timeout=1e3s", 10.0),
        (b"xtimeout=5s", 10.0),
        (b"timeout=\xd9\xa5s", 10.0),
    ],
)
def test_the_timeout_is_read_from_the_query(query: bytes, seconds: float):
    assert read_seconds(query) == seconds


JSON = (b"content-type", b"application/json")


def test_invalid_headers_are_refused():
    check_headers([JSON, (b"content-length", b"%d" % body.MAX_BODY)])
    with pytest.raises(TooLarge):
        check_headers([JSON, (b"content-length", b"%d" % (body.MAX_BODY + 1))])
    with pytest.raises(WrongMediaType):
        check_headers([(b"content-type", b"application/xml")])
    with pytest.raises(RequestError, match="folded"):
        check_headers([JSON, (b"", b" chunked")])
