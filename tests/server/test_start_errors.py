"""A server that cannot start prints one line that names the remedy, exits with code 2, and prints no traceback."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from certs.pki import replace
from tests.server.program import COMMAND, Authority, with_files
from webhook.cli.main import main
from webhook.server.gunicorn import Server

StartError = Callable[..., str]


@pytest.fixture
def tls(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


@pytest.fixture
def start_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> StartError:
    """Run `serve` in this process, and return the error that it prints."""

    def run(_server: Server) -> None:
        pytest.fail("the server started")

    def start_error(*options: str, bind: str = "127.0.0.1:0") -> str:
        assert main(["serve", "--bind", bind, *options]) == 2
        return check_error(capsys.readouterr().err)

    monkeypatch.setattr(Server, "run", run)
    return start_error


def check_error(errors: str) -> str:
    assert "Traceback" not in errors
    assert len(errors.splitlines()) == 1
    assert errors.startswith("error: ")
    return errors


def test_a_start_without_a_certificate_is_refused(start_error: StartError):
    assert "--tls-cert and --tls-key, or --standalone" in start_error()


@pytest.mark.parametrize(
    "files, message",
    [(64, "{}: Address already in use; name another address with --bind HOST:PORT"), (63, "only 63 files may be open")],
    ids=["a port that is in use", "too few open files"],
)
def test_what_the_system_does_not_allow_is_named(tls: Authority, files: int, message: str):
    with socket.create_server(("127.0.0.1", 0)) as other:
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        command = [*with_files(files), str(COMMAND), "serve", "--bind", bind, *tls.options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert check_error(ended.stderr).startswith(f"error: {message.format(bind)}")


@pytest.mark.parametrize("bind", ["8443", "localhost", "127.0.0.1:port", "127.0.0.1:99999", "unix:/x", "192.0.2.1:1"])
def test_a_malformed_address_is_refused(start_error: StartError, bind: str):
    error = start_error("--standalone", bind=bind)
    assert error.startswith(f"error: {bind}: ")
    assert "--bind HOST:PORT" in error


def test_a_missing_certificate_is_named(start_error: StartError, tls: Authority):
    tls.certificate.unlink()
    assert f"{tls.certificate}: No such file" in start_error(*tls.options)


def test_a_key_of_another_certificate_is_refused(start_error: StartError, tls: Authority):
    replace(tls.key, tls.leaf().key, 0o600)
    error = start_error(*tls.options)
    assert str(tls.certificate) in error
    assert str(tls.key) in error
    assert "pair" in error


def test_a_missing_client_ca_is_named(start_error: StartError, tls: Authority, tmp_path: Path):
    error = start_error(*tls.options, "--client-ca", str(tmp_path / "none.crt"))
    assert f"{tmp_path}/none.crt: No such file or directory" in error


@pytest.mark.parametrize("target", ["/none/audit.jsonl", "/"])
def test_an_audit_log_that_cannot_be_written_is_named(start_error: StartError, tls: Authority, target: str):
    error = start_error(*tls.options, "--audit-log", target)
    assert error.startswith(f"error: {target}: ")
    assert "can be written" in error


def test_a_state_directory_that_cannot_be_created_is_refused(start_error: StartError, tmp_path: Path):
    (tmp_path / "file").touch()
    error = start_error("--standalone", "--state-dir", str(tmp_path / "file" / "state"))
    assert "--state-dir" in error


@pytest.mark.parametrize("option", [("--audit-max-bytes", "1"), ("--audit-max-bytes", "x")])
def test_an_invalid_size_or_number_is_refused(start_error: StartError, option: tuple[str, str]):
    assert option[0] in start_error(*option)
