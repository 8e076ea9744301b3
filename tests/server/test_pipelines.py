"""Several requests on one connection are answered in order, whatever their size."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.server.client import JSON, encode_request
from tests.server.conftest import Start
from tests.server.program import Program
from tests.server.reviews import admission_response, review

CONNECTIONS = 4  # fewer than large reviews may wait
TIMES = 12
SMALL = 0
LARGE = 200_000  # bytes; more than one read of a socket returns, and more than a head may have
SIZES = {
    "large ones": [LARGE] * 6,
    "large behind small": [SMALL, LARGE, SMALL, SMALL, LARGE],
    "small behind large": [LARGE, SMALL, SMALL, SMALL],
    "many small ones": [SMALL] * 400,
}


@pytest.fixture(scope="module")
def server(start: Start) -> Program:
    return start("--audit-log", "")


def request_bytes(uid: str, size: int, *, chunked: bool = False) -> bytes:
    """A review of a pod with an annotation of this size, in bytes."""
    body = json.dumps(review(uid, object={"metadata": {"annotations": {"a": "x" * size}}, "spec": {}})).encode()
    if not chunked:
        return encode_request("POST", "/validate", body, JSON)
    head = encode_request("POST", "/validate", headers=JSON | {"Transfer-Encoding": "chunked"})
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def test_large_bodies_back_to_back_are_all_answered(server: Program):
    """The next body begins to arrive before the request before it is answered."""

    def send_all(number: int) -> None:
        with server.connect() as connection:
            for time in range(TIMES):
                connection.send(request_bytes(f"u-{number}-{time}", LARGE))
                assert admission_response(connection.receive())["uid"] == f"u-{number}-{time}"

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(send_all, range(CONNECTIONS)))


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_pipelined_requests_of_any_size_are_answered_in_order(server: Program, sizes: list[int], chunked: bool):
    with server.connect() as connection:
        connection.send(b"".join(request_bytes(f"u-{at}", size, chunked=chunked) for at, size in enumerate(sizes)))
        assert [admission_response(connection.receive())["uid"] for _ in sizes] == [
            f"u-{at}" for at in range(len(sizes))
        ]
        assert admission_response(connection.post("/validate", review("last")))["uid"] == "last"
