"""The command itself: its usage, and the credentials that it finds."""

from functools import partial
from pathlib import Path

import pytest

from certs import command
from certs.command import main
from tests.certs.apiserver import TLS, CertsApiServer
from tests.certs.conftest import Certs
from tests.kube.apiserver import TOKEN
from tests.server.program import Authority
from webhook.cli.main import main as vgpu_webhook
from webhook.kube.credentials import Credentials


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
        assert main(["ensure"]) == 0
        assert TLS in api.objects
    (tmp_path / "token").unlink()
    assert main(["ensure"]) == 1
    assert f"{tmp_path}: no credentials for the API server: its token" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["renew"],
        ["ensure", "--namespace", "Upper"],
        ["ensure", "--name", "a.b"],
        ["ensure", "--tls-secret", "../x"],
        ["ensure", "--wait", "-1"],
        ["ensure", "--wait", "nan"],
        ["ensure", "--serve-lag", "1e9"],
        ["ensure", "--timeout", "soon"],
        ["show", "--rotate-ca"],
        ["show", "-o", "yaml"],
    ],
)
def test_bad_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_the_command_of_vgpu_webhook_is_the_same(api: CertsApiServer, certs: Certs, capsys: pytest.CaptureFixture[str]):
    place = ["--kubeconfig", str(certs.kubeconfig)]
    assert vgpu_webhook(["certs", "ensure", *place]) == 0
    assert TLS in api.objects
    capsys.readouterr()
    assert vgpu_webhook(["certs", "show", *place]) == 0
    shown = capsys.readouterr().out
    assert shown == certs("show").out
    assert vgpu_webhook(["certs", "show", "--kubeconfig", "nowhere"]) == 1


def test_the_command_of_vgpu_webhook_suggests_the_right_word(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        vgpu_webhook(["certs", "shwo"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "vgpu-webhook certs: COMMAND: 'shwo' cannot be chosen; did you mean 'show'?\n"
