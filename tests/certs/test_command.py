"""The command line of `certs`, and where it finds credentials."""

from functools import partial
from pathlib import Path

import pytest

from tests.certs.apiserver import TLS, CertsApiServer
from tests.certs.conftest import Certs, wait_for
from tests.cluster.apiserver import TOKEN
from tests.server.program import Authority
from webhook.cli import certs as command
from webhook.cli.main import main
from webhook.cluster.credentials import Credentials


def test_the_service_account_of_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    authority = Authority(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "namespace").write_text("vgpu-webhook\n")
    monkeypatch.setattr(command, "Credentials", partial(Credentials, directory=tmp_path))
    with CertsApiServer(authority) as api:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
        assert main(["certs", "ensure"]) == 0
        assert TLS in api.objects
    (tmp_path / "token").unlink()
    assert main(["certs", "ensure"]) == 2
    assert f"{tmp_path}: no credentials for the API server: its token" in capsys.readouterr().err


def test_python_m_certs_is_the_same(api: CertsApiServer, certs: Certs):
    assert certs("ensure").code == 0
    assert TLS in api.objects
    result = wait_for(certs.start("show"))
    assert (result.code, result.out) == (0, certs("show").out)
    assert wait_for(certs.start("show", "--help")).out.startswith("Usage: python -m certs show [OPTIONS]\n")
