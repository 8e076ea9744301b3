"""A server that cannot start prints one line that names the remedy, exits with code 2, and prints no traceback."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.server.program import COMMAND, Authority, with_files
from webhook.cli.main import main
from webhook.server.gunicorn import Server

ADDRESSES = ("8443", "localhost", "127.0.0.1:port", "127.0.0.1:99999", "unix:/x", "192.0.2.1:1")
CLUSTER = "--tls-cert {tls}/tls.crt --tls-key {tls}/tls.key --cluster"
NO_CREDENTIALS = "/nowhere: no credentials for the API server: "
# Options, and parts of the message; `other` has the key of another certificate than `tls`, and `file` is no directory.
ERRORS = [
    ("", ["--tls-cert and --tls-key, or --standalone"]),
    *((f"--standalone --bind {each}", [f"error: {each}: ", "--bind HOST:PORT"]) for each in ADDRESSES),
    ("--tls-cert {tls}/none --tls-key {tls}/tls.key", ["{tls}/none: No such file"]),
    ("--tls-cert {tls}/tls.crt --tls-key {other}/tls.key", ["{tls}/tls.crt", "{other}/tls.key", "pair"]),
    (f"{CLUSTER} --client-ca {{tls}}/none", ["{tls}/none: No such file or directory"]),
    (f"{CLUSTER} --audit-log /none/audit.jsonl", ["error: /none/audit.jsonl: ", "can be written"]),
    (f"{CLUSTER} --audit-log /", ["error: /: ", "can be written"]),
    ("--standalone --state-dir {file}/state", ["--state-dir"]),
    ("--audit-max-bytes 1", ["--audit-max-bytes"]),
    ("--audit-max-bytes x", ["--audit-max-bytes"]),
    (CLUSTER, ["name a kubeconfig with --kubeconfig FILE"]),
    (f"{CLUSTER} --kubeconfig /nowhere", [NO_CREDENTIALS]),
    (f"{CLUSTER.removesuffix('--cluster')} --kubeconfig /nowhere", [NO_CREDENTIALS]),
    (f"{CLUSTER} --policy-map a/b/c", ["'a/b/c'"]),
]


def check_error(errors: str) -> None:
    assert "Traceback" not in errors
    assert len(errors.splitlines()) == 1
    assert errors.startswith("error: ")


@pytest.mark.parametrize("options, parts", ERRORS)
def test_an_error_names_the_remedy(
    options: str, parts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(Server, "run", lambda _: pytest.fail("the server started"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    places = {name: str(tmp_path / name) for name in ("tls", "other", "file")}
    for name in ("tls", "other"):
        Authority(tmp_path / name)
    (tmp_path / "file").touch()
    assert main(["serve", "--bind", "127.0.0.1:0", *options.format(**places).split()]) == 2
    errors = capsys.readouterr().err
    check_error(errors)
    assert [part for part in parts if part.format(**places) not in errors] == [], errors


@pytest.mark.parametrize(
    "files, message",
    [(64, "{}: Address already in use; name another address with --bind HOST:PORT"), (63, "only 63 files may be open")],
    ids=["a port that is in use", "too few open files"],
)
def test_what_the_system_does_not_allow_is_named(tmp_path: Path, files: int, message: str):
    with socket.create_server(("127.0.0.1", 0)) as other:
        bind = f"127.0.0.1:{other.getsockname()[1]}"
        command = [*with_files(files), str(COMMAND), "serve", "--bind", bind, *Authority(tmp_path).options]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    check_error(ended.stderr)
    assert ended.stderr.startswith(f"error: {message.format(bind)}")
