"""With `--client-ca` the server reviews only requests of clients with a certificate of that CA; its file may change."""

import contextlib
import dataclasses
import json
import os
import signal
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs import pki
from certs.pki import Pair, replace
from tests.server.client import JSON, Connection, Response, context, encode_request
from tests.server.client_certificates import client_pair, write_pair
from tests.server.conftest import Start
from tests.server.live import QUICK
from tests.server.program import PATIENT, Program, until
from tests.server.reviews import admission_response, refusal, review

LARGE = {"metadata": {"annotations": {"notes": "x" * 200_000}}}

Connect = Callable[[Pair], Connection]


class Clients:
    """The CAs that a server trusts, in their file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "client-ca.crt"
        self.trust(pki.make_ca("client CA"))

    def trust(self, *authorities: Pair) -> None:
        """Write these CAs to the file; the first one signs new certificates."""
        self.ca = authorities[0]
        replace(self.file, b"".join(authority.certificate for authority in authorities), 0o644)

    def pair(self, days: float = 1) -> Pair:
        return client_pair(self.ca, days=days)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Clients:
    return Clients(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def server(start: Start, clients: Clients, audit_file: Path) -> Program:
    return start("--client-ca", str(clients.file), "--audit-log", str(audit_file), pace=QUICK)


@pytest.fixture
def connect(server: Program, tmp_path: Path) -> Connect:
    return lambda pair: connect_with(server, pair, tmp_path)


@pytest.fixture(autouse=True)
def new_ca(clients: Clients, connect: Connect) -> None:
    """Each test starts with a new CA in use."""
    clients.trust(pki.make_ca("client CA"))
    until(lambda: is_admitted(connect, clients.pair()))


def connect_with(program: Program, pair: Pair, directory: Path) -> Connection:
    tls = context(program.ca)
    tls.load_cert_chain(*write_pair(pair, directory))
    return Connection(program.port, tls)


def is_admitted(connect: Connect, pair: Pair) -> bool:
    """Whether the server reviews a request of a new connection with a certificate."""
    try:
        with connect(pair) as connection:
            return connection.post("/validate", review()).status == 200
    except (ssl.SSLError, ConnectionError):
        return False


def post_review(connection: Connection, path: str, fields: dict[str, object]) -> Response:
    document = review()
    document["request"]["object"] |= fields
    return connection.post(path, document)


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_reviews_need_a_certificate(server: Program, connect: Connect, clients: Clients, audit_file: Path, path: str):
    for size in ({}, LARGE):
        server.record()
        before = audit_file.read_bytes()
        with server.connect() as connection:
            message = refusal(post_review(connection, path, size), 403)
            assert connection.ended()
        assert "--client-ca" in message
        assert "AdmissionConfiguration" in message
        assert server.metric("bad_requests_total", endpoint=path[1:], code="403") >= 1
        assert audit_file.read_bytes() == before
        with connect(clients.pair()) as connection:
            admission_response(post_review(connection, path, size))
            assert connection.request("GET", "/metrics").status == 200  # after the line is written
        assert json.loads(audit_file.read_text().splitlines()[-1])["clientVerified"] is True


def test_a_request_without_a_certificate_is_refused_before_its_body(server: Program):
    with server.connect() as connection:
        connection.send(encode_request("POST", "/mutate", b"", {**JSON, "Content-Length": "1000000"}))
        refusal(connection.receive(), 403)


def test_probes_and_metrics_need_no_certificate(server: Program):
    assert {server.get(path).status for path in ("/healthz", "/readyz", "/metrics")} == {200}


def test_other_certificates_are_refused(connect: Connect, clients: Clients):
    assert is_admitted(connect, clients.pair())
    assert not is_admitted(connect, client_pair(pki.make_ca("client CA")))
    assert not is_admitted(connect, clients.pair(days=-1))
    assert not is_admitted(connect, client_pair(clients.ca, usages=[ExtendedKeyUsageOID.SERVER_AUTH]))


def test_a_connection_is_closed_when_its_certificate_expires(connect: Connect, clients: Clients):
    def is_closed(seconds: int) -> bool:
        """Whether it is closed after so many seconds; False if a slow machine has no answer until then."""
        with contextlib.suppress(OSError), connect(clients.pair(days=seconds / 86_400)) as connection:
            admission_response(connection.post("/validate", review()))
            return connection.ended()
        return False

    assert any(map(is_closed, (4, 16, 64)))


def test_a_new_ca_replaces_the_old_one(server: Program, connect: Connect, clients: Clients):
    old = clients.pair()
    with connect(old) as kept:
        admission_response(kept.post("/validate", review()))
        clients.trust(pki.make_ca("another client CA"))
        assert kept.ended(), "its CA is no longer trusted"
    assert not is_admitted(connect, old)
    assert is_admitted(connect, clients.pair())
    assert server.metric("config_reloads_total", source="client-ca", result="success") > 0


def test_two_cas_are_trusted_during_a_rotation(connect: Connect, clients: Clients):
    old, new = clients.ca, pki.make_ca("new client CA")
    clients.trust(old, new)
    until(lambda: is_admitted(connect, client_pair(new)))
    assert is_admitted(connect, client_pair(old))


def test_writing_the_same_ca_again_closes_no_connection(server: Program, connect: Connect, clients: Clients):
    with connect(clients.pair()) as kept:
        before = server.metric("config_reloads_total", source="client-ca")
        clients.trust(clients.ca)
        until(lambda: server.metric("config_reloads_total", source="client-ca") > before)
        time.sleep(0.2)
        assert admission_response(kept.post("/validate", review()))


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n", b"\xff\xfe"])
def test_a_bad_file_is_reported_and_not_used(server: Program, connect: Connect, clients: Clients, content: bytes):
    replace(clients.file, content, 0o644)
    line = until(lambda: [line for line in server.readyz().splitlines() if line.startswith("client-ca: ")])[0]
    assert str(clients.file) in line
    assert line.endswith("the last good one is in use")
    assert is_admitted(connect, clients.pair())
    clients.trust(clients.ca)
    until(lambda: "client-ca: " not in server.readyz())


def test_an_intermediate_ca_is_trusted_without_its_root(connect: Connect, clients: Clients):
    clients.trust(client_pair(pki.make_ca("root"), usages=(), is_ca=True))
    until(lambda: is_admitted(connect, clients.pair()))


def test_no_session_is_resumed(server: Program, clients: Clients, tmp_path: Path):
    """A resumed session would skip the check of the certificate."""
    tls = context(server.ca)
    tls.load_cert_chain(*write_pair(clients.pair(), tmp_path))
    with Connection(server.port, tls) as first:
        admission_response(first.post("/validate", review()))
        assert first.socket.version() == "TLSv1.3"
        assert first.socket.session is None or not first.socket.session.has_ticket


def test_a_busy_connection_is_closed_after_its_next_response(start: Start, tmp_path: Path):
    clients = Clients(tmp_path)
    seldom = dataclasses.replace(PATIENT, sweep_seconds=60.0)
    program = start("--client-ca", str(clients.file), "--audit-log", "", limits=seldom, pace=QUICK)
    with connect_with(program, clients.pair(), tmp_path) as connection:
        assert "connection" not in connection.post("/validate", review()).headers
        clients.trust(pki.make_ca("another client CA"))
        until(lambda: program.metric("config_reloads_total", source="client-ca") > 0)
        last = connection.post("/validate", review())
        assert (last.status, last.headers["connection"]) == (200, "close")
        assert connection.ended()
    for process in (program.worker, program.process.pid):  # the next sweep, which ends it, is a minute away
        os.kill(process, signal.SIGKILL)
