"""gunicorn, arranged for admission: one asgi worker that bounds what strangers can hold open.

What the stock worker of gunicorn 27 leaves open, and this one closes: connections that never send a request or send one
for ever, head lines without end, idle connections that hold up a shutdown, and a pile of connections of any kind.
"""

import asyncio
import gc
import os
import resource
from pathlib import Path
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers.gasgi import ASGIWorker

from webhook.server.wiring import Service

HANDSHAKE_SECONDS = 5.0
SHUTDOWN_SECONDS = 2.0  # for a peer to say goodbye in TLS
FINISH_SECONDS = 20.0  # for requests in flight, after a SIGTERM
MAX_OPEN_FILES = 8192
HEAD_SECONDS = 10.0  # for the first request of a connection, and for each head from its first byte
HEAD_BYTES = 64 << 10  # before the head is complete
IDLE_SECONDS = 600.0  # an API server keeps connections for minutes; a new handshake costs more than a review
MAX_CONNECTIONS = 4096
BACKLOG = 1024
SWEEP_SECONDS = 1.0
SHARED_MEMORY = "/dev/shm"  # noqa: S108
WATCHDOG_SECONDS = 30  # a worker that does not answer the master for so long is replaced


class AdmissionProtocol(ASGIProtocol):  # type: ignore[misc]  # gunicorn has no types
    """One connection, with the times and sizes that the sweep looks at."""

    def __init__(self, worker: "AdmissionWorker") -> None:
        super().__init__(worker)
        self._head_bytes = 0
        self._quiet_since = worker.loop.time()  # when the connection last became ready for a request
        self._head_since = 0.0  # when the first byte of an unfinished head came; 0 if there is none

    def connection_made(self, transport: Any) -> None:
        """Count the connection in."""
        super().connection_made(transport)
        self.worker.admit(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count the connection out."""
        self.worker.connections.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, within bounds while the head is incomplete."""
        if self._current_request is None:
            if not self._head_since:
                self._head_since = self.worker.loop.time()
            self._head_bytes += len(data)
            super().data_received(data)
            if self._current_request is None and self._head_bytes > HEAD_BYTES and not self._closed:
                self._send_error_response(431, "Request Header Fields Too Large")
                self.worker.drop(self)
        else:
            super().data_received(data)

    def _on_headers_complete(self) -> Any:
        self._head_bytes = 0
        self._head_since = 0.0
        self._quiet_since = 0.0
        return super()._on_headers_complete()

    def close(self) -> None:
        """Close the connection; what waits for its next request ends."""
        self._close_transport()
        if self._task is not None and not self.serving:
            self._task.cancel()

    @property
    def serving(self) -> bool:
        """A request was read and is not yet answered."""
        return self._current_request is not None

    def overdue(self, now: float) -> bool:
        """Whether the peer took too long; to be asked while no request is being served."""
        if self._head_since:
            return bool(now - self._head_since > HEAD_SECONDS)
        if not self._quiet_since:
            self._quiet_since = now
        return bool(now - self._quiet_since > (IDLE_SECONDS if self.req_count > 1 else HEAD_SECONDS))


class AdmissionWorker(ASGIWorker):  # type: ignore[misc]
    """The asgi worker with a sweep, a cap on connections and an orderly end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connections: dict[AdmissionProtocol, None] = {}  # oldest first

    def admit(self, protocol: AdmissionProtocol) -> None:
        """Take a connection; beyond the cap the oldest that serves nothing makes room."""
        self.connections[protocol] = None
        if len(self.connections) > MAX_CONNECTIONS:
            silent = (c for c in self.connections if not c.serving and c.req_count <= 1)
            self.drop(next(silent, protocol))

    def drop(self, protocol: AdmissionProtocol) -> None:
        """Close a connection that is not worth waiting for."""
        self.connections.pop(protocol, None)
        protocol.close()

    def handle_exit_signal(self) -> None:
        """SIGTERM: not ready at once, then the listeners close."""
        service = self.app.service
        service.state.draining = True
        self.loop.call_later(service.drain_seconds, super().handle_exit_signal)

    async def _serve(self) -> None:
        service = self.app.service
        # Looked up on the base: asked through our subclass, gunicorn forgets the answer and takes the parser in Python.
        ASGIProtocol._check_h1c_protocol_available()  # noqa: SLF001
        settle_memory()
        watching = self.loop.create_task(service.watcher.run())
        for listener in self.sockets:
            server = await self.loop.create_server(
                lambda: AdmissionProtocol(self),
                sock=listener.sock,
                ssl=service.certificate.context,
                backlog=BACKLOG,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
            self.servers.append(server)
        while self.alive and self.ppid == os.getppid():
            self.notify()
            self._sweep()
            await asyncio.sleep(0.05 if service.state.draining else SWEEP_SECONDS)
        await self._finish()
        watching.cancel()

    def _sweep(self) -> None:
        now = self.loop.time()
        for protocol in [c for c in self.connections if not c.serving and c.overdue(now)]:
            self.drop(protocol)

    async def _finish(self) -> None:
        """Answer what has been read, close the rest."""
        for server in self.servers:
            server.close()
        deadline = self.loop.time() + FINISH_SECONDS
        while self.connections and self.loop.time() < deadline and not self._quick_shutdown:
            self.notify()
            for protocol in [c for c in self.connections if not c.serving]:
                self.drop(protocol)
            await asyncio.sleep(0.02)


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn with our settings instead of its command line."""

    def __init__(self, service: Service, bind: str) -> None:
        """Prepare to serve.

        Args:
            service: what is served.
            bind: `host:port`; `[::]:8443` for every address.
        """
        self.service = service
        self._settings = SETTINGS | {"bind": bind}
        super().__init__()

    def load_config(self) -> None:
        """Hand the settings to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """The ASGI application."""
        return self.service.admission


SETTINGS: dict[str, Any] = {
    "worker_class": f"{__name__}.AdmissionWorker",
    "workers": 1,  # one fleet, one metrics registry; replicas give the rest
    "preload_app": True,
    "timeout": WATCHDOG_SECONDS,
    "graceful_timeout": 27,  # drain and finish, then the master kills; under Kubernetes' 30 s
    "keepalive": int(IDLE_SECONDS),
    "control_socket_disable": True,
    # The heartbeat file: on a disk it could stall the worker.
    "worker_tmp_dir": SHARED_MEMORY if Path(SHARED_MEMORY).is_dir() else None,
    "loglevel": "warning",
    "asgi_lifespan": "off",
    "proc_name": "vgpu-webhook",
}


def settle_memory() -> None:
    """Keep the garbage collector away from what stays, and let a few hundred reviews pass between two of its runs.

    A review leaves no cycles behind; collecting after every few of them costs more than the review.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def bound_open_files() -> None:
    """Bound the connections that have not even finished their handshake: beyond, the system refuses them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MAX_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
