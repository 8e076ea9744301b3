"""What a connection does with requests: whole, in pieces, malformed, too large. test_framing tests the grammar in process."""

import contextlib
import json
import ssl

import pytest

from tests.cases import each_case
from tests.server.client import JSON, Connection, encode_request
from tests.server.program import Program
from tests.server.reviews import GOOD, admission_response, refusal, review

MIB = 1 << 20
PIECE = b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)
POST = "POST /validate HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
UPGRADE = "Host: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
SMUGGLED = b"POST /mutate HTTP/1.1\r\nHost: h\r\n\r\n"
TOO_LONG = JSON | {"Content-Length": str(8 * MIB + 1)}
CHUNKED = encode_request("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})


@each_case(
    "sent, status, more",
    [
        (encode_request("GET", "/mutate"), 405, {"allow": "POST"}),
        (encode_request("POST", "/readyz", headers=JSON), 405, {"allow": "GET, HEAD"}),
        (encode_request("POST", "/mutate/", headers=JSON), 404, {}),
        (encode_request("POST", "/validate"), 415, {}),
        (encode_request("POST", "/validate", headers=TOO_LONG), 413, {}),
        (encode_request("POST", "/validate", headers=TOO_LONG | {"Expect": "100-continue"}), 413, {}),
    ],
)
def test_a_head_is_refused_before_its_body(program: Program, sent: bytes, status: int, more: dict[str, str]):
    with program.connect() as connection:
        connection.send(sent)
        response = connection.receive()
        refusal(response, status)
        assert response.headers.items() >= ({"connection": "close"} | more).items()


@each_case("path", ["/healthz", "/readyz", "/metrics"])
def test_head_of_a_page_has_its_length_and_no_body(connection: Connection, path: str):
    page = connection.request("GET", path)
    head = connection.request("HEAD", path)
    assert page.status == head.status == 200
    assert page.headers["content-type"].startswith("text/plain; ")
    assert page.body
    assert int(head.headers["content-length"]) > 0


@each_case("size", [1000, 1], ids=["at once", "byte by byte"])
@each_case("chunked", [True, False])
def test_a_request_may_arrive_in_pieces(connection: Connection, size: int, chunked: bool):
    chunks = b"".join(b"0%X;a=b\r\n%s\r\n" % (len(part), part) for part in (GOOD[:7], GOOD[7:100], GOOD[100:]))
    request = CHUNKED + chunks + b"0\r\n\r\n" if chunked else encode_request("POST", "/validate", GOOD, JSON)
    for _ in range(2):
        for at in range(0, len(request), size):
            connection.send(request[at : at + size])
        assert admission_response(connection.receive())["uid"] == "u-1"


LARGE = 200_000  # bytes; more than one read of a socket returns, and more than a head may have
SIZES = {
    "large ones": [LARGE] * 6,
    "large behind small": [0, LARGE, 0, 0, LARGE],
    "small behind large": [LARGE, 0, 0, 0],
    "many small ones": [0] * 400,
}


def review_of(size: int, uid: str, *, chunked: bool) -> bytes:
    """A request to review a pod with an annotation of this size, in bytes."""
    body = json.dumps(review(uid, object={"metadata": {"annotations": {"a": "x" * size}}, "spec": {}})).encode()
    if chunked:
        return CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return encode_request("POST", "/validate", body, JSON)


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_pipelined_requests_of_any_size_are_answered_in_order(program: Program, sizes: list[int], chunked: bool):
    with program.connect() as connection:
        connection.send(b"".join(review_of(size, f"u-{at}", chunked=chunked) for at, size in enumerate(sizes)))
        assert [admission_response(connection.receive())["uid"] for _ in sizes] == [
            f"u-{at}" for at in range(len(sizes))
        ]
        assert admission_response(connection.post("/validate", review("last")))["uid"] == "last"


def test_a_client_may_wait_for_100(connection: Connection):
    expecting = JSON | {"Expect": "100-continue"}
    connection.send(encode_request("POST", "/validate", headers=expecting | {"Content-Length": str(len(GOOD))}))
    assert connection.receive().status == 100
    connection.send(GOOD)
    assert admission_response(connection.receive())["uid"] == "u-1"


def test_the_connection_is_closed_after_an_http_1_0_request(connection: Connection):
    head = f"POST /validate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(GOOD)}\r\n\r\n"
    connection.send(head.encode() + GOOD)
    assert admission_response(connection.receive())["uid"] == "u-1"
    assert connection.ended()


def test_bytes_after_the_declared_length_are_another_request(connection: Connection):
    connection.send(f"{POST}Content-Length: {len(GOOD)}\r\n\r\n".encode() + GOOD + b"tail\r\n\r\n")
    assert admission_response(connection.receive())["uid"] == "u-1"
    assert connection.receive().status == 400
    assert connection.ended()


# One of each way to be refused: a head, a length, a chunk, the end of the chunks, another protocol.
AMBIGUOUS = {
    "two lengths": f"{POST}Content-Length: 5\r\nContent-Length: {len(GOOD)}\r\n\r\n",
    "length and chunks": f"{POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": f"{POST}Transfer-Encoding: gzip\r\n\r\n",
    "a length of 400 digits": f"{POST}Content-Length: {'9' * 400}\r\n\r\n",
    "a chunk above the limit of a body": f"{POST}Transfer-Encoding: chunked\r\n\r\n800001\r\nx\r\n0\r\n\r\n",
    "a chunk that is longer than its size": f"{POST}Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
    "a trailer": f"{POST}Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: b\r\n\r\n",
    "bare LFs": "GET /readyz HTTP/1.1\nHost: h\n\n",
    "not HTTP": "\x16\x03\x01 hello\r\n\r\n",
    "a web socket": f"GET /readyz HTTP/1.1\r\n{UPGRADE}\r\n",
}


@each_case("size", [1000, 1], ids=["at once", "byte by byte"])
@each_case("head", AMBIGUOUS.values(), ids=AMBIGUOUS)
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


# One of each way to be refused; tests/wire/test_codec.py has all of them.
BAD = {
    "empty": b"",
    "nested 100,000 deep": b'{"a":' * 100_000,
    "lone surrogate": GOOD.replace(b'"alice"', b'"\\ud800"'),
    "no object": GOOD.replace(b'"object"', b'"thing"'),
    "limits are a list": GOOD.replace(b'"limits": {', b'"limits": [], "more": {'),
}


@each_case("path", ["/mutate", "/validate"])
@each_case("body", BAD.values(), ids=BAD)
def test_a_malformed_body_is_refused_with_a_status(program: Program, connection: Connection, path: str, body: bytes):
    assert body != GOOD
    before = program.metric("bad_requests_total", endpoint=path[1:], code="400")
    message = refusal(connection.post(path, body), 400)
    assert len(message) < 400
    assert program.metric("bad_requests_total", endpoint=path[1:], code="400") == before + 1
    assert admission_response(connection.post(path, review()))["uid"] == "u-1", "the same connection still serves"


@each_case(
    "sent",
    [encode_request("POST", "/mutate", b"x" * 9 * MIB, JSON), CHUNKED + PIECE * 9 + b"0\r\n\r\n"],
    ids=["declared", "in chunks"],
)
def test_a_client_that_sends_too_much_still_gets_the_response(program: Program, sent: bytes):
    with program.connect() as connection:
        connection.send(sent)
        response = connection.receive()
        refusal(response, 413)
        assert response.headers["connection"] == "close"
        assert connection.ended()


def test_a_body_of_eight_mebibytes_is_reviewed(program: Program):
    body = GOOD + b" " * (8 * MIB - len(GOOD))
    assert admission_response(program.post("/validate", body))["uid"] == "u-1"
    refusal(program.post("/validate", body + b" "), 413)


def test_malformed_requests_log_nothing_and_cause_no_internal_error(program: Program):
    assert "Traceback" not in program.log()
    assert "WARNING" not in program.log(), program.log()
    assert program.metric("bad_requests_total", code="500") == 0
