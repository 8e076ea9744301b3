"""What a Service is to an API server: one address, behind which each connection goes to one of several replicas."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import Self


class Balancer:
    """Passes connections on, in turn, from the begin of a `with` to its end.

    Attributes:
        port: of the loopback address.
        replicas: the ports of those that are sent connections; change it at will.
    """

    def __init__(self, replicas: Sequence[int]) -> None:
        self.replicas = list(replicas)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._turns = count()
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with await asyncio.start_server(self._pass_on, sock=self._listener):
            await self._end.wait()

    async def _pass_on(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        replica = self.replicas[next(self._turns) % len(self.replicas)]
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", replica)
        except OSError:
            to_client.close()
            return
        with contextlib.suppress(asyncio.CancelledError):  # the end; nobody else waits for this task
            await asyncio.gather(_pump(client, to_server), _pump(server, to_client))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass on what comes, and the end of it."""
    try:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
    finally:
        sink.close()
