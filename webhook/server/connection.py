"""One connection of gunicorn's asgi worker: reads requests within bounds, and answers most of them at once."""

import asyncio
from collections import deque
from typing import Any

from gunicorn.asgi.parser import CallbackRequest
from gunicorn.asgi.protocol import ASGIProtocol, BodyReceiver

from webhook.server.admission import AT_ONCE_BYTES, CLOSE, JSON
from webhook.server.budget import PIECE_BYTES, Account
from webhook.server.tls import VerifiedClient, verified_client

HEAD_SECONDS = 10.0  # for the first request of a connection, and for each head from its first byte
HEAD_BYTES = 64 << 10  # before the head is complete
FRAMING_BYTES = 64 << 10  # of chunk sizes, extensions, trailers: the parser keeps and rereads them until they end
IDLE_SECONDS = 600.0  # an API server keeps connections for minutes; a new handshake costs more than a review
SMALL_PIECE_BYTES = 1 << 10  # smaller pieces of a body cost noticeably more than their bytes
STUCK_SECONDS = 10.0  # for a peer to take from a full buffer of answers


class AdmissionProtocol(ASGIProtocol):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's connection, bounded."""

    def __init__(self, worker: Any, account: Account) -> None:
        super().__init__(worker)
        self._account = account
        self._head_bytes = 0
        self._framing_bytes = 0  # came in a request since its head, and brought no body
        self._answering = False  # the answer to the current request has begun
        self._next: deque[bytes] = deque()  # came behind the current request, and waits until that is answered
        self._stuck_since = 0.0  # since when the peer does not read its answers; 0 if it does
        self._client: VerifiedClient | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to serve: the handshake is done."""
        self._client = verified_client(transport.get_extra_info("ssl_object"))
        self._account.verified = self._client is not None
        super().connection_made(transport)
        self._task.add_done_callback(self._break_cycles)

    def _break_cycles(self, _task: asyncio.Task[None]) -> None:
        """Let go of all that refers back, once nothing more is served: the C parser takes no part in garbage collection."""
        for name in ("_callback_parser", "_body_receiver", "_task"):
            setattr(self, name, None)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, or keep what belongs to the next request: the parser keeps little of that, and drops the rest."""
        if self._next or self._is_read:
            self._next.append(data)
            self._pause_reading()
        else:
            self._feed(data)

    @property
    def _is_read(self) -> bool:
        """The current request arrived as a whole, and gunicorn has not yet finished with it."""
        return self._body_receiver is not None and self._body_receiver._complete  # noqa: SLF001

    def _feed(self, data: bytes) -> None:
        """Feed the parser, within bounds for all that is not body."""
        if self._current_request is None:
            if not self._head_bytes:
                self._account.since = self.worker.loop.time()
            self._head_bytes += len(data)
            super().data_received(data)
            if self._current_request is None and self._head_bytes > HEAD_BYTES and not self._closed:
                self._send_error_response(431, "Request Header Fields Too Large")
                self.close()
        elif not self._closed:
            self._framing_bytes += len(data)
            super().data_received(data)
            if self._framing_bytes > FRAMING_BYTES and not self._is_read:
                self.close()

    def _feed_next(self) -> None:
        """Go on with what came while a request was answered."""
        while self._next and not self._is_read and not self._closed:
            self._feed(self._next.popleft())

    def pause_writing(self) -> None:
        """Note that the peer does not read."""
        self._stuck_since = self.worker.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the peer reads again."""
        self._stuck_since = 0.0
        super().resume_writing()

    def _on_headers_complete(self) -> Any:
        self._head_bytes = self._framing_bytes = 0
        self._answering = False
        # As gunicorn does it, without its policy for the headers of proxies: nothing here asks for them.
        self._current_request = CallbackRequest.from_parser(self._callback_parser, is_ssl=self._is_ssl)
        self._body_receiver = BodyReceiver(self._current_request, self)
        self._request_ready.set()
        return False

    def _arm_keepalive_timer(self) -> None:
        """Leave idle connections to the sweep: a timer for each request would cost more than the sweep as a whole."""

    def _on_body(self, chunk: bytes) -> None:
        # Twice, so that pieces may be as small as their framing, but not much smaller for long.
        self._framing_bytes = max(0, self._framing_bytes - 2 * len(chunk))
        if len(chunk) < SMALL_PIECE_BYTES:
            self.worker.budget.read(self._account, PIECE_BYTES, self.worker.loop.time())
        if self._body_receiver is not None:
            self._body_receiver.feed(chunk)

    def _send_response_start(self, status: int, headers: Any, request: Any, close: bool = False) -> None:
        if self._is_outdated and CLOSE not in headers:
            headers = [*headers, CLOSE]
        if CLOSE in headers:
            self._keepalive = 0  # what gunicorn asks before it reads the next request
        self._answering = True
        if status == 200 and request.method == "POST":
            self._account.reviews += 1
        super()._send_response_start(status, headers, request, close)

    async def _serve_http_request(self, request: Any, sockname: Any, peername: Any) -> Any:
        """Answer, and count out what the request held; what came behind it stays."""
        try:
            return await self._answer(request, sockname, peername)
        finally:
            parser = self._callback_parser
            self._head_bytes = 0 if parser is None else len(parser.remaining())
            left = self._head_bytes + sum(map(len, self._next))
            self.worker.budget.finish(self._account, self.worker.loop.time(), left)
            if self._next:
                self.worker.loop.call_soon(self._feed_next)  # when gunicorn has made the parser ready for it

    async def _answer(self, request: Any, sockname: Any, peername: Any) -> Any:
        """Answer at once what has arrived as a whole, as nearly every review has.

        ASGI's way, with a scope, a task and five messages a request, costs half as much as the review itself. It is left
        for all that is unusual.
        """
        receiver = self._body_receiver
        usual = request.method == "POST" and receiver._complete and receiver.buffered <= AT_ONCE_BYTES  # noqa: SLF001
        if usual and request.version == (1, 1) and not request.should_close() and not self._stuck_since:
            body = b"".join(receiver._chunks)  # noqa: SLF001
            verified = self._client is not None
            answer = self.app.at_once(request.path, request.headers_bytes, body, client_verified=verified)
            if answer is not None:
                status, response = answer
                self._send_response_start(status, [JSON, (b"content-length", b"%d" % len(response))], request)
                self._send_body(response)
                return self.worker.alive
        return await super()._serve_http_request(request, sockname, peername)

    def _build_http_scope(self, request: Any, sockname: Any, peername: Any) -> dict[str, Any]:
        scope: dict[str, Any] = super()._build_http_scope(request, sockname, peername)
        return scope | {"client_verified": self._client is not None}

    @property
    def _is_outdated(self) -> bool:
        """Whether the client has to prove itself anew: this answer is the last on the connection."""
        return self._client is not None and self.worker.app.service.tls.is_outdated(self._client)

    def refuse(self) -> None:
        """Make room for others; a body that is still coming gets an answer."""
        if self.serving and not self._answering:
            status, response = self.app.crowd_out(self._current_request.path)
            headers = [JSON, CLOSE, (b"content-length", b"%d" % len(response))]
            self._send_response_start(status, headers, self._current_request)
            self._send_body(response)
        self.close()

    def close(self) -> None:
        """Close the connection, and end what is served on it."""
        self._close_transport()
        if self._task is not None:
            self._task.cancel()

    @property
    def serving(self) -> bool:
        """A request was read and is not yet answered."""
        return self._current_request is not None

    def overdue(self, now: float) -> bool:
        """Whether the peer took too long."""
        if self._stuck_since:
            return now - self._stuck_since > STUCK_SECONDS
        if self.serving:
            return False  # the application bounds that
        if self._is_outdated:
            return True
        idle = self.req_count > 1 and not self._head_bytes
        return now - self._account.since > (IDLE_SECONDS if idle else HEAD_SECONDS)
