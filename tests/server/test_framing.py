"""HTTP framing: methods, lengths, chunks, and ambiguous requests; test_pipelines tests pipelines."""

import contextlib
import json
import ssl

import pytest

from tests.server.client import JSON, Connection, encode_request
from tests.server.program import Program
from tests.server.reviews import admission_response, refusal, review

GOOD = json.dumps(review()).encode()
POST = "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_reviews_accept_only_post(program: Program, method: str, path: str):
    with program.connect() as connection:
        response = connection.request(method, path)
        assert "POST" in refusal(response, 405)
        assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_pages_accept_only_get_and_head(connection: Connection, path: str):
    page = connection.request("GET", path)
    head = connection.request("HEAD", path)
    assert page.status == head.status == 200
    assert page.body
    assert int(head.headers["content-length"]) > 0
    response = connection.request("POST", path, GOOD, JSON)
    refusal(response, 405)
    assert response.headers["allow"] == "GET, HEAD"


def test_head_of_a_review_is_refused(connection: Connection):
    assert connection.request("HEAD", "/mutate").status == 405


@pytest.mark.parametrize("path", ["/", "/mutate/", "/Mutate", "/mutate%2f", "//mutate", "/metrics/x", "/%00"])
def test_other_paths_are_not_found(program: Program, path: str):
    with program.connect() as connection:
        refusal(connection.request("POST", path, GOOD, JSON), 404)


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;q=1"],
)
def test_the_media_type_may_have_parameters(connection: Connection, media_type: str):
    assert admission_response(connection.request("POST", "/validate", GOOD, {"Content-Type": media_type}))


@pytest.mark.parametrize("size", [1000, 1], ids=["at once", "byte by byte"])
def test_a_chunked_body_is_read(connection: Connection, size: int):
    chunks = b"".join(b"0%X;a=b\r\n%s\r\n" % (len(part), part) for part in (GOOD[:7], GOOD[7:100], GOOD[100:]))
    request = encode_request("POST", "/validate", chunks + b"0\r\n\r\n", JSON | {"Transfer-Encoding": "chunked"})
    request = request.replace(b"Content-Length", b"X-Length")
    for _ in range(2):
        for at in range(0, len(request), size):
            connection.send(request[at : at + size])
        assert admission_response(connection.receive())["uid"] == "u-1"


def test_a_request_may_arrive_byte_by_byte(connection: Connection):
    for byte in encode_request("POST", "/validate", GOOD, JSON):
        connection.send(bytes([byte]))
    assert admission_response(connection.receive())["uid"] == "u-1"


def test_a_client_may_wait_for_100(connection: Connection):
    expecting = JSON | {"Expect": "100-continue"}
    connection.send(encode_request("POST", "/validate", headers=expecting | {"Content-Length": str(len(GOOD))}))
    assert connection.receive().status == 100
    connection.send(GOOD)
    assert admission_response(connection.receive())["uid"] == "u-1"


def test_the_connection_is_closed_after_an_http_1_0_request(program: Program):
    with program.connect() as connection:
        head = f"POST /validate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(GOOD)}\r\n\r\n"
        connection.send(head.encode() + GOOD)
        assert admission_response(connection.receive())["uid"] == "u-1"
        assert connection.ended()


def test_a_request_without_a_length_has_an_empty_body(connection: Connection):
    connection.send(f"{POST}\r\n".encode())
    refusal(connection.receive(), 400)


def test_bytes_after_the_declared_length_are_another_request(program: Program):
    with program.connect() as connection:
        connection.send(f"{POST}Content-Length: {len(GOOD)}\r\n\r\n".encode() + GOOD + b"tail\r\n\r\n")
        assert admission_response(connection.receive())["uid"] == "u-1"
        assert connection.receive().status == 400
        assert connection.ended()


CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"
SMUGGLED = b"POST /mutate HTTP/1.1\r\nHost: h\r\n\r\n"
AMBIGUOUS = {
    "two lengths": f"{POST}Content-Length: 5\r\nContent-Length: {len(GOOD)}\r\n\r\n",
    "two lengths in one": f"{POST}Content-Length: 5, {len(GOOD)}\r\n\r\n",
    "length and chunks": f"{POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": f"{POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "chunked twice": f"{POST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "a negative length": f"{POST}Content-Length: -1\r\n\r\n",
    "a signed length": f"{POST}Content-Length: +5\r\n\r\n",
    "a length in hex": f"{POST}Content-Length: 0x5\r\n\r\n",
    "a length of 400 digits": f"{POST}Content-Length: {'9' * 400}\r\n\r\n",
    "a chunk of no size": f"{POST}Transfer-Encoding: chunked\r\n\r\n\r\n\r\n",
    "a chunk size that is no number": f"{POST}{CHUNKED}zz\r\n",
    "a chunk of negative size": f"{POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    "a chunk of another size modulo 2 to the 64": f"{POST}{CHUNKED}10000000000000001\r\nx\r\n0\r\n\r\n",
    "a chunk above the limit of a body": f"{POST}{CHUNKED}800001\r\nx\r\n0\r\n\r\n",
    "a chunk that is longer than its size": f"{POST}{CHUNKED}1\r\nxy\r\n0\r\n\r\n",
    "a bare LF after a chunk size": f"{POST}{CHUNKED}1\nx\r\n0\r\n\r\n",
    "a bare LF in a chunk extension": f"{POST}{CHUNKED}1;a\nb\r\nx\r\n0\r\n\r\n",
    "a bare LF after a chunk": f"{POST}{CHUNKED}1\r\nx\n0\r\n\r\n",
    "a bare LF at the end of the chunks": f"{POST}{CHUNKED}0\r\n\n",
    "a trailer": f"{POST}{CHUNKED}0\r\nX-A: b\r\n\r\n",
    "bare LFs": "GET /readyz HTTP/1.1\nHost: h\n\n",
    "a bare LF between headers": "GET /readyz HTTP/1.1\r\nHost: h\nX-A: b\r\n\r\n",
    "a bare LF at the end of the head": "GET /readyz HTTP/1.1\r\nHost: h\r\n\n",
    "a bare LF after an empty line": "\r\nGET /readyz HTTP/1.1\nHost: h\r\n\r\n",
    "a space before the colon": f"{POST}Content-Length : 5\r\n\r\n",
    "a folded header": f"{POST}X-A: b\r\n c: d\r\n\r\n",
    "a NUL in a header": f"{POST}X-A: \0\r\n\r\n",
    "no version": "POST /validate\r\n\r\n",
    "HTTP/9.9": POST.replace("1.1", "9.9", 1) + "\r\n",
    "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "not HTTP": "\x16\x03\x01 hello\r\n\r\n",
}


@pytest.mark.parametrize("size", [1000, 1], ids=["at once", "byte by byte"])
@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_the_next_one_is_not_served(program: Program, head: str, size: int):
    with program.connect() as connection:
        sent = head.encode() + SMUGGLED
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # the response may come before the last byte
            for at in range(0, len(sent), size):
                connection.send(sent[at : at + size])
        response = connection.receive()
        assert 400 <= response.status < 500
        assert b'"allowed"' not in response.body
        assert connection.ended()


def test_an_unknown_coding_is_refused(program: Program):
    with program.connect() as connection:
        connection.send(f"{POST}Transfer-Encoding: gzip\r\n\r\n".encode() + SMUGGLED)
        assert connection.receive().status in (400, 501)
        assert connection.ended()


@pytest.mark.parametrize("path", ["/mutate", "/readyz", "/none"])
@pytest.mark.parametrize("key", ["", KEY], ids=["incomplete", "complete"])
def test_web_sockets_are_refused(program: Program, path: str, key: str):
    with program.connect() as connection:
        upgrade = "Host: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        connection.send(f"GET {path} HTTP/1.1\r\n{upgrade}{key}\r\n".encode())
        assert 400 <= connection.receive().status < 500
        assert connection.ended()


def test_malformed_requests_log_no_warning(program: Program):
    assert "Traceback" not in program.log()
    assert "WARNING" not in program.log(), program.log()
