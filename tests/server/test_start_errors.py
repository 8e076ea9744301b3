"""What cannot be served is said in one line that names the remedy, with exit code 2 and no traceback."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.pki import replace
from tests.server.program import COMMAND, Authority, free_port


@pytest.fixture
def tls(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


def refused(*options: str, bind: str | None = None) -> str:
    """Start it; what it says when it ends by itself."""
    address = bind or f"127.0.0.1:{free_port()}"
    command = [str(COMMAND), "serve", "--bind", address, *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("vgpu-webhook serve: ")
    return ended.stderr


def test_no_certificate_is_given():
    assert "--tls-cert and --tls-key, or --standalone" in refused()


@contextlib.contextmanager
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield f"127.0.0.1:{other.getsockname()[1]}"


def test_the_port_is_in_use(tls: Authority):
    with taken() as bind:
        said = refused(*tls.options, bind=bind)
    assert bind in said
    assert "in use" in said
    assert "--bind" in said


@pytest.mark.parametrize("bind", ["8443", "localhost", "127.0.0.1:port", "127.0.0.1:99999", "unix:/x", "192.0.2.1:1"])
def test_the_address_is_none(bind: str):
    said = refused("--standalone", bind=bind)
    assert said.startswith(f"vgpu-webhook serve: {bind}: ")
    assert "--bind HOST:PORT" in said


def test_the_certificate_is_missing(tls: Authority):
    tls.certificate.unlink()
    assert f"{tls.certificate}: No such file" in refused(*tls.options)


def test_the_pair_does_not_match(tls: Authority):
    replace(tls.key, tls.leaf().key, 0o600)
    said = refused(*tls.options)
    assert str(tls.certificate) in said
    assert str(tls.key) in said
    assert "pair" in said


@pytest.mark.parametrize("option", ["--policy", "--device-config", "--fleet"])
def test_a_file_cannot_be_used(tls: Authority, option: str):
    assert f"{tls.directory / 'none'}: No such file" in refused(*tls.options, option, str(tls.directory / "none"))
    bad = tls.directory / "bad"
    bad.write_text("nvidia: [")
    assert str(bad) in refused(*tls.options, option, str(bad))


def test_the_fleet_is_empty(tls: Authority):
    fleet = tls.directory / "fleet"
    fleet.touch()
    said = refused(*tls.options, "--fleet", str(fleet))
    assert f"{fleet}: there is no node in it; write all that `kubectl get nodes -o yaml` prints" in said


def test_the_policy_is_misspelled(tls: Authority):
    policy = tls.directory / "policy"
    policy.write_text("schedulerNmae: x")
    said = refused(*tls.options, "--policy", str(policy))
    assert "schedulerNmae" in said
    assert "schedulerName" in said


@pytest.mark.parametrize("target", ["/none/audit.jsonl", "/"])
def test_the_audit_log_cannot_be_written(tls: Authority, target: str):
    said = refused(*tls.options, "--audit-log", target)
    assert said.startswith(f"vgpu-webhook serve: {target}: ")
    assert "can be written" in said


def test_the_state_directory_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").touch()
    said = refused("--standalone", "--state-dir", str(tmp_path / "file" / "state"))
    assert "--state-dir" in said
