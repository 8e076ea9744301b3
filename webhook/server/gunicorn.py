"""The worker of the admission server, which limits what clients can use.

Only the public names of gunicorn are used. The worker limits the number of connections, and the time until a request is
sent and complete; and idle connections do not delay a shutdown.
"""

import asyncio
import gc
import logging
import math
import os
import resource
import signal
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from gunicorn.workers.base import Worker

from webhook.audit.writer import reopened
from webhook.errors import ConfigError
from webhook.gunicorn import OneWorker, check_address
from webhook.server.budget import MemoryBudget
from webhook.server.limits import LIMITS, ServerLimits
from webhook.server.logs import ServerLog
from webhook.server.transport import TlsTransport
from webhook.server.wiring import Service

SPARE_SECONDS = 1.0  # after the end of a worker, until the master kills it
MIN_OPEN_FILES = 64  # half for connections; the program itself has some 20, and silent clients must not take these
KERNEL_BYTES = 128 << 10  # the socket buffers of a connection, each
BACKLOG = 1024
SOON_SECONDS = 0.05  # until the next look while the server drains, or audit lines wait for their reader
STANDARD_ERROR = 2
WATCHDOG_SECONDS = 30  # after which the master replaces a worker without a heartbeat

log = logging.getLogger(__name__)


class AdmissionWorker(Worker):  # type: ignore[misc]  # gunicorn has no types
    """Serves in one event loop, with limits on connections and a graceful shutdown.

    Attributes:
        loop: that runs.
        budget: of all connections.
        tls_context: for new connections.
    """

    loop: asyncio.AbstractEventLoop
    tls_context: ssl.SSLContext

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        connections = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self.budget = MemoryBudget(connections, self.service.limits.memory_bytes)
        self._ends = math.inf  # when the listeners are closed, in seconds of the monotonic clock
        self._at_once = False  # without answering what is in flight

    @property
    def service(self) -> Service:
        service: Service = self.app.service
        return service

    def init_process(self) -> None:
        """Serve; write the log without blocking when its reader is stuck."""
        fresh = reopened(STANDARD_ERROR)
        if fresh is not None:
            os.dup2(fresh, STANDARD_ERROR)
            os.close(fresh)
        super().init_process()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """On SIGTERM, become unready at once; close the listeners after the drain time."""
        service = self.service
        service.state.draining = True
        service.stop()
        self._ends = min(self._ends, time.monotonic() + service.drain_seconds)

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """On SIGINT and SIGQUIT, end without answering what is in flight."""
        self._at_once = True
        self.alive = False

    def run(self) -> None:
        """Serve until a signal, or until the master is gone."""
        with asyncio.Runner(loop_factory=_new_loop()) as runner:
            runner.run(self._serve_all())

    async def _serve_all(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.add_signal_handler(signal.SIGTERM, self.handle_exit, signal.SIGTERM, None)
        for number in (signal.SIGINT, signal.SIGQUIT):
            self.loop.add_signal_handler(number, self.handle_quit, number, None)
        service = self.service
        service.start()
        # New connections wait in the backlog meanwhile: without the cluster's settings, they would get no review.
        deadline = time.monotonic() + service.limits.catch_up_seconds
        while not service.is_settled and time.monotonic() < deadline:  # noqa: ASYNC110  # threads change it
            await asyncio.sleep(0.02)
        for obstacle in service.state.obstacles.values():
            log.warning("not ready: %s", obstacle)
        self.tls_context = service.tls.context
        servers = []
        for listener in self.sockets:
            for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                listener.sock.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BYTES)
            server = await self.loop.create_server(lambda: TlsTransport(self), sock=listener.sock, backlog=BACKLOG)
            servers.append(server)
        while self.alive and time.monotonic() < self._ends and self.ppid == os.getppid():
            self.notify()
            self._sweep()
            written = service.admission.flush()
            pause = service.limits.sweep_seconds if written and not service.state.draining else SOON_SECONDS
            await asyncio.sleep(pause)
        for server, listener in zip(servers, self.sockets, strict=True):
            await close_listener(server, listener.sock, lambda: TlsTransport(self))
        await self._finish()
        service.stop()

    def _sweep(self) -> None:
        now = self.loop.time()
        for connection in self.budget:
            if connection.overdue(now):
                connection.drop()

    async def _finish(self) -> None:
        """Answer the requests that have been read, and the first one of new connections; close the other connections."""
        limits = self.service.limits
        started = now = self.loop.time()
        while self.budget and now < started + limits.finish_seconds and not self._at_once:
            self.notify()
            for connection in self.budget:
                if not connection.serving and (connection.used or now > started + limits.first_request_seconds):
                    connection.drop()
            await asyncio.sleep(0.02)
            now = self.loop.time()
        for connection in self.budget:
            connection.drop()  # what still arrives gets no answer, which could not be recorded
        admission = self.service.admission
        admission.record()
        deadline = self.loop.time() + limits.flush_seconds
        while not admission.flush() and self.loop.time() < deadline:
            self.notify()
            await asyncio.sleep(0.02)
        admission.close()


class Server(OneWorker):
    """The admission server.

    Attributes:
        bind: `host:port`.
    """

    def __init__(self, service: Service, bind: str) -> None:
        """Prepare to serve.

        Args:
            service: what is served.
            bind: `host:port`; `[::]:8443` for every address.

        Raises:
            ConfigError: the address is invalid or in use.
        """
        self.bind = check_address(bind)
        self.service = service
        super().__init__(
            {
                "bind": self.bind,
                "pre_fork": settle_memory,
                "worker_class": f"{__name__}.AdmissionWorker",
                "preload_app": True,
                "timeout": WATCHDOG_SECONDS,
                "graceful_timeout": graceful_seconds(service.drain_seconds, service.limits),
                "keepalive": int(service.limits.idle_seconds),
                "logger_class": ServerLog,
                "proc_name": "vgpu-webhook",
            }
        )

    def load(self) -> Any:
        return self.service.admission


async def close_listener(
    server: asyncio.Server, listener: socket.socket, protocol: Callable[[], asyncio.Protocol]
) -> None:
    """Accept no more connections but those of the backlog, which the kernel would reset when the listener is closed.

    All are accepted before any is served: clients that connect again once they are answered would never let it become empty.
    """
    waiting: list[socket.socket] = []
    with suppress(OSError):  # there are no more, or no more files may be open
        while len(waiting) < BACKLOG:
            waiting.append(listener.accept()[0])
    server.close()
    for accepted in waiting:
        with suppress(OSError):  # the peer is gone
            await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted)


def graceful_seconds(drain: float, limits: ServerLimits = LIMITS) -> int:
    """How long after a SIGTERM the master kills a worker that has not ended, with so many seconds of drain."""
    return math.ceil(drain + limits.finish_seconds + limits.flush_seconds + SPARE_SECONDS)


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop, which is faster; None for asyncio's own, where there is no uvloop."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    new: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new


def settle_memory(_arbiter: object = None, _worker: object = None) -> None:
    """Exclude the present objects from garbage collection, and collect only once in a few hundred reviews.

    A review leaves no cyclic garbage, and a collection costs more than a review. Before a fork, it also keeps the collector off
    what the worker shares with the master: where it writes, the kernel copies a page.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def bound_open_files(most: int) -> None:
    """Limit open files, and so the connections before their handshake; the system refuses any more.

    Raises:
        ConfigError: the system allows too few.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if wanted < MIN_OPEN_FILES:
        raise ConfigError(
            f"only {wanted} files may be open, with which silent clients could keep out the API server; "
            f"allow at least {MIN_OPEN_FILES} (ulimit -n)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
