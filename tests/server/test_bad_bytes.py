"""A malformed body gets HTTP 4xx with a v1 Status and no verdict, and the server still serves."""

import json
import ssl

import pytest

from tests.cases import each_case
from tests.server.client import JSON, Connection, encode_request
from tests.server.program import Program
from tests.server.reviews import admission_response, refusal, review

GOOD = json.dumps(review()).encode()
MIB = 1 << 20

# One of each way to be refused; tests/wire/test_codec.py has all of them.
BAD = {
    "empty": b"",
    "nested 100,000 deep": b'{"a":' * 100_000,
    "lone surrogate": GOOD.replace(b'"alice"', b'"\\ud800"'),
    "a pod": json.dumps(review()["request"]["object"]).encode(),
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


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/jsonx", "text/json", "", "application/yaml"])
def test_another_media_type_is_refused(program: Program, media_type: str | None):
    with program.connect() as connection:
        headers = {} if media_type is None else {"Content-Type": media_type}
        response = connection.request("POST", "/validate", GOOD, headers)
        assert "application/json" in refusal(response, 415)


@pytest.mark.parametrize("more", [{}, {"Expect": "100-continue"}], ids=["at once", "after a pause"])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(program: Program, more: dict[str, str]):
    with program.connect() as connection:
        declared = JSON | {"Content-Length": str(8 * MIB + 1)} | more
        connection.send(encode_request("POST", "/validate", headers=declared))
        refusal(connection.receive(), 413)


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "in chunks"])
def test_a_client_that_sends_too_much_still_gets_the_response(program: Program, declared: bool):
    size = 9 * MIB
    with program.connect() as connection:
        if declared:
            connection.send(encode_request("POST", "/mutate", b"x" * size, JSON))
        else:
            piece = b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)
            connection.send(encode_request("POST", "/mutate", headers=JSON | {"Transfer-Encoding": "chunked"}))
            connection.send(piece * 9 + b"0\r\n\r\n")
        response = connection.receive()
        refusal(response, 413)
        assert response.headers["connection"] == "close"
        assert connection.ended()


def test_endless_chunks_are_cut_off(program: Program):
    piece = b"%x\r\n%s\r\n" % (MIB, b"x" * MIB)
    with program.connect() as connection:
        connection.send(encode_request("POST", "/mutate", headers=JSON | {"Transfer-Encoding": "chunked"}))
        with pytest.raises((ConnectionError, ssl.SSLError)):  # noqa: PT012
            while True:
                connection.send(piece)


def test_a_body_of_eight_mebibytes_is_reviewed(program: Program):
    body = GOOD + b" " * (8 * MIB - len(GOOD))
    assert admission_response(program.post("/validate", body))["uid"] == "u-1"
    refusal(program.post("/validate", body + b" "), 413)


def test_malformed_bodies_cause_no_internal_error(program: Program):
    assert "Traceback" not in program.log()
    assert program.metric("bad_requests_total", code="500") == 0
