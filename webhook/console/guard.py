"""Who may ask, how much, and what a browser may do with the answer.

The console has no passwords: it listens on loopback, and whoever reaches it there may look. What has to be kept out is other
pages in the same browser. A page of a stranger may send requests here (Origin), and may call itself by a name that resolves
to 127.0.0.1 (Host); neither gets an answer.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from flask import Flask, Request, Response, request
from werkzeug.exceptions import Forbidden, MisdirectedRequest, ServiceUnavailable

MAX_BODY = 3 << 20  # bytes; an API server takes no larger object either
MAX_QUERY = 8 << 10  # bytes
HEAVY = 2  # requests that compute, at a time: the others stay quick
PATIENCE_SECONDS = 5.0  # for a place among them

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
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}

_computing = threading.BoundedSemaphore(HEAVY)


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

    @app.after_request
    def dress(response: Response) -> Response:
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response


def check(asked: Request, hosts: frozenset[str]) -> None:
    """Let a request of this console's own pages, or of a program, pass.

    Raises:
        MisdirectedRequest: it is addressed to a name that is not ours.
        Forbidden: another site's page sends it.
    """
    host = asked.headers.get("Host", "")
    if _name(host) not in hosts:
        raise MisdirectedRequest(
            "this console answers to localhost only; behind a proxy, start it with --allow-host and the name"
        )
    origin = asked.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise Forbidden("another site's page may not ask this console")
    site = asked.headers.get("Sec-Fetch-Site", "none")
    navigation = asked.method in ("GET", "HEAD") and asked.headers.get("Sec-Fetch-Mode") == "navigate"
    if site not in ("none", "same-origin") and not navigation:
        raise Forbidden("another site's page may not ask this console")


@contextmanager
def computing() -> Iterator[None]:
    """Take one of the few places for what takes long.

    Raises:
        ServiceUnavailable: all are taken.
    """
    if not _computing.acquire(timeout=PATIENCE_SECONDS):
        raise ServiceUnavailable("busy with other questions; ask again in some seconds", retry_after=5)
    try:
        yield
    finally:
        _computing.release()


def _name(host: str) -> str:
    """The name or address in a Host header; empty if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
