"""A load balancer in place of a Service: one address that forwards each connection to one of several replicas."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import Self


class Balancer:
    """Forwards connections round-robin while its `with` block runs.

    Attributes:
        port: the port on the loopback address.
        replicas: the ports of the replicas; it may change at any time.
    """

    def __init__(self, replicas: Sequence[int]) -> None:
        self.replicas = list(replicas)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._turns = count()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with await asyncio.start_server(self._forward, sock=self._listener):
            await self._stop.wait()

    async def _forward(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        replica = self.replicas[next(self._turns) % len(self.replicas)]
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", replica)
        except OSError:
            to_client.close()
            return
        with contextlib.suppress(asyncio.CancelledError):  # the balancer stops; nothing else waits for this task
            await asyncio.gather(_copy(client, to_server), _copy(server, to_client))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy a stream until its end."""
    try:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
    finally:
        sink.close()
