"""Protects the console from other web pages and from large requests, and limits what a browser does with its pages.

The console has no passwords: it listens on loopback, and every local user may read it. Pages of other sites in the same
browser may not: their requests carry another Origin, or a Host that was rebound to 127.0.0.1, and are refused. So are those of
other programs' pages on this machine, as another port is another site. Programs send no Origin or Sec-Fetch-Site and pass.
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
TOO_LARGE = f"a request has less than {MAX_BODY >> 20} MiB; the commands of vgpu-webhook read larger files"
MAX_QUERY = 4 << 10  # bytes; half of gunicorn's limit for a request line, whose error message is less clear
MAX_COMPUTING = 2  # heavy requests that run at the same time, so that others stay quick
MAX_WAITING = 2  # heavy requests that wait, each of which holds a thread
WAIT_SECONDS = 5.0  # of a heavy request
RETRY_SECONDS = 5  # for the Retry-After header

LOOPBACK = ("localhost", "127.0.0.1", "::1")

# Scripts, styles, images and connections only of this server; no frames.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with `no-referrer`, browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII)
_FOREIGN = "a page of another site must not send requests to this console; open the console by its own address"


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
    def check_request() -> None:
        check(request, known)
        if request.content_length is None and request.environ.get("wsgi.input_terminated"):
            check_size(request)

    @app.after_request
    def add_headers(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


def check(request: Request, hosts: frozenset[str]) -> None:
    """Refuse requests that do not come from this console's own pages or from a program.

    Raises:
        BadRequest: it has a date that Werkzeug cannot read.
        MisdirectedRequest: its Host is not one of the console's names.
        Forbidden: a page of another site sends it.
        RequestURITooLarge: its query is too long.
    """
    host = request.headers.get("Host", "").lower()
    if _name(host) not in hosts:
        raise MisdirectedRequest(
            "this console answers only as localhost; behind a proxy, start it with --allow-host and the proxy's name"
        )
    if _is_foreign(request, host):
        raise Forbidden(_FOREIGN)
    if not _has_usable_dates(request):
        raise BadRequest("a header holds a date beyond the calendar; leave it out")
    if len(request.query_string) > MAX_QUERY:
        raise RequestURITooLarge(f"the query is longer than {MAX_QUERY >> 10} KiB; use fewer or shorter filters")


def check_size(request: Request) -> None:
    """Read a body of unknown length, which Werkzeug would silently cut off at the limit.

    Raises:
        RequestEntityTooLarge: it reaches the limit.
    """
    if len(request.get_data(cache=True)) >= MAX_BODY:
        raise RequestEntityTooLarge(f"a body has less than {MAX_BODY >> 20} MiB")


def _has_usable_dates(request: Request) -> bool:
    """Whether its dates can be compared; Werkzeug ignores most unreadable ones, but not all."""
    try:
        _ = request.if_modified_since, request.if_unmodified_since, request.if_range
    except OverflowError:
        return False
    return True


def _is_foreign(request: Request, host: str) -> bool:
    """Whether a page of another site sends it, by the headers of the browser."""
    origin = request.headers.get("Origin")
    if origin is not None and not _is_same_origin(origin, host):
        return True
    reads = request.method in ("GET", "HEAD")
    referrer = request.headers.get("Referer")
    if origin is None and not reads and referrer is not None and not _is_same_origin(referrer, host):
        return True  # old browsers send forms without an Origin
    if request.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin"):
        return False
    # Following a link to the console is allowed; loading it in a frame is not.
    header = request.headers.get
    followed = header("Sec-Fetch-Mode") == "navigate" and header("Sec-Fetch-Dest") == "document"
    return not (reads and followed)


def _is_same_origin(address: str, host: str) -> bool:
    try:
        return urlsplit(address).netloc.lower() == host
    except ValueError:
        return False


class Places:
    """The places for heavy requests: of those that run, and of those that wait for that."""

    def __init__(
        self, running: int = MAX_COMPUTING, waiting: int = MAX_WAITING, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._running = threading.BoundedSemaphore(running)
        self._waiting = threading.BoundedSemaphore(waiting)
        self._wait_seconds = wait_seconds

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold a place to run.

        Raises:
            ServiceUnavailable: others still run after some seconds, or too many others wait already.
        """
        if not self._running.acquire(blocking=False) and not self._wait():
            raise ServiceUnavailable(
                "the console is busy with other requests; try again in a few seconds", retry_after=RETRY_SECONDS
            )
        try:
            yield
        finally:
            self._running.release()

    def _wait(self) -> bool:
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            return self._running.acquire(timeout=self._wait_seconds)
        finally:
            self._waiting.release()


computing = Places().take  # limits how many heavy requests of this process run at the same time


def _name(host: str) -> str | None:
    """The name or address in a Host header; None if it is malformed, for example if it names a user."""
    match = _HOST.fullmatch(host)
    return match and (match["address"] or match["name"])
