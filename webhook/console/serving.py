"""gunicorn, arranged for the console: one process, some threads, nothing that a browser could hold up for long."""

import contextlib
import logging
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.workers.gthread import ThreadWorker

from webhook.console.app import create_app
from webhook.console.state import State

THREADS = 16
SILENCE_SECONDS = 5  # of a peer in the midst of a request; a thread waits for it
READING_SECONDS = 20  # for all of a request, however little comes at a time
SERVING_SECONDS = 60  # until its answer is taken
SHARED_MEMORY = "/dev/shm"  # noqa: S108

SETTINGS: dict[str, Any] = {
    "worker_class": f"{__name__}.ConsoleWorker",
    "workers": 1,  # one journal, one fleet
    "threads": THREADS,
    "worker_connections": 256,
    "keepalive": 5,
    "graceful_timeout": 3,  # nothing is lost that a reload would not bring back
    "timeout": 60,
    "limit_request_line": 8190,
    "limit_request_fields": 64,
    "limit_request_field_size": 8190,
    "forwarded_allow_ips": "",  # nobody's X-Forwarded-Proto or SCRIPT_NAME is believed, least of all from this machine
    "control_socket_disable": True,
    # The heartbeat file: on a disk it could stall the worker.
    "worker_tmp_dir": SHARED_MEMORY if Path(SHARED_MEMORY).is_dir() else None,
    "loglevel": "warning",
    "proc_name": "vgpu-webhook-console",
}


class ConsoleWorker(ThreadWorker):  # type: ignore[misc]
    """The worker with threads, which by itself waits for ever for the rest of a request, or for its answer to be taken."""

    def init_process(self) -> None:
        """Serve."""
        logging.getLogger("gunicorn.error").addFilter(_is_no_silence)
        self._served: dict[Any, float] = {}  # connections that a thread is busy with, since when
        super().init_process()

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread; the kernel ends what takes too long there."""
        patience = struct.pack("ll", SILENCE_SECONDS, 0)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Serve a connection in a thread; a silent one is not said goodbye to, for which all others would wait."""
        began = self._served[conn] = time.monotonic()
        try:
            goes_on = super().handle(conn)
        finally:
            del self._served[conn]
        if not goes_on and time.monotonic() - began >= SILENCE_SECONDS:
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)
        return goes_on

    def murder_pending(self) -> None:
        """End what takes too long, each second: also who sends or takes a byte every few seconds holds a thread."""
        super().murder_pending()
        now = time.monotonic()
        for conn, began in list(self._served.items()):
            if now - began > READING_SECONDS:
                all_of_it = now - began > SERVING_SECONDS
                with contextlib.suppress(OSError):  # it may end at this very moment
                    conn.sock.shutdown(socket.SHUT_RDWR if all_of_it else socket.SHUT_RD)


def _is_no_silence(record: logging.LogRecord) -> bool:
    """Tell whether a record is about something else than a silent peer, who is nothing to log."""
    return not (record.exc_info and isinstance(record.exc_info[1], BlockingIOError))


class Console(BaseApplication):  # type: ignore[misc]
    """gunicorn with our settings instead of its command line."""

    def __init__(self, state: Callable[[], State], bind: str, hosts: Sequence[str] = ()) -> None:
        """Prepare to serve.

        Args:
            state: makes what is shown, in the process that serves; its threads start there.
            bind: `host:port`.
            hosts: names besides loopback under which the console may be called.
        """
        self._state = state
        self._hosts = hosts
        self._settings = SETTINGS | {"bind": bind}
        super().__init__()

    def load_config(self) -> None:
        """Hand the settings to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """The application, in the process that serves it."""
        return create_app(self._state(), self._hosts)
