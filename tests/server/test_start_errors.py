"""What cannot be served is said in one line that names the remedy, with exit code 2 and no traceback."""

import contextlib
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certs.pki import replace
from tests.server.program import COMMAND, Authority
from webhook.cli.main import main
from webhook.server.gunicorn import Server

Refused = Callable[..., str]


@pytest.fixture
def tls(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Starts it in this process; returns what it prints when it ends by itself."""

    def serves(_server: Server) -> None:
        pytest.fail("it serves")

    def refused(*options: str, bind: str = "127.0.0.1:0") -> str:
        assert main(["serve", "--bind", bind, *options]) == 2
        return checked(capsys.readouterr().err)

    monkeypatch.setattr(Server, "run", serves)
    return refused


def checked(errors: str) -> str:
    assert "Traceback" not in errors
    assert len(errors.splitlines()) == 1
    assert errors.startswith("error: ")
    return errors


def test_no_certificate_is_given(refused: Refused):
    assert "--tls-cert and --tls-key, or --standalone" in refused()


@contextlib.contextmanager
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield f"127.0.0.1:{other.getsockname()[1]}"


def test_the_port_is_in_use(tls: Authority):
    with taken() as bind:
        command = [str(COMMAND), "serve", "--bind", bind, *tls.options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    said = checked(ended.stderr)
    assert bind in said
    assert "in use" in said
    assert "--bind" in said


@pytest.mark.parametrize("bind", ["8443", "localhost", "127.0.0.1:port", "127.0.0.1:99999", "unix:/x", "192.0.2.1:1"])
def test_the_address_is_malformed(refused: Refused, bind: str):
    said = refused("--standalone", bind=bind)
    assert said.startswith(f"error: {bind}: ")
    assert "--bind HOST:PORT" in said


def test_the_certificate_is_missing(refused: Refused, tls: Authority):
    tls.certificate.unlink()
    assert f"{tls.certificate}: No such file" in refused(*tls.options)


def test_the_pair_does_not_match(refused: Refused, tls: Authority):
    replace(tls.key, tls.leaf().key, 0o600)
    said = refused(*tls.options)
    assert str(tls.certificate) in said
    assert str(tls.key) in said
    assert "pair" in said


@pytest.mark.parametrize("target", ["/none/audit.jsonl", "/"])
def test_the_audit_log_cannot_be_written(refused: Refused, tls: Authority, target: str):
    said = refused(*tls.options, "--audit-log", target)
    assert said.startswith(f"error: {target}: ")
    assert "can be written" in said


def test_the_state_directory_cannot_be_made(refused: Refused, tmp_path: Path):
    (tmp_path / "file").touch()
    said = refused("--standalone", "--state-dir", str(tmp_path / "file" / "state"))
    assert "--state-dir" in said


@pytest.mark.parametrize("option", [("--audit-max-bytes", "1"), ("--audit-max-bytes", "x"), ("--audit-keep", "0")])
def test_a_size_or_number_makes_no_sense(refused: Refused, option: tuple[str, str]):
    assert option[0] in refused(*option)
