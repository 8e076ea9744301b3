"""Reads the body of a review, with limits on bytes and time."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import Any

from webhook.errors import RequestError, TooLarge, TooSlow, WrongMediaType

MAX_BODY = 8 << 20  # bytes; an API server sends 3 MiB at the most, twice on UPDATE
READ_SECONDS = 10.0  # for a body, unless the request has a timeout
MAX_READ_SECONDS = 30.0  # Kubernetes' own limit for a webhook's timeoutSeconds
LINGER_SECONDS = 1.0  # to read on after a refusal: if the connection were cut at once, the response would be lost

Receive = Callable[[], Awaitable[dict[str, Any]]]

_DURATION = re.compile(rb"(?:^|&)timeout=(?:(\d{1,3})m)?(?:(\d{1,6}(?:\.\d{1,9})?)(s|ms))?(?:&|$)")


class ClientGone(RequestError):
    """The caller closed the connection before its request was complete."""


class Busy(RequestError):
    """Too many requests are being read or reviewed at the same time."""

    status = 429
    reason = "TooManyRequests"


async def read_body(receive: Receive, seconds: float) -> bytes:
    """Read one body.

    Args:
        receive: the ASGI callable.
        seconds: the time limit for the whole body.

    Raises:
        TooSlow: it took longer.
        TooLarge: it has more than MAX_BODY bytes.
        ClientGone: the connection ended before it did.
    """
    try:
        async with asyncio.timeout(seconds) as clock:
            message = await receive()
            if not message.get("more_body") and message["type"] == "http.request":
                body: bytes = message["body"]  # the usual case: it came in one piece
                if len(body) > MAX_BODY:
                    raise TooLarge(f"the body has more than {MAX_BODY} bytes")
                return body
            return await _read_on(message, receive, clock)
    except TimeoutError:
        raise TooSlow("the body did not arrive in time; send it at once") from None


async def _read_on(message: dict[str, Any], receive: Receive, clock: asyncio.Timeout) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] != "http.request":
            raise ClientGone("the connection was closed before the body was complete")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            raise TooLarge(f"the body has more than {MAX_BODY} bytes")
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()
        if clock.expired():  # Python 3.11 loses a timeout that comes together with a piece
            raise TimeoutError


def check_headers(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request by its headers, before its body is read.

    Raises:
        WrongMediaType: it is not declared as JSON.
        TooLarge: it is declared as larger than MAX_BODY.
        RequestError: a header is folded over two lines, which parsers interpret in different ways.
    """
    media_type = b""
    for name, value in headers:
        if name == b"content-type":
            media_type = value
        elif name == b"content-length":
            if int(value) > MAX_BODY:
                raise TooLarge(f"the body has {int(value)} bytes; {MAX_BODY} are the most that is read")
        elif not name:
            raise RequestError("a header is folded over two lines; put it on one")
    if media_type != b"application/json" and media_type.split(b";", 1)[0].strip().lower() != b"application/json":
        raise WrongMediaType("the body must be declared as Content-Type: application/json")


@lru_cache(maxsize=64)
def read_seconds(query: bytes) -> float:
    """The time limit for a body: the API server's `?timeout=5s`, at most MAX_READ_SECONDS."""
    match = _DURATION.search(query)
    if match is None or match[1] == match[2] is None:
        return READ_SECONDS
    seconds = int(match[1] or 0) * 60 + float(match[2] or 0) * (0.001 if match[3] == b"ms" else 1)
    return min(max(seconds, 0.001), MAX_READ_SECONDS)


async def linger(receive: Receive) -> None:
    """Discard the rest of a body for a while, so that a client that is still sending can read the response."""
    try:
        async with asyncio.timeout(LINGER_SECONDS) as clock:
            while (await receive()).get("more_body") and not clock.expired():
                pass
    except TimeoutError:
        pass
