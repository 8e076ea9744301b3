"""TLS on one connection, for gunicorn's protocol: the transport of the one side is the protocol of the other.

The event loop has TLS of its own, whose buffers nobody can see: up to half a megabyte for each connection, kept while it
is idle, and no way to close a connection in the middle of its handshake. Here every byte is counted when it comes.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Iterable
from typing import Any

from webhook.server.budget import Account
from webhook.server.connection import AdmissionProtocol

HANDSHAKE_SECONDS = 5.0
HANDSHAKE_BYTES = 64 << 10  # a client certificate with its chain needs a few thousand
SHUTDOWN_SECONDS = 2.0  # for a peer to say goodbye
RECORD_BYTES = 16 << 10  # the most that TLS encrypts in one piece; buffers grow to about twice as much
UNREAD_BYTES = 16 << 10  # of answers, before a connection waits for its peer


class TlsTransport(asyncio.Protocol):
    """One connection from its first byte to its last.

    Attributes:
        account: what it holds.
    """

    def __init__(self, worker: Any) -> None:
        self.account = Account(worker.loop.time())
        self._worker = worker
        self._budget = worker.budget
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject = worker.tls_context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._socket: Any = None
        self._protocol: AdmissionProtocol | None = None  # after the handshake
        self._closing_since = 0.0
        self._writing_paused = self._reading_paused = False

    # What the event loop calls.

    def connection_made(self, transport: Any) -> None:
        """Count the connection in."""
        self._socket = transport
        transport.set_write_buffer_limits(high=UNREAD_BYTES)
        self._budget.open(self, self._worker.loop.time())

    def data_received(self, data: bytes) -> None:
        """Decrypt, in pieces that keep the buffers small."""
        now = self._worker.loop.time()
        for start in range(0, len(data), RECORD_BYTES):
            piece = data[start : start + RECORD_BYTES]
            self._budget.read(self.account, len(piece), now)
            if self.account.closing:  # since long, to make room, or because of what came before
                return
            self._incoming.write(piece)
            try:
                self._advance()
            except ssl.SSLWantReadError:
                self._flush()
                if self._protocol is None and self.account.reading > HANDSHAKE_BYTES:
                    self.abort()
            except ssl.SSLError:
                self._flush()  # the alert that gives the reason
                self._end()

    def eof_received(self) -> None:
        """Let the event loop close the socket: TLS has no half-closed connections."""

    def pause_writing(self) -> None:
        """The peer does not read: what waits for it counts."""
        self._writing_paused = True
        self._count_unread()
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._writing_paused = False
        self._count_unread()
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count the connection out."""
        self._budget.close(self)
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(exc)

    # What gunicorn calls.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The TLS object, or what the socket has."""
        return self._tls if name == "ssl_object" else self._socket.get_extra_info(name, default)

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        if self.account.closing:
            return
        for start in range(0, len(data), RECORD_BYTES):
            self._tls.write(data[start : start + RECORD_BYTES])
            self._flush()
        if self._writing_paused:
            self._count_unread()

    def writelines(self, parts: Iterable[bytes]) -> None:
        """Encrypt and send."""
        for part in parts:
            self.write(part)

    def close(self) -> None:
        """Say goodbye, and wait a little for the peer's: a connection cut at once could lose the last answer."""
        if self.account.closing:
            return
        with contextlib.suppress(ssl.SSLError):  # the peer's goodbye is still missing
            self._tls.unwrap()
        self._flush()
        self._end()

    def abort(self) -> None:
        """End the connection now."""
        self.account.closing = True
        self._budget.close(self)
        self._socket.abort()

    def is_closing(self) -> bool:
        """Whether nothing more is read or written."""
        return self.account.closing

    def pause_reading(self) -> None:
        """Leave what comes in the kernel's buffer."""
        if not self._reading_paused and not self.account.closing:
            self._reading_paused = True
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._reading_paused:
            self._reading_paused = False
            if not self._socket.is_closing():
                self._socket.resume_reading()

    def can_write_eof(self) -> bool:
        """Not within TLS."""
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Keep our own limit: what is not yet read counts."""

    # What the worker and the budget call.

    @property
    def serving(self) -> bool:
        """Whether a request was read and is not yet answered."""
        return not self.account.closing and self._protocol is not None and self._protocol.serving

    def overdue(self, now: float) -> bool:
        """Whether the peer took too long."""
        if self.account.closing:
            return now - self._closing_since > SHUTDOWN_SECONDS
        if self._protocol is None:
            return now - self.account.since > HANDSHAKE_SECONDS
        return self._protocol.overdue(now)

    def make_room(self) -> None:
        """Close the connection with all that it holds; a body that is still coming gets an answer."""
        if self._protocol is None or self.account.closing or self.account.writing:
            self.abort()
        else:
            self._protocol.refuse()

    def drop(self) -> None:
        """Close a connection that is not worth waiting for."""
        if self._protocol is None or self.account.closing or self.account.writing:
            self.abort()
        else:
            self._protocol.close()

    def _advance(self) -> None:
        """Take from TLS what has come.

        Raises:
            ssl.SSLWantReadError: more has to come; the usual end.
            ssl.SSLError: the peer does not keep to TLS.
        """
        if self._protocol is None:
            self._tls.do_handshake()
            self._flush()
            self._budget.finish(self.account, self._worker.loop.time())
            self._protocol = AdmissionProtocol(self._worker, self.account)
            self._protocol.connection_made(self)
        while self._incoming.pending or self._tls.pending():
            data = self._tls.read(RECORD_BYTES)
            if not data:  # the peer says goodbye
                self.close()
                return
            self._protocol.data_received(data)
            if self.is_closing():
                return
        if self._outgoing.pending:
            self._flush()

    def _end(self) -> None:
        """Send what is written, and no more; what still comes is thrown away."""
        self._closing_since = self._worker.loop.time()
        self.account.closing = True
        self._budget.finish(self.account, self._closing_since)
        self.resume_reading()
        if not self._socket.is_closing():
            self._socket.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._socket.write(self._outgoing.read())

    def _count_unread(self) -> None:
        waiting = self._socket.get_write_buffer_size() if self._writing_paused else 0
        self._budget.write(self.account, waiting, self._worker.loop.time())
