"""What is read of a request: its head, and the limits on the bytes and the time of its body."""

import pytest

from tests.cases import each_case
from tests.reviewing import snapshot
from webhook.errors import RequestError, TooLarge, WrongMediaType
from webhook.server.admission import Admission
from webhook.server.framing import MAX_BODY, MAX_FIELDS, Head, HeadTooLarge, read_head, read_seconds
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState

POST = b"POST /validate?timeout=5s HTTP/1.1\r\nHost: h\r\n"


def read(more: bytes, first: bytes = POST) -> Head:
    found = read_head(first + more + b"\r\n")
    assert found is not None
    assert found[1] == b""
    return found[0]


def test_a_head_is_read():
    head = read(b"content-TYPE: \t a/b \t\r\nContent-Length:7\r\nExpect: 100-Continue\r\nX:\r\n")
    assert head == Head("POST", "/validate", b"timeout=5s", 7, b"a/b", waits=True, closes=False)
    assert read(b"Transfer-Encoding: Chunked\r\n").length is None
    assert read(b"").length == 0


def test_the_bytes_after_a_head_stay():
    assert read_head(POST + b"\r\nbody\r\n\r\n") == (read(b""), b"body\r\n\r\n")
    assert [read_head(POST[:end]) for end in range(len(POST))] == [None] * len(POST)


@each_case(
    "first, more, closes",
    [
        (b"GET / HTTP/1.1\r\n", b"", False),
        (b"GET / HTTP/1.0\r\n", b"", True),
        (b"GET / HTTP/1.0\r\n", b"Connection: keep-alive\r\n", True),
        (b"GET / HTTP/1.1\r\n", b"Connection: keep-alive\r\n", False),
        (b"GET / HTTP/1.1\r\n", b"Connection: Close\r\n", True),
        (b"GET / HTTP/1.1\r\n", b"Connection: x\r\nConnection: close\r\n", True),
    ],
)
def test_the_connection_ends_after_some_requests(first: bytes, more: bytes, closes: bool):
    assert read(more, first).closes is closes


@each_case(
    "more",
    [
        b"A b: c\r\n",
        b"A\t: c\r\n",
        b": c\r\n",
        b"A\r\n",
        b"\xc3: c\r\n",
        b"A: b\rc\r\n",
        b"A: b\x7f\r\n",
        b"A: b\x00\r\n",
        b" A: b\r\n",
        b"A: b\r\n\tc\r\n",
        b"A: b\nC: d\r\n",
        b"Upgrade: h2c\r\n",
        b"Content-Length:\r\n",
        b"Content-Length: \xb2\r\n",
        b"Content-Length: 1_0\r\n",
        b"Content-Length: 5\r\ncontent-length: 5\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding:\r\n",
    ],
)
def test_a_head_that_parsers_read_in_different_ways_is_refused(more: bytes):
    with pytest.raises(RequestError):
        read(more)


@each_case(
    "first",
    [
        b"POST  / HTTP/1.1\r\n",
        b"POST /  HTTP/1.1\r\n",
        b"POST /a b HTTP/1.1\r\n",
        b"POST /\xff HTTP/1.1\r\n",
        b"POST\t/ HTTP/1.1\r\n",
        b"POST / HTTP/1.2\r\n",
        b"POST / HTTP/1.10\r\n",
        b"POST / http/1.1\r\n",
        b"POST / HTTP/1.1 \r\n",
        b"(POST / HTTP/1.1\r\n",
        b"\r\n\r\nPOST / HTTP/1.1\r\n",
    ],
)
def test_another_request_line_is_refused(first: bytes):
    with pytest.raises(RequestError):
        read_head(first + b"\r\n")


def test_chunks_need_http_1_1():
    with pytest.raises(RequestError):
        read(b"Transfer-Encoding: chunked\r\n", b"POST / HTTP/1.0\r\n")


def test_the_number_of_headers_is_limited():
    assert read(b"A: b\r\n" * (MAX_FIELDS - 1))
    with pytest.raises(HeadTooLarge):
        read(b"A: b\r\n" * MAX_FIELDS)


@each_case(
    "query, seconds",
    [
        (b"", 10.0),
        (b"timeout=5s", 5.0),
        (b"timeout=10s&x=1", 10.0),
        (b"x=1&timeout=1s", 1.0),
        (b"timeout=1.5s", 1.5),
        (b"timeout=250ms", 0.25),
        (b"timeout=1m", 30.0),
        (b"timeout=1m30s", 30.0),
        (b"timeout=999999s", 30.0),
        (b"timeout=0s", 0.001),
        (b"timeout=", 10.0),
        (b"timeout=5", 10.0),
        (b"timeout=-5s", 10.0),
        (b"timeout=5h", 10.0),
        (b"timeout=1e3s", 10.0),
        (b"xtimeout=5s", 10.0),
        (b"timeout=\xd9\xa5s", 10.0),
    ],
)
def test_the_timeout_is_read_from_the_query(query: bytes, seconds: float):
    assert read_seconds(query) == seconds


def test_heads_of_reviews_that_are_not_read_are_refused():
    admission = Admission(ServerState(snapshot("every-family")), [], Metrics())
    json = b"Content-Type: application/json\r\n"
    admission.check(read(json + b"Content-Length: %d\r\n" % MAX_BODY), client_verified=False)
    with pytest.raises(TooLarge):
        admission.check(read(json + b"Content-Length: %d\r\n" % (MAX_BODY + 1)), client_verified=False)
    with pytest.raises(WrongMediaType):
        admission.check(read(b"Content-Type: application/xml\r\n"), client_verified=False)
    with pytest.raises(RequestError, match="no body"):
        admission.check(read(b"Content-Length: 1\r\n", b"GET /healthz HTTP/1.1\r\n"), client_verified=False)
