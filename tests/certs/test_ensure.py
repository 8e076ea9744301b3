"""`ensure` against an API server over HTTP: its writes, their order, interruptions and concurrent runs."""

import re
import signal
import subprocess
import threading
import time
from datetime import timedelta
from queue import Queue
from types import SimpleNamespace

import pytest

from certs import ensure, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, SECRETS, TLS, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs, wait_for
from tests.server.program import SECONDS, until

READS = [("GET", path) for path in (TLS, MUTATING, VALIDATING, AUTHORITY)]
FAST = ["--publish-lag", "0", "--serve-lag", "0"]


def published_cas(api: CertsApiServer) -> set[str]:
    """The published CAs, which are the same in every bundle."""
    data = [api.data(TLS)["ca.crt"], *api.bundles(MUTATING), *api.bundles(VALIDATING)]
    sets = [frozenset(verify.fingerprint(one) for one in verify.certificates(bundle)) for bundle in data]
    assert len(set(sets)) == 1
    return set(sets[0])


def test_the_installation_publishes_a_ca_before_its_leaf(api: CertsApiServer, certs: Certs):
    result = certs("ensure")
    assert (result.code, result.err) == (0, "")
    assert api.written() == [SECRETS, MUTATING, VALIDATING, SECRETS]
    assert api.log[:5] == [*READS, ("POST", SECRETS)], "the order of reading is part of the proof"
    assert len(published_cas(api)) == 1
    assert api.objects[TLS]["type"] == "kubernetes.io/tls"
    assert set(api.data(TLS)) == {"tls.crt", "tls.key", "ca.crt"}
    assert set(api.data(AUTHORITY)) == {"current.crt", "current.key"}
    assert result.out.splitlines()[-1].startswith("in order: the serving certificate is valid until 20")


def test_a_second_run_writes_nothing(api: CertsApiServer, certs: Certs):
    """The managedFields entry of the data decides since when pods can serve the leaf, not that of another edit."""
    certs("ensure")
    fields = {"manager": "labeller", "time": f"{api.now:%Y}-12-31T23:59:59Z", "fieldsV1": {"f:metadata": {}}}
    api.objects[TLS]["metadata"]["managedFields"].append(fields)
    api.requests.clear()
    result = certs("ensure")
    assert result.code == 0
    assert api.log == [*READS, ("GET", MUTATING), ("GET", VALIDATING)], "the second reads check the bindings"
    assert len(result.out.splitlines()) == 1


def test_options_set_all_names(api: CertsApiServer, certs: Certs):
    renamed = [path.replace("/vgpu-webhook", "/hook") for path in (MUTATING, VALIDATING)]
    api.apply_webhooks(*renamed)
    names = ["--name", "hook", "--tls-secret", "serving", "--ca-secret", "authority"]
    assert certs("ensure", *names).code == 0
    assert {f"{SECRETS}/serving", f"{SECRETS}/authority"} <= set(api.objects)
    assert all(all(api.bundles(path)) for path in renamed)
    assert not any(api.bundles(MUTATING))
    (leaf,) = verify.certificates(api.data(f"{SECRETS}/serving")["tls.crt"])
    full = "hook.vgpu-webhook.svc"
    assert verify.hosts(leaf) == {full, f"{full}.cluster.local", "hook.vgpu-webhook", "hook", "vgpu-webhook"}


def test_missing_webhook_configurations_are_skipped(api: CertsApiServer, certs: Certs):
    del api.objects[MUTATING]
    result = certs("ensure")
    assert result.code == 0
    assert "MutatingWebhookConfiguration vgpu-webhook does not exist: skipped until it is applied" in result.out
    shown = certs("show")
    assert (shown.code, "  MutatingWebhookConfiguration vgpu-webhook    not there\n" in shown.out) == (0, True)
    api.apply_webhooks(MUTATING, webhooks=3)
    assert certs("ensure").code == 0
    assert len(published_cas(api)) == 1


def test_one_run_with_wait_rotates_a_ca(api: CertsApiServer, certs: Certs, monkeypatch: pytest.MonkeyPatch):
    def sleep(seconds: float) -> None:
        api.ahead += timedelta(seconds=seconds)

    monkeypatch.setattr(ensure, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    certs("ensure")
    before = published_cas(api)
    api.requests.clear()
    result = certs("ensure", "--rotate-ca", "--wait", "10m", "--publish-lag", "2m", "--serve-lag", "0")
    assert result.code == 0, result.err
    assert re.search(
        r"^waiting [1-9]\d* s: the next CA signs the leaf when API servers use the new bundle$",
        result.out,
        re.MULTILINE,
    )
    introduced = [AUTHORITY, MUTATING, VALIDATING, TLS]
    assert api.written() == [*introduced, AUTHORITY, TLS, *introduced]
    assert not published_cas(api) & before
    assert set(api.data(AUTHORITY)) == {"current.crt", "current.key"}


def test_several_runs_without_wait_rotate_a_ca(api: CertsApiServer, certs: Certs):
    certs("ensure")
    for _ in range(2):
        result = certs("ensure", "--rotate-ca", "--wait", "1", "--publish-lag", "1h")
        assert result.code == 0
        assert "a CA rotation is in progress: the next CA signs the leaf" in result.out
        assert len(published_cas(api)) == 2
    assert "no other is started" in result.out
    assert api.data(AUTHORITY)["step"] == b"promote"
    assert certs("ensure", *FAST, "--wait", "1").code == 0
    assert len(published_cas(api)) == 1


def test_entries_of_other_clients_are_kept(api: CertsApiServer, certs: Certs):
    certs("ensure")
    extra = {"labels": {"theirs": "too"}, "annotations": {"theirs": "too"}}
    for path in (TLS, AUTHORITY, MUTATING):
        api.objects[path]["metadata"] |= extra
    api.objects[TLS]["data"]["theirs"] = "dG9v"
    api.objects[MUTATING]["webhooks"][1] |= {"failurePolicy": "Fail", "theirs": "too"}
    certs("ensure", "--rotate-ca", "--wait", "5", *FAST)
    for path in (TLS, AUTHORITY, MUTATING):
        assert api.objects[path]["metadata"].items() >= extra.items()
    assert api.objects[TLS]["data"]["theirs"] == "dG9v"
    assert api.objects[MUTATING]["webhooks"][1].items() >= {"failurePolicy": "Fail", "theirs": "too"}.items()


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "", "tls.key": ""}, {"tls.crt": "/wA=", "theirs": "eA=="}])
def test_secrets_that_already_exist_are_used(api: CertsApiServer, certs: Certs, data: dict[str, str] | None):
    for path in (TLS, AUTHORITY):
        secret = {"metadata": {"name": path.rpartition("/")[2]}, "data": data, "type": "Opaque"}
        api.put(SECRETS, secret, manager="kubectl")
    assert certs("ensure").code == 0
    assert certs("show").code == 0
    assert api.objects[TLS]["type"] == "Opaque", "the type is immutable, and nothing reads it"


@pytest.mark.parametrize("path", [MUTATING, AUTHORITY])
def test_a_run_reads_again_after_a_conflict(api: CertsApiServer, certs: Certs, path: str):
    """A second run rotates the CA completely between a read and a write of the first run."""
    certs("ensure")
    other_codes: list[int] = []

    def run_concurrently(method: str, requested: str) -> None:
        if method != "GET" and requested == path and not other_codes:
            other_codes.append(0)
            other_codes.append(certs("ensure", "--rotate-ca", "--wait", "5", *FAST).code)

    api.before = run_concurrently
    result = certs("ensure", "--rotate-ca", "--wait", "5", *FAST)
    assert (result.code, other_codes) == (0, [0, 0]), result.err
    assert ("PATCH", path, 422) in api.refused or ("PUT", path, 409) in api.refused
    assert len(published_cas(api)) == 1
    assert certs("show").code == 0


def test_the_next_run_continues_after_a_kill(api: CertsApiServer, certs: Certs):
    runs: Queue[subprocess.Popen[str]] = Queue()
    last = threading.Event()

    def kill(method: str, path: str) -> None:
        if method == "PATCH" and path == MUTATING and not last.is_set():
            last.set()
            runs.get(timeout=SECONDS).terminate()  # the run may come here before `start` returns

    api.before = kill
    run = certs.start("ensure")
    runs.put(run)
    assert wait_for(run).code == -signal.SIGTERM
    until(lambda: api.bundles(MUTATING)[0])  # the pending write still arrives
    assert certs("ensure").code == 0
    assert len(published_cas(api)) == 1
