"""Problems that `ensure` cannot solve: it prints the problem and what to do, and exits with 1."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from certs import cluster, ensure, pki, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, SECRETS, TLS, VALIDATING, CertsApiServer, slowly
from tests.certs.conftest import Certs
from tests.kube.apihttp import Refused

SECRET = "Secret vgpu-webhook/vgpu-webhook-tls"
CA_SECRET = "Secret vgpu-webhook/vgpu-webhook-ca"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ensure, "MAX_PAUSE", 0.01)


def refuse(api: CertsApiServer, status: int, method: str = "", path: str = "", message: str = "for a reason") -> None:
    """Refuse what fits from now on."""

    def before(asked: str, at: str) -> None:
        if asked == (method or asked) and at == (path or at):
            raise Refused(status, message)

    api.before = before


def failing(certs: Certs, *arguments: str) -> str:
    """What a run says that does not succeed."""
    ran = certs("ensure", *arguments)
    assert ran.code == 1
    assert ran.err.startswith("error: ")
    assert len(ran.err.splitlines()) == 1
    return ran.err.removeprefix("error: ").strip()


@pytest.mark.parametrize(
    "method, path, what",
    [
        ("GET", TLS, f"get {SECRET}"),
        ("GET", AUTHORITY, f"get {CA_SECRET}"),
        ("GET", VALIDATING, "get ValidatingWebhookConfiguration vgpu-webhook"),
        ("POST", SECRETS, f"create {CA_SECRET}"),
        ("PATCH", MUTATING, "patch MutatingWebhookConfiguration vgpu-webhook"),
    ],
)
def test_a_right_that_is_missing_is_named(api: CertsApiServer, certs: Certs, method: str, path: str, what: str):
    refuse(api, 403, method, path, 'User "system:serviceaccount:x:y" cannot do that')
    said = failing(certs)
    assert said == (
        f'not allowed to {what}: User "system:serviceaccount:x:y" cannot do that; '
        "`python -m certs --help` lists the rights that are needed"
    )
    assert sum(asked == (method, path) for asked in api.log) == 1, "asking again would not help"


def test_a_right_to_update_that_is_missing_is_named(api: CertsApiServer, certs: Certs):
    certs("ensure")
    refuse(api, 403, "PUT", AUTHORITY)
    assert failing(certs, "--rotate-ca").startswith(f"not allowed to update {CA_SECRET}: ")


@pytest.mark.parametrize(
    "status, said",
    [
        (401, "the API server does not accept these credentials; renew them (for a reason)"),
        (400, "the API server responds with 400: for a reason"),
        (500, "the API server responds with 500: for a reason; try again later (tried 8 times)"),
        (429, "the API server responds with 429: for a reason; try again later (tried 8 times)"),
        (409, "another client was faster: for a reason (tried 8 times)"),
    ],
)
def test_other_refusals(api: CertsApiServer, certs: Certs, status: int, said: str):
    refuse(api, status, "POST")
    assert failing(certs) == f"cannot create {CA_SECRET}: {said}"


def test_a_namespace_that_is_not_there(api: CertsApiServer, certs: Certs):
    refuse(api, 404, "POST", SECRETS)
    said = failing(certs)
    assert said == "namespace vgpu-webhook does not exist: apply the manifests first, or name another with --namespace"


def test_what_passes_is_passed_over(api: CertsApiServer, certs: Certs):
    """Every other call fails."""
    asked: list[str] = []

    def flicker(_method: str, path: str) -> None:
        asked.append(path)
        if len(asked) % 7 == 3:
            raise Refused(503, "shutting down")

    api.before = flicker
    assert certs("ensure").code == 0
    assert len(asked) > 20


@pytest.mark.parametrize("path", [TLS, AUTHORITY, MUTATING])
def test_what_is_deleted_between_reading_and_writing(api: CertsApiServer, certs: Certs, path: str):
    certs("ensure")
    deleted: list[str] = []

    def delete(method: str, asked: str) -> None:
        if method != "GET" and asked == path and not deleted:
            deleted.append(path)
            del api.objects[path]

    api.before = delete
    assert certs("ensure", "--rotate-ca").code == 0
    assert deleted
    assert certs("show").code == 0


def test_a_server_that_does_not_answer_in_time(api: CertsApiServer, certs: Certs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ensure, "TRIES", 2)
    api.before = slowly(0.6)
    said = failing(certs, "--timeout", "0.2")
    assert len(api.log) == 2, "nobody but us tries again"
    assert said.startswith(f"cannot get {SECRET}: the API server does not answer: {api.url}{TLS}: ")
    assert said.endswith("or give it more time with --timeout (tried 2 times)")


def test_a_write_that_was_done_though_no_answer_came(api: CertsApiServer, certs: Certs):
    def sleep_once(method: str, _path: str) -> None:
        if method == "POST" and api.written() == [SECRETS]:
            time.sleep(1.5)

    api.before = sleep_once
    assert certs("ensure", "--timeout", "1").code == 0
    assert certs("show").code == 0


def test_no_api_server_answers(certs: Certs):
    with CertsApiServer() as gone:
        kubeconfig = gone.kubeconfig(certs.kubeconfig)
    assert certs.kubeconfig == kubeconfig
    assert "does not answer" in failing(certs)


@pytest.mark.parametrize("content", ["", "rubbish", "{", "clusters: 7", "\x00"])
def test_a_malformed_kubeconfig(certs: Certs, content: str):
    certs.kubeconfig.write_text(content)
    said = failing(certs)
    assert said.startswith(f"{certs.kubeconfig}: no credentials for the API server: it ")


def test_something_else_that_answers(api: CertsApiServer, certs: Certs):
    api.fail(TLS, lambda handler: handler.answer(200, b'"hello"'))
    assert failing(certs) == (
        f"cannot get {SECRET}: {api.url}{TLS}: the response is not an object: "
        "this is not an API server; check the address in the kubeconfig"
    )


@pytest.mark.parametrize("ahead", [timedelta(minutes=6), timedelta(hours=-2), timedelta(days=400)])
def test_clocks_that_disagree(api: CertsApiServer, certs: Certs, ahead: timedelta):
    api.ahead = ahead
    said = failing(certs)
    assert said.startswith(f"the local clock shows {datetime.now(UTC):%Y-%m-%d %H}")
    assert f"the API server's {api.now:%Y-%m-%d %H}" in said
    assert said.endswith("correct the one that is wrong; until then nothing is written")
    assert api.written() == []


def test_clocks_that_agree_somewhat(api: CertsApiServer, certs: Certs):
    api.ahead = timedelta(minutes=4)
    assert certs("ensure").code == 0
    (leaf,) = verify.certificates(api.data(TLS)["tls.crt"])
    made = leaf.not_valid_before_utc + pki.CLOCK_SKEW
    assert abs(made - api.now) < timedelta(seconds=30), "the API server judges, so its clock counts"


@pytest.mark.parametrize("path, annotation", [(TLS, "certificate-name"), (MUTATING, "inject-ca-from")])
def test_cert_manager_is_not_fought(api: CertsApiServer, certs: Certs, path: str, annotation: str):
    certs("ensure")
    api.objects[path]["metadata"]["annotations"] = {f"cert-manager.io/{annotation}": "x"}
    api.log.clear()
    assert "cert-manager manages" in failing(certs, "--rotate-ca")
    assert api.written() == []


def test_a_secret_that_is_immutable(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.objects[AUTHORITY]["immutable"] = True
    said = failing(certs, "--rotate-ca")
    assert said == f"{CA_SECRET} is immutable: delete it, and run this again"
    del api.objects[AUTHORITY]
    assert certs("ensure").code == 0


def test_another_client_that_always_undoes_it(api: CertsApiServer, certs: Certs):
    def put_back(method: str, path: str) -> None:
        if method == "GET" and path == MUTATING:
            api.apply_webhooks(MUTATING)

    api.before = put_back
    assert failing(certs).startswith("it does not finish: another client changes the certificates")


def test_what_was_read_too_long_ago_is_not_acted_upon(
    api: CertsApiServer, certs: Certs, monkeypatch: pytest.MonkeyPatch
):
    """A Secret that others signed anew, published, and lost, must not come back from what was true before."""
    monkeypatch.setattr(cluster, "FRESH_SECONDS", -1.0)
    assert failing(certs) == f"cannot write {CA_SECRET}: it was read too long ago (tried 8 times)"
    assert api.written() == []
