"""HTTP on one connection: gunicorn's asgi protocol with limits, and a short way for ordinary reviews."""

import asyncio
from collections import deque
from http import HTTPStatus
from typing import Any

from gunicorn.asgi.parser import CallbackRequest
from gunicorn.asgi.protocol import ASGIProtocol, BodyReceiver, _get_cached_date_header

from webhook.errors import RequestError
from webhook.server.admission import CLOSE, DIRECT_BYTES, JSON
from webhook.server.body import Busy
from webhook.server.budget import PIECE_BYTES, ConnectionUsage
from webhook.server.framing import ChunkedBody, HeadLines
from webhook.server.tls import VerifiedClient, verified_client

HEAD_SECONDS = 10.0  # for each head from its first byte
# For a connection without a request. API servers keep spare ones and close them after 90 s: if the webhook closed one first, a
# review could choose it at that moment, and would fail.
UNUSED_SECONDS = 120.0
HEAD_BYTES = 64 << 10  # of a head
IDLE_SECONDS = 600.0  # API servers keep idle connections for minutes, and a handshake costs more than a review
SMALL_PIECE_BYTES = 1 << 10  # a smaller piece of a body takes noticeably more memory than its bytes
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n"  # with the date
WRITE_BLOCKED_SECONDS = 10.0  # for a peer that does not read its responses


class AdmissionProtocol(ASGIProtocol):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's HTTP/1.1 connection, with limits on bytes and time."""

    def __init__(self, worker: Any, usage: ConnectionUsage) -> None:
        super().__init__(worker)
        self._usage = usage
        self._head_bytes = 0
        self._head_lines = HeadLines()
        self._chunked_body: ChunkedBody | None = None  # while one arrives
        self._response_started = False  # to the current request
        self.may_answer = False  # without gunicorn's task: once for what is read from the socket at a time
        self._pipelined: deque[bytes] = deque()  # received after a complete request that is not yet answered
        self._write_blocked_since = 0.0  # 0 if the peer reads its responses
        self._client: VerifiedClient | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to serve requests; called after the handshake."""
        self._client = verified_client(transport.get_extra_info("ssl_object"))
        self._usage.verified = self._client is not None
        super().connection_made(transport)
        self._task.add_done_callback(self._drop_references)

    def _drop_references(self, _task: asyncio.Task[None]) -> None:
        """Remove cyclic references after the last request: the garbage collector does not see into the C parser."""
        for name in ("_callback_parser", "_chunked_body", "_body_receiver", "_task"):
            setattr(self, name, None)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, or keep the data for the next request: the parser would drop most of it."""
        if self._pipelined or self._request_complete:
            self._pipelined.append(data)
            self._pause_reading()
        else:
            self._feed(data)

    @property
    def _request_complete(self) -> bool:
        """Whether the current request has arrived completely; False again once it is answered."""
        return self._body_receiver is not None and self._body_receiver._complete  # noqa: SLF001

    def _feed(self, data: bytes) -> None:
        """Feed the parser; limit the bytes of the head."""
        if self._current_request is None:
            if not self._head_bytes:
                self._usage.since = self.worker.loop.time()
            self._head_bytes += len(data)
            super().data_received(data)
            if self._current_request is None and self._head_bytes > HEAD_BYTES and not self._closed:
                self._send_error_response(431, "Request Header Fields Too Large")
                self.close()
        elif not self._closed:
            super().data_received(data)

    def _feed_callback_parser(self, data: bytes) -> bool:
        """Feed the parser with heads and with bodies that have a length; decode chunks here."""
        try:
            body = self._chunked_body
            if body is None:
                if self._current_request is None:
                    self._head_lines.check(data)
                if not super()._feed_callback_parser(data):
                    return False
                body = self._chunked_body  # the head of a chunked request sets it
                if body is None:
                    if self._current_request is not None and not self._answered_at_once():
                        self._request_ready.set()
                    return True
                self._request_ready.set()
                data = self._callback_parser.remaining()
                self._callback_parser.reset()
            rest = body.feed(data)
        except RequestError as error:
            if not self.serving:
                self._send_error_response(error.status, str(error))
            self._refuse(error)
            return False
        if rest is not None:
            self._chunked_body = None
            self._on_message_complete()
            if rest:
                self._pipelined.appendleft(rest)
        return True

    def _feed_pipelined(self) -> None:
        """Feed what arrived while a request was being answered."""
        while self._pipelined and not self._request_complete and not self._closed:
            self._feed(self._pipelined.popleft())

    def pause_writing(self) -> None:
        """Start the time limit: the peer does not read its responses."""
        self._write_blocked_since = self.worker.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """End the time limit: the peer reads again."""
        self._write_blocked_since = 0.0
        super().resume_writing()

    def _on_headers_complete(self) -> Any:
        self._head_bytes = 0
        self._response_started = False
        # As gunicorn does it, but without its handling of proxy headers, which nothing here reads.
        self._current_request = CallbackRequest.from_parser(self._callback_parser, is_ssl=self._is_ssl)
        self._body_receiver = BodyReceiver(self._current_request, self)
        if self._current_request.chunked:
            self._chunked_body = ChunkedBody(self._on_body)
            return True  # the parser ends the request here, and keeps what follows
        return False

    def _on_message_complete(self) -> None:
        if self._chunked_body is None:
            super()._on_message_complete()

    def _arm_keepalive_timer(self) -> None:
        """Set no timer: the worker closes idle connections, which costs less than a timer for each request."""

    def _on_body(self, chunk: bytes) -> None:
        if len(chunk) < SMALL_PIECE_BYTES:
            self.worker.budget.read(self._usage, PIECE_BYTES, self.worker.loop.time())
        if self._body_receiver is not None:
            self._body_receiver.feed(chunk)

    def _send_response_start(self, status: int, headers: Any, request: Any, close: bool = False) -> None:
        if self._client_outdated and CLOSE not in headers:
            headers = [*headers, CLOSE]
        if CLOSE in headers:
            self._keepalive = 0  # gunicorn then reads no further request
        self._response_started = True
        if status == HTTPStatus.OK and request.method == "POST":
            self._usage.reviews += 1
        super()._send_response_start(status, headers, request, close)

    async def _serve_http_request(self, request: Any, sockname: Any, peername: Any) -> Any:
        """Answer a request and free its memory; data of the next request stays."""
        try:
            if self._answer_directly(request):
                return self.worker.alive
            return await super()._serve_http_request(request, sockname, peername)
        finally:
            parser = self._callback_parser
            self._head_bytes = 0 if parser is None else len(parser.remaining())
            left = self._head_bytes
            if self._pipelined:
                left += sum(map(len, self._pipelined))
                self.worker.loop.call_soon(self._feed_pipelined)  # after gunicorn has reset the parser
            self.worker.budget.finish(self._usage, self.worker.loop.time(), left)

    def _answered_at_once(self) -> bool:
        """Answer an ordinary review that is complete while gunicorn's task waits for it, without waking the task.

        Another turn of the event loop for each review would cost a tenth of it. This does what the task does after a response.
        """
        if not (self.may_answer and self._awaiting_request and self._request_complete):
            return False
        parser = self._callback_parser
        if self._pipelined or parser.remaining() or not self._answer_directly(self._current_request):
            return False
        self.may_answer = False
        self.req_count += 1
        self._head_bytes = 0
        parser.reset()
        self._current_request = self._body_receiver = None
        self.worker.budget.finish(self._usage, self.worker.loop.time())
        return True

    def _answer_directly(self, request: Any) -> bool:
        """Answer a complete, ordinary review; False if the request must go through ASGI.

        ASGI creates a scope, a task and five messages for each request, which costs half as much as the review itself.
        """
        receiver = self._body_receiver
        direct = request.method == "POST" and receiver._complete and receiver.buffered <= DIRECT_BYTES  # noqa: SLF001
        direct = direct and request.version == (1, 1) and not request.should_close()
        if direct and not self._write_blocked_since and not self._client_outdated:
            body = b"".join(receiver._chunks)  # noqa: SLF001
            verified = self._client is not None
            answer = self.app.answer_directly(request.path, request.headers_bytes, body, client_verified=verified)
            if answer is not None:
                status, response = answer
                if status == HTTPStatus.OK:
                    self._usage.reviews += 1
                    self._response_started = True
                    self._safe_write(HEAD % (len(response), _get_cached_date_header()) + response)
                else:
                    self._send_response_start(status, [JSON, (b"content-length", b"%d" % len(response))], request)
                    self._send_body(response)
                return True
        return False

    def _build_http_scope(self, request: Any, sockname: Any, peername: Any) -> dict[str, Any]:
        scope: dict[str, Any] = super()._build_http_scope(request, sockname, peername)
        return scope | {"client_verified": self._client is not None}

    @property
    def _client_outdated(self) -> bool:
        """Whether the client must be verified again, on a new connection."""
        return self._client is not None and self.worker.app.service.tls.is_outdated(self._client)

    def evict(self) -> None:
        """Close the connection to free its memory; a request whose body is still arriving gets a response."""
        self._refuse(
            Busy(
                "too many reviews are being read at the same time, and this one arrived slowly; send it again without pauses"
            )
        )

    def _refuse(self, error: RequestError) -> None:
        """Answer a request that has not arrived completely, and close the connection."""
        if self.serving and not self._response_started:
            status, response = self.app.refuse_unread(self._current_request.path, error)
            headers = [JSON, CLOSE, (b"content-length", b"%d" % len(response))]
            self._send_response_start(status, headers, self._current_request)
            self._send_body(response)
        self.close()

    def close(self) -> None:
        """Close the connection, and cancel its current request."""
        self._close_transport()
        if self._task is not None:
            self._task.cancel()

    @property
    def serving(self) -> bool:
        """Whether the head of a request was read, and the request is not yet answered."""
        return self._current_request is not None

    def overdue(self, now: float) -> bool:
        """Whether the peer exceeded a time limit."""
        if self._write_blocked_since:
            return now - self._write_blocked_since > WRITE_BLOCKED_SECONDS
        if self.serving:
            return False  # the application limits the time for the body
        if self._client_outdated:
            return True
        idle = IDLE_SECONDS if self.req_count > 1 else UNUSED_SECONDS
        return now - self._usage.since > (HEAD_SECONDS if self._head_bytes else idle)
