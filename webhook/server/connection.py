"""HTTP/1.1 on one connection: reads requests with limits on bytes and time, and answers them in order."""

import asyncio
import ssl
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

from webhook.errors import RequestError, TooLarge, TooSlow
from webhook.server.admission import ENDPOINTS, Busy, MethodNotAllowed, Sender
from webhook.server.budget import PIECE_BYTES, ConnectionUsage, MemoryBudget
from webhook.server.framing import MAX_BODY, ChunkedBody, Head, read_head, read_seconds
from webhook.server.tls import verified_client
from webhook.server.wiring import Service

SMALL_PIECE_BYTES = 1 << 10  # a smaller piece of a body takes noticeably more memory than its bytes
JSON = b"application/json"
RESPONSE = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\ndate: %b\r\n%b\r\n"
STATUS_LINES = {status.value: f"{status.value} {status.phrase}".encode() for status in HTTPStatus}


class ServingWorker(Protocol):
    """What serves, and what all its connections share.

    Attributes:
        loop: that runs.
        budget: of all connections.
        tls_context: for new connections.
    """

    loop: asyncio.AbstractEventLoop
    budget: MemoryBudget
    tls_context: ssl.SSLContext

    @property
    def service(self) -> Service:
        """What is served."""


class Transport(Protocol):
    """What carries the bytes of one connection.

    Attributes:
        usage: the memory that the connection uses.
        tls: the TLS object.
        address: of the peer.
    """

    usage: ConnectionUsage
    tls: ssl.SSLObject
    address: str

    def write(self, data: bytes) -> None:
        """Send."""

    def close(self) -> None:
        """Close the connection."""

    def pause_reading(self) -> None:
        """Stop reading."""

    def resume_reading(self) -> None:
        """Continue to read."""


class HttpConnection:
    """The requests of one connection.

    Attributes:
        used: any request was answered.
    """

    def __init__(self, worker: ServingWorker, transport: Transport) -> None:
        """Begin to serve requests; called after the handshake."""
        self._service = worker.service
        self._budget = worker.budget
        self._loop = worker.loop
        self._transport: Transport | None = transport  # None once the connection is lost
        self._usage, self._address = transport.usage, transport.address
        self._client = verified_client(transport.tls)
        self._usage.verified = self._client is not None
        self._received = b""  # and not yet read
        self._head: Head | None = None  # of the current request
        self._body: list[bytes] = []
        self._size = 0  # of the body
        self._chunks: ChunkedBody | None = None
        self._timer: asyncio.TimerHandle | None = None  # while a body arrives
        self._reviewing = False
        self.used = False
        self._write_blocked_since = 0.0  # 0 if the peer reads its responses

    def data_received(self, data: bytes) -> None:
        """Serve the requests that are complete."""
        if not self._received and self._head is None:
            self._usage.since = self._loop.time()
        self._received += data
        self._serve()

    def pause_writing(self) -> None:
        """Start the time limit: the peer does not read its responses."""
        self._write_blocked_since = self._loop.time()

    def resume_writing(self) -> None:
        """End the time limit: the peer reads again."""
        self._write_blocked_since = 0.0
        self._serve()

    def connection_lost(self) -> None:
        """Free everything; no reference to this connection stays."""
        self._transport = None
        self._forget()

    def evict(self) -> None:
        """Close the connection to free its memory; a request whose body is still arriving gets a response."""
        if self.serving:
            self._refuse(
                Busy("too many reviews are being read, and this one arrived slowly; send it again without pauses")
            )
        else:
            self.close()

    def close(self) -> None:
        """Close the connection; its current request gets no response."""
        self._forget()
        if self._transport is not None:
            self._transport.close()

    @property
    def serving(self) -> bool:
        """Whether the head of a request was read, and the request is not yet answered."""
        return self._head is not None

    def overdue(self, now: float) -> bool:
        """Whether the peer exceeded a time limit."""
        limits = self._service.limits
        if self._write_blocked_since:
            return now - self._write_blocked_since > limits.write_blocked_seconds
        if self.serving:
            return False  # a timer limits the time for the body
        if self._client_outdated:
            return True
        idle = limits.idle_seconds if self.used else limits.unused_seconds
        return now - self._usage.since > (limits.head_seconds if self._received else idle)

    @property
    def _client_outdated(self) -> bool:
        """Whether the client must be verified again, on a new connection."""
        return self._client is not None and self._service.tls.is_outdated(self._client)

    @property
    def _closing(self) -> bool:
        return self._transport is None or self._usage.closing

    def _serve(self) -> None:
        """Read on, and answer at most one request, so that a pipeline does not delay other connections."""
        transport = self._transport
        if transport is None or self._usage.closing:
            return
        if self._reviewing or self._write_blocked_since:
            transport.pause_reading()
            return
        try:
            complete = self._read_head() and self._read_body()
        except RequestError as error:
            self._refuse(error)
            return
        if complete:
            self._answer()
        else:
            transport.resume_reading()

    def _read_head(self) -> bool:
        """Read the head of the next request unless it is read; returns whether it is complete."""
        if self._head is None:
            read = read_head(self._received)
            if read is None:
                return False
            self._head, self._received = read
            self._service.admission.check(self._head, client_verified=self._client is not None)
            if self._head.length is None:
                self._chunks = ChunkedBody(self._take)
        return True

    def _read_body(self) -> bool:
        """Read on in the body; returns whether it is complete."""
        assert self._head is not None  # noqa: S101
        data, self._received = self._received, b""
        if self._chunks is not None:
            rest = self._chunks.feed(data)
        else:
            left = (self._head.length or 0) - self._size
            self._take(data[:left])
            rest = data[left:] if len(data) >= left else None
        if self._closing:  # evicted
            return False
        if rest is not None:
            self._received = rest
            return True
        if self._timer is None:
            error = TooSlow("the body did not arrive in time; send it at once")
            seconds = read_seconds(self._head.query, self._service.limits.body_seconds)
            self._timer = self._loop.call_later(seconds, self._refuse, error)
            if self._head.waits and self._transport is not None:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return False

    def _take(self, piece: bytes) -> None:
        if not piece or self._closing:
            return
        self._size += len(piece)
        if self._size > MAX_BODY:
            raise TooLarge(f"the body has more than {MAX_BODY} bytes")
        self._body.append(piece)
        if len(piece) < SMALL_PIECE_BYTES:
            self._budget.read(self._usage, PIECE_BYTES, self._loop.time())

    def _answer(self) -> None:
        """Answer the current request, which is complete."""
        assert self._head is not None  # noqa: S101
        self._cancel_timer()
        if self._head.path in ENDPOINTS:
            self._reviewing = True
            body, self._body = b"".join(self._body), []
            sender = Sender(self._address, not self._usage.untrusted, self._client is not None)
            self._service.admission.review(self._head.path, body, self._reviewed, sender)
        else:
            self._send(*self._service.admission.page(self._head.path))

    def _reviewed(self, status: int, response: bytes) -> None:
        self._reviewing = False
        if not self._closing:
            self._usage.reviews += status == HTTPStatus.OK
            self._send(status, JSON, response)

    def _refuse(self, error: RequestError) -> None:
        """Answer a request that has not arrived completely, and close the connection."""
        status, response = self._service.admission.refuse(self._head.path if self._head else "", error)
        allow = b"allow: %b\r\n" % error.allow.encode() if isinstance(error, MethodNotAllowed) else b""
        self._send(status, JSON, response, b"connection: close\r\n" + allow)

    def _send(self, status: int, media_type: bytes, body: bytes, more: bytes = b"") -> None:
        """Answer the current request; continue with the next one, or close the connection."""
        transport, head = self._transport, self._head
        if transport is None:
            return
        if not more and (head is None or head.closes or self._service.state.draining or self._client_outdated):
            more = b"connection: close\r\n"
        response = RESPONSE % (STATUS_LINES[status], media_type, len(body), _date(int(time.time())), more)
        self.used = True
        self._forget()
        transport.write(response if head is not None and head.method == "HEAD" else response + body)
        self._budget.finish(self._usage, self._loop.time(), len(self._received))
        if more:
            transport.close()
        elif self._received:
            transport.pause_reading()
            self._loop.call_soon(self._serve)
        else:
            transport.resume_reading()

    def _forget(self) -> None:
        """Free what the current request holds."""
        self._cancel_timer()
        self._head = self._chunks = None
        if self._size:
            self._body, self._size = [], 0

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()
