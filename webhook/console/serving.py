"""Runs the console under gunicorn: one process with threads, which slow clients cannot block for long."""

import contextlib
import logging
import resource
import selectors
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import Flask
from gunicorn.workers.gthread import ThreadWorker

from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.gunicorn import OneWorker

THREADS = 16
MAX_CONNECTIONS = 256


@dataclass(frozen=True, slots=True)
class ConsoleLimits:
    """How long clients may take, in seconds.

    Attributes:
        silence: within a request, while a thread waits for the client.
        reading: for a whole request, even if it arrives byte by byte.
        serving: until the client has read the response.
        idle: between two requests, and before the first one.
    """

    silence: int = 5
    reading: int = 20
    serving: int = 60
    idle: int = 5


LIMITS = ConsoleLimits()


class ConsoleWorker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker with timeouts: by itself it waits for ever for the rest of a request, or for a slow reader."""

    def init_process(self) -> None:
        logging.getLogger("gunicorn.error").addFilter(_is_not_a_timeout)
        self._served: dict[Any, float] = {}  # connections in a thread, and since when
        self._limits: ConsoleLimits = self.app.limits
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread, with timeouts of the kernel for each read and write.

        A new one waits here until it has sent something; gunicorn's own class (workers/gthread.py, 27.0) lets it wait 5 s in
        a thread.
        """
        if not (conn.initialized or conn.data_ready):
            conn.sock.setblocking(False)
            conn.set_timeout()
            self.pending_conns.append(conn)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))
            return
        timeout = struct.pack("ll", self._limits.silence, 0)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Serve a connection in a thread. A silent one is cut off, as an orderly close would block the other connections."""
        began = self._served[conn] = time.monotonic()
        try:
            goes_on = super().handle(conn)
        finally:
            del self._served[conn]
        if not goes_on and time.monotonic() - began >= self._limits.silence:
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)
        return goes_on

    def murder_pending(self) -> None:
        """Every second, end requests that take too long: a client that sends a byte every few seconds holds a thread too.

        While there are as many connections as there may be, also close the one that has been silent for longest.
        """
        if self.nr_conns >= self.worker_connections and self.pending_conns:
            self.pending_conns[0].timeout = 0.0
        super().murder_pending()
        now = time.monotonic()
        for conn, began in list(self._served.items()):
            if now - began > self._limits.reading:
                reading_and_writing = now - began > self._limits.serving
                with contextlib.suppress(OSError):  # it may have ended by itself
                    conn.sock.shutdown(socket.SHUT_RDWR if reading_and_writing else socket.SHUT_RD)


def _is_not_a_timeout(record: logging.LogRecord) -> bool:
    """Whether a log record is about something other than a client that timed out."""
    return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))


class Console(OneWorker):
    """The server of the console."""

    def __init__(
        self, state: Callable[[], ConsoleState], bind: str, hosts: Sequence[str] = (), limits: ConsoleLimits = LIMITS
    ) -> None:
        """Prepare to serve.

        Args:
            state: makes the console's state in the worker process, where its threads start.
            bind: `host:port`.
            hosts: names besides localhost by which clients may reach the console.
            limits: of clients.
        """
        self._state = state
        self._hosts = hosts
        self.limits = limits
        # gunicorn's worker ends if it cannot accept a connection because too many files are open.
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MAX_CONNECTIONS if files == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, files // 2)
        super().__init__(
            {
                "bind": bind,
                "worker_class": f"{__name__}.ConsoleWorker",
                "worker_connections": most,
                "threads": THREADS,
                "timeout": 60,
                "graceful_timeout": 3,  # a page that is cut off can be reloaded
                "keepalive": limits.idle,
                "limit_request_line": 8190,
                "limit_request_fields": 64,
                "limit_request_field_size": 8190,
                "forwarded_allow_ips": "",  # X-Forwarded-Proto and SCRIPT_NAME of local clients are not trusted either
                "http_parser": "python",  # the one in C also takes a bare LF as a line end
                "proc_name": "vgpu-webhook-console",
            }
        )

    def load(self) -> Flask:
        """Make the application, in the worker process."""
        return create_app(self._state(), self._hosts)
