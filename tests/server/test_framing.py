"""Where a request ends, and which heads are refused, in process; test_http shows the responses."""

import pytest

from tests.cases import each_case
from webhook.errors import RequestError, TooLarge, WrongMediaType
from webhook.server.admission import Admission, MethodNotAllowed, NotFound
from webhook.server.framing import (
    HEAD_BYTES,
    MAX_BODY,
    MAX_FIELDS,
    ChunkedBody,
    Head,
    HeadTooLarge,
    read_head,
    read_seconds,
)
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


AMBIGUOUS = [
    b"A b: c\r\n", b"A\t: c\r\n", b": c\r\n", b"A\r\n", b"\xc3: c\r\n", b"A: b\rc\r\n", b"A: b\x7f\r\n", b"A: b\x00\r\n",
    b" A: b\r\n", b"A: b\r\n\tc\r\n", b"A: b\nC: d\r\n", b"Upgrade: h2c\r\n", b"Content-Length:\r\n",
    b"Content-Length: \xb2\r\n", b"Content-Length: 1_0\r\n", b"Content-Length: 5\r\ncontent-length: 5\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\r\n", b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: gzip\r\n", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5, 6\r\n", b"Content-Length: -1\r\n",
    b"Content-Length: +5\r\n", b"Content-Length: 0x5\r\n", b"A : b\r\n", b"A: b\r\n c: d\r\n",
]  # fmt: skip


@each_case("more", AMBIGUOUS)
def test_a_head_that_parsers_read_in_different_ways_is_refused(more: bytes):
    with pytest.raises(RequestError):
        read(more)


def test_a_length_beyond_64_bits_is_too_large():
    assert read(b"Content-Length: %s\r\n" % (b"9" * 400)).length == 1 << 64


OTHER_BEGINNINGS = [
    b"POST  / HTTP/1.1\r\n", b"POST /  HTTP/1.1\r\n", b"POST /a b HTTP/1.1\r\n", b"POST /\xff HTTP/1.1\r\n",
    b"POST\t/ HTTP/1.1\r\n", b"POST / HTTP/1.2\r\n", b"POST / HTTP/1.10\r\n", b"POST / http/1.1\r\n",
    b"POST / HTTP/1.1 \r\n", b"(POST / HTTP/1.1\r\n", b"\r\n\r\nPOST / HTTP/1.1\r\n", b"POST /\r\n", b"POST / HTTP/9.9\r\n",
    b"PRI * HTTP/2.0\r\n", b"\x16\x03\x01 hello\r\n", b"POST / HTTP/1.1\n", b"POST / HTTP/1.1\r\nA: b\nC: d\r\n",
    b"POST / HTTP/1.1\r\nA: b\r\n\n", b"\r\nPOST / HTTP/1.1\nA: b\r\n",
]  # fmt: skip


@each_case("first", OTHER_BEGINNINGS)
@each_case("size", [1000, 1], ids=["at once", "byte by byte"])
def test_another_beginning_is_refused(first: bytes, size: int):
    sent = first + b"\r\n"
    with pytest.raises(RequestError):  # noqa: PT012
        for end in range(size, len(sent) + size, size):
            read_head(sent[:end])


@each_case(
    "chunks, error",
    [
        (b"\r\n\r\n", RequestError),
        (b"zz\r\n", RequestError),
        (b"-1\r\n\r\n", RequestError),
        (b"10000000000000001\r\nx\r\n0\r\n\r\n", TooLarge),  # 1 modulo 2 to the 64
        (b"%x\r\n" % (MAX_BODY + 1), TooLarge),
        (b"1\r\nxy\r\n0\r\n\r\n", RequestError),
        (b"1\nx\r\n0\r\n\r\n", RequestError),
        (b"1;a\nb\r\nx\r\n0\r\n\r\n", RequestError),
        (b"1\r\nx\n0\r\n\r\n", RequestError),
        (b"0\r\n\n", RequestError),
        (b"0\r\nX-A: b\r\n\r\n", RequestError),
    ],
)
@each_case("size", [1000, 1], ids=["at once", "byte by byte"])
def test_malformed_chunks_are_refused(chunks: bytes, error: type[RequestError], size: int):
    body = ChunkedBody([].append)
    with pytest.raises(error) as refused:  # noqa: PT012
        for at in range(0, len(chunks), size):
            assert body.feed(chunks[at : at + size]) is None
    assert type(refused.value) is error


@each_case(
    "first, more, error",
    [
        (POST + b"X-A: ", b"a", HeadTooLarge),
        (POST, b"X-A: b\r\n", HeadTooLarge),
        (POST, b"X-A: " + b"b" * 4000 + b"\r\n", HeadTooLarge),
        (b"POST /", b"a", HeadTooLarge),
        (b"P", b"O", HeadTooLarge),
        (b"", b"\r\n", RequestError),
    ],
)
def test_a_head_without_an_end_is_refused(first: bytes, more: bytes, error: type[RequestError]):
    with pytest.raises(error) as refused:  # noqa: PT012
        for size in range(0, 2 * HEAD_BYTES, 8192):
            read_head(first + more * (size // len(more)))
    assert type(refused.value) is error


@each_case("more", [b"5;" + b"a" * 8192, b"0" * 8192, b"0\r\n" + b"X-A: b\r\n" * 1024, b"1\r\nx\r\n" * 20_000])
def test_chunks_that_are_mostly_framing_are_refused(more: bytes):
    with pytest.raises(RequestError):
        ChunkedBody([].append).feed(more)


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
    assert read_seconds(query, 10.0) == seconds


METHODS = ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
JSON_TYPES = (
    b"application/json",
    b"application/json; charset=utf-8",
    b"Application/JSON",
    b"application/json;charset=UTF-8;q=1",
)
OTHER_TYPES = (b"text/plain", b"application/jsonx", b"text/json", b"", b"application/yaml")
PAGES = ("/healthz", "/readyz", "/metrics")
OTHER_PATHS = ("/", "/mutate/", "/Mutate", "/mutate%2f", "//mutate", "/metrics/x", "/%00")
JSON = b"Content-Type: application/json\r\n"


@each_case(
    "first, more, error",
    [
        *((f"{each} {path}", b"", MethodNotAllowed) for each in METHODS for path in ("/mutate", "/validate")),
        *((f"POST {path}", JSON, MethodNotAllowed) for path in PAGES),
        *((f"POST {path}", JSON, NotFound) for path in OTHER_PATHS),
        *(("POST /validate", b"Content-Type: %b\r\n" % each, WrongMediaType) for each in OTHER_TYPES),
        ("POST /validate", b"", WrongMediaType),
        ("POST /validate", JSON + b"Content-Length: %d\r\n" % (MAX_BODY + 1), TooLarge),
        ("GET /healthz", b"Content-Length: 1\r\n", RequestError),
        *(("POST /validate", b"Content-Type: %b\r\n" % each, None) for each in JSON_TYPES),
        *((f"{method} {path}", b"", None) for method in ("GET", "HEAD") for path in PAGES),
        ("POST /mutate", JSON + b"Content-Length: %d\r\n" % MAX_BODY, None),
    ],
)
def test_some_heads_are_refused_before_the_body_is_read(first: str, more: bytes, error: type[RequestError] | None):
    admission = Admission(ServerState(None), [], Metrics())
    head = read(more, f"{first} HTTP/1.1\r\n".encode())
    if error is None:
        admission.check(head, client_verified=False)
        return
    with pytest.raises(error) as refused:
        admission.check(head, client_verified=False)
    assert type(refused.value) is error
