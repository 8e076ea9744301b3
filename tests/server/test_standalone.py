"""`vgpu-webhook serve --standalone` needs no other option and has a certificate that verifies."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import fork_server
from tests.server.client import Connection, context
from tests.server.program import Program, until
from tests.server.reviews import DENIED, admission_response, review


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("standalone")
    state = directory / "state"
    options = ["--standalone", "--state-dir", str(state)]
    program = Program(options, directory / "stderr", state / "ca.crt", starts=fork_server.Popen)
    try:
        program.wait_ready()
        yield program
    finally:
        program.close()


def test_standalone_needs_no_other_option(tmp_path: Path):
    program = Program(["--standalone"], tmp_path / "stderr", tmp_path / "none")
    try:
        program.ca = Path(until(lambda: re.search(r"--cacert (\S+)", program.log()))[1])
        program.wait_ready()
        assert admission_response(program.post("/validate", review(spec=DENIED)))["allowed"] is False
    finally:
        program.close()
    assert not program.ca.parent.exists(), "its files are deleted at its end"
    assert program.process.returncode == 0


def test_readyz_reports_the_fleet_and_the_certificate(standalone: Program):
    lines = standalone.readyz().splitlines()
    assert lines[0] == "ready"
    kinds = "vgpu 4, gpushare 1, ascend 2, mindcluster 1"
    assert re.match(rf"fleet: 8 nodes with devices \(kinds: {kinds}\), digest [0-9a-f]+", lines[1])
    assert re.fullmatch(r"certificate: expires \d{4}-\d\d-\d\d \d\d:\d\d UTC, in (89|90) days", lines[2])
    assert len(lines) == 3
    assert standalone.get("/healthz").body == b"ok\n"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_certificate_verifies(standalone: Program, host: str):
    with standalone.connect(host) as connection:
        assert connection.request("GET", "/healthz").status == 200
        assert connection.socket.selected_alpn_protocol() is None

    with pytest.raises(ssl.SSLCertVerificationError):
        standalone.connect("example.org")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_supported_and_alpn_selects_http_1_1(standalone: Program, version: ssl.TLSVersion):
    tls = context(standalone.ca)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    tls.minimum_version = tls.maximum_version = version
    with Connection(standalone.port, tls) as connection:
        assert connection.socket.version() == version.name.replace("_", ".")
        assert connection.socket.selected_alpn_protocol() == "http/1.1"
        assert connection.request("GET", "/healthz").status == 200


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_1_1_is_refused(standalone: Program):
    tls = context(standalone.ca)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError), match=r"EOF|reset|ALERT"):
        Connection(standalone.port, tls)
