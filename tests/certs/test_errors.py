"""Problems that `ensure` cannot solve: it names the problem and what to do; the command prints that, and exits with 1."""

import re
import threading
from datetime import UTC, datetime, timedelta
from math import inf

import pytest

from certs import pki, verify
from certs.ensure import Patience, ensure
from certs.errors import CertsError
from tests.certs.apiserver import AUTHORITY, MUTATING, SECRETS, TLS, VALIDATING, CertsApiServer
from tests.certs.conftest import DESIRED, Certs
from tests.certs.simulated_cluster import ignore
from tests.cluster.apihttp import StatusError
from tests.server.program import until

SECRET = "Secret vgpu-webhook/vgpu-webhook-tls"
CA_SECRET = "Secret vgpu-webhook/vgpu-webhook-ca"


def refuse(api: CertsApiServer, status: int, method: str = "", path: str = "", message: str = "for a reason") -> None:
    """Refuse all requests with this method and path; empty matches any."""

    def before(actual_method: str, actual_path: str) -> None:
        if method in ("", actual_method) and path in ("", actual_path):
            raise StatusError(status, message)

    api.before = before


def error_of(certs: Certs, *, rotate: bool = False, tries: int = 8, **cluster: float) -> str:
    patience = Patience(-inf, tries, pause=0.0)
    with pytest.raises(CertsError) as raised:
        ensure(certs.cluster(**cluster), DESIRED, patience, rotate=rotate, report=ignore)
    return str(raised.value)


@pytest.mark.parametrize(
    "method, path, action",
    [
        ("GET", TLS, f"get {SECRET}"),
        ("GET", AUTHORITY, f"get {CA_SECRET}"),
        ("GET", VALIDATING, "get ValidatingWebhookConfiguration vgpu-webhook"),
        ("POST", SECRETS, f"create {CA_SECRET}"),
        ("PATCH", MUTATING, "patch MutatingWebhookConfiguration vgpu-webhook"),
    ],
)
def test_a_missing_permission_is_named(api: CertsApiServer, certs: Certs, method: str, path: str, action: str):
    refuse(api, 403, method, path, 'User "system:serviceaccount:x:y" cannot do that')
    result = certs("ensure")
    assert result.code == 1
    assert result.err == (
        f'error: not allowed to {action}: User "system:serviceaccount:x:y" cannot do that; '
        "`vgpu-webhook certs --help` lists the rights that are needed\n"
    )
    assert api.log.count((method, path)) == 1, "a retry would not help"


@pytest.mark.parametrize(
    "status, message",
    [
        (404, "namespace vgpu-webhook does not exist: apply the manifests first, or name another with --namespace"),
        (401, "the API server does not accept these credentials; renew them (for a reason)"),
        (400, "the API server responds with 400: for a reason"),
        (500, "the API server responds with 500: for a reason; try again later (tried 8 times)"),
        (429, "the API server responds with 429: for a reason; try again later (tried 8 times)"),
        (409, "another client was faster: for a reason (tried 8 times)"),
    ],
)
def test_other_error_responses_are_reported(api: CertsApiServer, certs: Certs, status: int, message: str):
    refuse(api, status, "POST")
    assert error_of(certs) == (message if status == 404 else f"cannot create {CA_SECRET}: {message}")


def test_temporary_errors_are_retried(api: CertsApiServer, certs: Certs):
    """Every seventh request fails."""
    paths: list[str] = []

    def fail_some(_method: str, path: str) -> None:
        paths.append(path)
        if len(paths) % 7 == 3:
            raise StatusError(503, "shutting down")

    api.before = fail_some
    assert certs("ensure").code == 0
    assert len(paths) > 20


@pytest.mark.parametrize("path", [TLS, AUTHORITY, MUTATING])
def test_an_object_that_is_deleted_between_read_and_write(api: CertsApiServer, certs: Certs, path: str):
    certs("ensure")
    deleted: list[str] = []

    def delete(method: str, requested: str) -> None:
        if method != "GET" and requested == path and not deleted:
            deleted.append(path)
            del api.objects[path]

    api.before = delete
    assert certs("ensure", "--rotate-ca").code == 0
    assert deleted
    assert certs("show").code == 0


def test_a_server_that_does_not_answer_in_time(api: CertsApiServer, certs: Certs):
    ended = threading.Event()
    api.before = lambda _method, _path: ended.wait()
    message = error_of(certs, call_seconds=0.2, tries=2)
    ended.set()
    until(lambda: len(api.log) == 2)  # the HTTP client does not retry by itself
    assert message.startswith(f"cannot get {SECRET}: the API server does not answer: {api.url}{TLS}: ")
    assert message.endswith("or give it more time with --timeout (tried 2 times)")


def test_a_write_that_succeeds_without_a_response(api: CertsApiServer, certs: Certs):
    def wait_once(method: str, _path: str) -> None:
        if method == "POST" and api.written() == [SECRETS]:
            until(lambda: len(api.log) > api.log.index((method, SECRETS)) + 1)  # the client sends the next request

    api.before = wait_once
    assert certs("ensure", "--timeout", "1").code == 0
    assert certs("show").code == 0


def test_no_api_server_answers(certs: Certs):
    with CertsApiServer() as stopped:
        stopped.kubeconfig(certs.kubeconfig)
    assert "does not answer" in error_of(certs)


def test_a_server_that_is_not_an_api_server(api: CertsApiServer, certs: Certs):
    api.fail(TLS, lambda handler: handler.respond(200, b'"hello"'))
    assert error_of(certs) == (
        f"cannot get {SECRET}: {api.url}{TLS}: the response is not an object: "
        "this is not an API server; check the address in the kubeconfig"
    )


@pytest.mark.parametrize("ahead", [timedelta(minutes=6), timedelta(hours=-2), timedelta(days=400)])
def test_clocks_that_disagree(api: CertsApiServer, certs: Certs, ahead: timedelta):
    api.ahead = ahead
    began = datetime.now(UTC).replace(second=0, microsecond=0)
    message = error_of(certs)
    shown = re.match(r"the local clock shows (.+), the API server's (.+) \(UTC\): ", message)
    for moment, error in zip(shown.groups(), (timedelta(0), ahead), strict=True):
        assert began <= datetime.fromisoformat(f"{moment}Z") - error <= datetime.now(UTC)
    assert message.endswith("correct the one that is wrong; until then nothing is written")
    assert api.written() == []


def test_a_small_difference_of_the_clocks(api: CertsApiServer, certs: Certs):
    api.ahead = timedelta(minutes=4)
    began = api.now.replace(microsecond=0)
    assert certs("ensure").code == 0
    (leaf,) = verify.certificates(api.data(TLS)["tls.crt"])
    made = leaf.not_valid_before_utc + pki.CLOCK_SKEW
    assert began <= made <= api.now, "the clock of the API server decides"


@pytest.mark.parametrize("path, annotation", [(TLS, "certificate-name"), (MUTATING, "inject-ca-from")])
def test_objects_of_cert_manager_are_not_written(api: CertsApiServer, certs: Certs, path: str, annotation: str):
    certs("ensure")
    api.objects[path]["metadata"]["annotations"] = {f"cert-manager.io/{annotation}": "x"}
    api.requests.clear()
    assert "cert-manager manages" in error_of(certs, rotate=True)
    assert api.written() == []


def test_a_secret_that_may_not_be_updated(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.objects[AUTHORITY]["immutable"] = True
    assert error_of(certs, rotate=True) == f"{CA_SECRET} is immutable: delete it, and run this again"
    refuse(api, 403, "PUT", AUTHORITY)
    del api.objects[AUTHORITY]["immutable"]
    assert error_of(certs, rotate=True).startswith(f"not allowed to update {CA_SECRET}: ")


def test_another_client_that_reverts_each_write(api: CertsApiServer, certs: Certs):
    def put_back(method: str, path: str) -> None:
        if method == "GET" and path == MUTATING:
            api.apply_webhooks(MUTATING)

    api.before = put_back
    assert error_of(certs).startswith("it does not finish: another client changes the certificates")


def test_stale_reads_are_not_used(api: CertsApiServer, certs: Certs):
    """Otherwise a run could restore a leaf that other runs have replaced since."""
    assert error_of(certs, fresh_seconds=-1.0) == f"cannot write {CA_SECRET}: it was read too long ago (tried 8 times)"
    assert api.written() == []
