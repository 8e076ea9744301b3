"""`--client-ca`: reviews are answered only for clients that a CA vouches for; what that CA is can change at any time."""

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
from tests.server.client import JSON, Connection, Response, context, spell
from tests.server.client_certificates import client_pair, write_pair
from tests.server.conftest import Start
from tests.server.program import START_SECONDS, Program, until
from tests.server.reviews import answer, refusal, review

QUICK = {"settings.file_watcher.POLL_SECONDS": 0.1}
LARGE = {"metadata": {"annotations": {"notes": "x" * 200_000}}}

Connect = Callable[[Pair], Connection]


class Clients:
    """The CA that a server trusts, in its file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "client-ca.crt"
        self.trust(pki.make_ca("client CA"))

    def trust(self, *authorities: Pair) -> None:
        """Change the file; the first CA signs from now on."""
        self.ca = authorities[0]
        replace(self.file, b"".join(authority.certificate for authority in authorities), 0o644)

    def pair(self, days: float = 1) -> Pair:
        return client_pair(self.ca, days=days)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Clients:
    return Clients(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def guarded(start: Start, clients: Clients, audit_file: Path) -> Program:
    return start("--client-ca", str(clients.file), "--audit-log", str(audit_file), constants=QUICK)


@pytest.fixture
def connect(guarded: Program, tmp_path: Path) -> Connect:
    return lambda pair: present(guarded, pair, tmp_path)


@pytest.fixture(autouse=True)
def fresh(clients: Clients, connect: Connect) -> None:
    """Each test begins with a CA of its own in use."""
    clients.trust(pki.make_ca("client CA"))
    until(lambda: is_admitted(connect, clients.pair()))


def present(program: Program, pair: Pair, directory: Path) -> Connection:
    """Connect with a client certificate."""
    tls = context(program.ca)
    tls.load_cert_chain(*write_pair(pair, directory))
    return Connection(program.port, tls)


def is_admitted(connect: Connect, pair: Pair) -> bool:
    """Whether a new connection with a certificate gets an answer."""
    try:
        with connect(pair) as connection:
            return connection.post("/validate", review()).status == 200
    except (ssl.SSLError, ConnectionError):
        return False


def posted(connection: Connection, path: str, size: dict[str, object]) -> Response:
    document = review()
    document["request"]["object"] |= size
    return connection.post(path, document)


@pytest.mark.parametrize("size", [{}, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_without_a_certificate_nothing_is_judged(
    guarded: Program, audit_file: Path, path: str, size: dict[str, object]
):
    before = audit_file.read_bytes()
    with guarded.connect() as connection:
        message = refusal(posted(connection, path, size), 403)
        assert connection.ended()
    assert "--client-ca" in message
    assert "AdmissionConfiguration" in message
    assert guarded.metric("bad_requests_total", endpoint=path[1:], code="403") >= 1
    assert audit_file.read_bytes() == before


def test_a_body_without_a_certificate_is_not_waited_for(guarded: Program):
    with guarded.connect() as connection:
        connection.send(spell("POST", "/mutate", b"", {**JSON, "Content-Length": "1000000"}))
        refusal(connection.receive(), 403)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_and_metrics_need_none(guarded: Program, path: str):
    assert guarded.get(path).status == 200


@pytest.mark.parametrize("size", [{}, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_with_a_certificate_reviews_are_answered(
    connect: Connect, clients: Clients, audit_file: Path, path: str, size: dict[str, object]
):
    with connect(clients.pair()) as connection:
        answer(posted(connection, path, size))
    assert json.loads(audit_file.read_text().splitlines()[-1])["clientVerified"] is True


def test_without_client_ca_the_log_line_has_it(program: Program, audit_file: Path, clients: Clients, tmp_path: Path):
    with present(program, clients.pair(), tmp_path) as connection:
        answer(connection.post("/mutate", review()))
    assert json.loads(audit_file.read_text().splitlines()[-1])["clientVerified"] is False


def test_other_certificates_are_refused(connect: Connect, clients: Clients):
    assert is_admitted(connect, clients.pair())
    assert not is_admitted(connect, client_pair(pki.make_ca("client CA")))
    assert not is_admitted(connect, clients.pair(days=-1))
    assert not is_admitted(connect, client_pair(clients.ca, usages=[ExtendedKeyUsageOID.SERVER_AUTH]))


def test_a_connection_ends_with_its_certificate(connect: Connect, clients: Clients):
    with connect(clients.pair(days=4 / 86_400)) as connection:
        answer(connection.post("/validate", review()))
        assert connection.ended()


def test_another_ca_takes_over(guarded: Program, connect: Connect, clients: Clients):
    old = clients.pair()
    with connect(old) as kept:
        answer(kept.post("/validate", review()))
        clients.trust(pki.make_ca("another client CA"))
        assert kept.ended(), "it was verified with a CA that is trusted no more"
    assert not is_admitted(connect, old)
    assert is_admitted(connect, clients.pair())
    assert guarded.metric("config_reloads_total", source="client-ca", result="success") > 0


def test_two_cas_are_trusted_during_a_rotation(connect: Connect, clients: Clients):
    old, new = clients.ca, pki.make_ca("new client CA")
    clients.trust(old, new)
    until(lambda: is_admitted(connect, client_pair(new)))
    assert is_admitted(connect, client_pair(old))


def test_the_same_ca_written_again_cuts_no_connection(guarded: Program, connect: Connect, clients: Clients):
    with connect(clients.pair()) as kept:
        before = guarded.metric("config_reloads_total", source="client-ca")
        clients.trust(clients.ca)
        until(lambda: guarded.metric("config_reloads_total", source="client-ca") > before)
        time.sleep(0.6)
        assert answer(kept.post("/validate", review()))


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n", b"\xff\xfe"])
def test_a_bad_file_changes_nothing_and_is_reported(
    guarded: Program, connect: Connect, clients: Clients, content: bytes
):
    replace(clients.file, content, 0o644)
    line = until(lambda: [line for line in guarded.readyz().splitlines() if line.startswith("client-ca: ")])[0]
    assert str(clients.file) in line
    assert line.endswith("the last good one is in use")
    assert is_admitted(connect, clients.pair())
    clients.trust(clients.ca)
    until(lambda: "client-ca: " not in guarded.readyz())


def test_an_intermediate_ca_may_stand_alone(connect: Connect, clients: Clients):
    clients.trust(client_pair(pki.make_ca("root"), usages=(), is_ca=True))
    until(lambda: is_admitted(connect, clients.pair()))


def test_no_session_is_resumed(guarded: Program, clients: Clients, tmp_path: Path):
    """It would keep the trust of the handshake that began it."""
    tls = context(guarded.ca)
    tls.load_cert_chain(*write_pair(clients.pair(), tmp_path))
    with Connection(guarded.port, tls) as first:
        answer(first.post("/validate", review()))
        assert first.socket.version() == "TLSv1.3"
        assert first.socket.session is None or not first.socket.session.has_ticket


def test_a_busy_connection_ends_with_its_next_answer(start: Start, tmp_path: Path):
    clients = Clients(tmp_path)
    seldom = QUICK | {"gunicorn.SWEEP_SECONDS": 60.0}
    program = start("--client-ca", str(clients.file), "--audit-log", "", constants=seldom)
    with present(program, clients.pair(), tmp_path) as connection:
        assert "connection" not in connection.post("/validate", review()).headers
        clients.trust(pki.make_ca("another client CA"))
        until(lambda: program.metric("config_reloads_total", source="client-ca") > 0)
        last = connection.post("/validate", review())
        assert (last.status, last.headers["connection"]) == (200, "close")
        assert connection.ended()
    for process in (program.worker, program.process.pid):  # it would notice only with the next sweep
        os.kill(process, signal.SIGKILL)


def test_a_file_that_is_not_there_ends_the_start(start: Start, tmp_path: Path):
    program = start("--client-ca", str(tmp_path / "none.crt"), ready=False)
    assert program.process.wait(START_SECONDS) == 2
    assert f"{tmp_path}/none.crt: No such file or directory" in program.log()
