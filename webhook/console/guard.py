"""Who may ask, how much, and what a browser may do with the answer.

The console has no passwords: it listens on loopback, and whoever reaches it there may look. What has to be kept out is other
pages in the same browser. A page of a stranger may send requests here (Origin), and may call itself by a name that resolves
to 127.0.0.1 (Host); neither gets an answer. Nor does a page of another program on this machine: another port is another site.
Programs send neither Origin nor Sec-Fetch-Site, and pass.
"""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from flask import Flask, Request, Response, request
from werkzeug.exceptions import (
    BadRequest,
    Forbidden,
    MisdirectedRequest,
    RequestEntityTooLarge,
    RequestURITooLarge,
    ServiceUnavailable,
)

MAX_BODY = 3 << 20  # bytes; an API server takes no larger object either
MAX_QUERY = 4 << 10  # bytes; half of what gunicorn takes as a request line, beyond which its answer is less clear
HEAVY = 2  # requests that compute, at a time: the others stay quick
WAITING = 2  # requests that wait for a place among them: threads, of which there are few
PATIENCE_SECONDS = 5.0  # for a place among them
RETRY_SECONDS = 5  # after which it is worth asking again

LOOPBACK = ("localhost", "127.0.0.1", "::1")

# No script but our own files, no style but our own files, no other host, no frame around it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with `no-referrer`, browsers call the origin of our own forms `null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII)
_OTHERS = "another site's page may not ask this console; open it by its own address"

_computing = threading.BoundedSemaphore(HEAVY)
_waiting = threading.BoundedSemaphore(WAITING)


def install(app: Flask, hosts: Sequence[str]) -> None:
    """Guard an application.

    Args:
        app: the application.
        hosts: names besides loopback under which it may be called, as a proxy in front of it needs.
    """
    known = frozenset(host.lower() for host in (*LOOPBACK, *hosts))
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    app.config["MAX_FORM_MEMORY_SIZE"] = MAX_BODY

    @app.before_request
    def look() -> None:
        check(request, known)
        if request.content_length is None and request.environ.get("wsgi.input_terminated"):
            count(request)

    @app.after_request
    def dress(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


def check(asked: Request, hosts: frozenset[str]) -> None:
    """Let a request of this console's own pages, or of a program, pass.

    Raises:
        BadRequest: it has a header that Werkzeug could not read.
        MisdirectedRequest: it is addressed to a name that is not ours.
        Forbidden: another site's page sends it.
        RequestURITooLarge: it has a query of unusual length.
    """
    host = asked.headers.get("Host", "").lower()
    if _name(host) not in hosts:
        raise MisdirectedRequest(
            "this console answers to localhost only; behind a proxy, start it with --allow-host and the name"
        )
    if _is_foreign(asked, host):
        raise Forbidden(_OTHERS)
    if not _has_usable_dates(asked):
        raise BadRequest("a header holds a date beyond the calendar; leave it out")
    if len(asked.query_string) > MAX_QUERY:
        raise RequestURITooLarge(f"a query has at most {MAX_QUERY >> 10} KiB; ask for less at a time")


def count(asked: Request) -> None:
    """Read a body of unknown length, which Werkzeug would cut off at the limit without a word.

    Raises:
        RequestEntityTooLarge: it reaches the limit.
    """
    if len(asked.get_data(cache=True)) >= MAX_BODY:
        raise RequestEntityTooLarge(f"a body has less than {MAX_BODY >> 20} MiB")


def _has_usable_dates(asked: Request) -> bool:
    """Tell whether files can be compared with the dates that it names; Werkzeug minds unreadable ones, but not all."""
    try:
        _ = asked.if_modified_since, asked.if_unmodified_since, asked.if_range
    except OverflowError:
        return False
    return True


def _is_foreign(asked: Request, host: str) -> bool:
    """Tell whether another site's page sends it, by whatever the browser says of that."""
    origin = asked.headers.get("Origin")
    if origin is not None and not _is_ours(origin, host):
        return True
    looks = asked.method in ("GET", "HEAD")
    referrer = asked.headers.get("Referer")
    if origin is None and not looks and referrer is not None and not _is_ours(referrer, host):
        return True  # browsers of old sent a form without an Origin
    if asked.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    # A link to here may be followed. A frame is a navigation as well, but not one to look at.
    followed = asked.headers.get("Sec-Fetch-Mode") == "navigate" and asked.headers.get("Sec-Fetch-Dest") == "document"
    return not (looks and followed)


def _is_ours(address: str, host: str) -> bool:
    try:
        return urlsplit(address).netloc.lower() == host
    except ValueError:
        return False


@contextmanager
def computing() -> Iterator[None]:
    """Take one of the few places for what takes long.

    Raises:
        ServiceUnavailable: all are taken, and stay so for some seconds; or enough others wait already.
    """
    if not _computing.acquire(blocking=False) and not _waited():
        raise ServiceUnavailable("busy with other questions; ask again in some seconds", retry_after=RETRY_SECONDS)
    try:
        yield
    finally:
        _computing.release()


def _waited() -> bool:
    if not _waiting.acquire(blocking=False):
        return False
    try:
        return _computing.acquire(timeout=PATIENCE_SECONDS)
    finally:
        _waiting.release()


def _name(host: str) -> str | None:
    """The name or address in a Host header; None if it is no such header, with a user in it, say."""
    found = _HOST.fullmatch(host)
    return found and (found["address"] or found["name"])
