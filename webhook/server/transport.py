"""TLS on one connection: to the event loop it is a protocol, to the HTTP connection it is a transport.

asyncio's own TLS is not used. Its buffers take up to half a megabyte for each connection, also while that is idle, and
cannot be measured; and it cannot close a connection during the handshake. Here every received byte is counted.
"""

import asyncio
import contextlib
import ssl
from typing import Any

from webhook.server.budget import ConnectionUsage
from webhook.server.connection import HttpConnection, ServingWorker

HANDSHAKE_BYTES = 64 << 10  # a client certificate with its chain has a few thousand
RECORD_BYTES = 16 << 10  # the largest TLS record; OpenSSL's buffers grow to about twice as much
UNREAD_BYTES = 16 << 10  # of responses; above this, the connection waits for its peer


class TlsTransport(asyncio.Protocol):
    """The TLS layer of one connection.

    Attributes:
        usage: the memory that the connection uses.
        tls: the TLS object.
        address: of the peer.
    """

    def __init__(self, worker: ServingWorker) -> None:
        self.usage = ConnectionUsage(worker.loop.time())
        self._worker = worker
        self._budget = worker.budget
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = worker.tls_context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.address = ""
        self._socket: Any = None  # an asyncio.Transport from `connection_made` on
        self._protocol: HttpConnection | None = None  # None until the handshake is complete
        self._closing_since = 0.0
        self._writing_paused = self._reading_paused = False

    # Called by the event loop.

    def connection_made(self, transport: Any) -> None:
        """Register the connection with the budget."""
        self._socket = transport
        self.address = str((transport.get_extra_info("peername") or [""])[0])
        transport.set_write_buffer_limits(high=UNREAD_BYTES)
        self._budget.open(self, self._worker.loop.time())

    def data_received(self, data: bytes) -> None:
        """Decrypt in pieces of one record, so that the buffers stay small."""
        now = self._worker.loop.time()
        for start in range(0, len(data), RECORD_BYTES):
            piece = data[start : start + RECORD_BYTES]
            self._budget.read(self.usage, len(piece), now)
            if self.usage.closing:  # perhaps because of the lines above
                return
            self._incoming.write(piece)
            try:
                self._read_tls()
            except ssl.SSLWantReadError:
                self._flush()
                if self._protocol is None and self.usage.reading > HANDSHAKE_BYTES:
                    self.abort()
            except ssl.SSLError:
                self._flush()  # the TLS alert with the reason
                self._shut_down()

    def eof_received(self) -> None:
        """Return None, so that the event loop closes the socket: TLS has no half-closed connections."""

    def pause_writing(self) -> None:
        """Count what waits for the peer, which does not read."""
        self._writing_paused = True
        self._count_unread()
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Continue to write: the peer reads again."""
        self._writing_paused = False
        self._count_unread()
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, _: BaseException | None) -> None:
        """Remove the connection from the budget."""
        self._budget.close(self)
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost()

    # Called by the HTTP connection.

    def write(self, data: bytes) -> None:
        if self.usage.closing:
            return
        for start in range(0, len(data), RECORD_BYTES):
            self.tls.write(data[start : start + RECORD_BYTES])
            self._socket.write(self._outgoing.read())
        if self._writing_paused:
            self._count_unread()

    def close(self) -> None:
        """Send close_notify and wait for the peer's: a connection that is cut could lose the last response."""
        if self.usage.closing:
            return
        with contextlib.suppress(ssl.SSLError):  # the peer's close_notify has not arrived
            self.tls.unwrap()
        self._flush()
        self._shut_down()

    def abort(self) -> None:
        """Close the connection without waiting for the peer."""
        self.usage.closing = True
        self._budget.close(self)
        self._socket.abort()

    def pause_reading(self) -> None:
        """Stop reading; data stays in the kernel's buffer."""
        if not self._reading_paused and not self.usage.closing:
            self._reading_paused = True
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            if not self._socket.is_closing():
                self._socket.resume_reading()

    # Called by the worker and the budget.

    @property
    def serving(self) -> bool:
        """Whether the head of a request was read, and the request is not yet answered."""
        return not self.usage.closing and self._protocol is not None and self._protocol.serving

    @property
    def used(self) -> bool:
        """Whether a request was answered, or the connection is being closed."""
        return self.usage.closing or (self._protocol is not None and self._protocol.used)

    def overdue(self, now: float) -> bool:
        """Whether the peer exceeded a time limit."""
        limits = self._worker.service.limits
        if self.usage.closing:
            return now - self._closing_since > limits.close_seconds
        if self._protocol is None:
            return now - self.usage.since > limits.handshake_seconds
        return self._protocol.overdue(now)

    def evict(self) -> None:
        """Close the connection to free its memory; a request whose body is still arriving gets a response."""
        if self._protocol is None or self.usage.closing or self.usage.writing:
            self.abort()
        else:
            self._protocol.evict()

    def drop(self) -> None:
        """Close the connection, and cancel its current request."""
        if self._protocol is None or self.usage.closing or self.usage.writing:
            self.abort()
        else:
            self._protocol.close()

    def _read_tls(self) -> None:
        """Continue the handshake, or pass decrypted data to the protocol.

        Raises:
            ssl.SSLWantReadError: all data was used; the usual case.
            ssl.SSLError: the data is not valid TLS.
        """
        if self._protocol is None:
            self.tls.do_handshake()
            self._flush()
            self._budget.finish(self.usage, self._worker.loop.time())
            self._protocol = HttpConnection(self._worker, self)
        pieces = []  # handed over together: a client may send a request in several records
        try:
            while self._incoming.pending or self.tls.pending():
                pieces.append(self.tls.read(RECORD_BYTES))
                if not pieces[-1]:  # the peer sent close_notify
                    break
        finally:
            if pieces and (data := b"".join(pieces)):
                self._protocol.data_received(data)
        if pieces and not pieces[-1]:
            self.close()
            return
        if self._outgoing.pending:
            self._flush()

    def _shut_down(self) -> None:
        """Send what is written, then end the stream; discard what still arrives."""
        self._closing_since = self._worker.loop.time()
        self.usage.closing = True
        self._budget.finish(self.usage, self._closing_since)
        self.resume_reading()
        if not self._socket.is_closing():
            self._socket.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    def _count_unread(self) -> None:
        waiting = self._socket.get_write_buffer_size() if self._writing_paused else 0
        self._budget.write(self.usage, waiting, self._worker.loop.time())
