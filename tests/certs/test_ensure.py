"""`ensure` against an API server over HTTP: what it writes, in which order, interrupted and overtaken."""

import re
import signal
import subprocess
import sys

import pytest

from certs import ensure, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, SECRETS, TLS, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs, ended
from tests.kube.apihttp import Refused
from tests.server.program import until

READS = [("GET", path) for path in (TLS, MUTATING, VALIDATING, AUTHORITY)]
FAST = ["--publish-lag", "0", "--serve-lag", "0"]


def authorities(api: CertsApiServer) -> set[str]:
    """The CAs that are published, in every bundle the same."""
    held = [api.data(TLS)["ca.crt"], *api.bundles(MUTATING), *api.bundles(VALIDATING)]
    sets = [frozenset(verify.fingerprint(one) for one in verify.certificates(bundle)) for bundle in held]
    assert len(set(sets)) == 1
    return set(sets[0])


def test_installs_in_an_order_in_which_nothing_is_distrusted(api: CertsApiServer, certs: Certs):
    ran = certs("ensure")
    assert (ran.code, ran.err) == (0, "")
    assert api.written() == [SECRETS, MUTATING, VALIDATING, SECRETS]
    assert api.log[:5] == [*READS, ("POST", SECRETS)], "the order of reading is part of the proof"
    assert len(authorities(api)) == 1
    assert api.objects[TLS]["type"] == "kubernetes.io/tls"
    assert set(api.data(TLS)) == {"tls.crt", "tls.key", "ca.crt"}
    assert set(api.data(AUTHORITY)) == {"current.crt", "current.key"}
    assert ran.out.splitlines()[-1].startswith("in order: the serving certificate is valid until 20")


def test_what_is_in_order_is_left_alone(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.log.clear()
    ran = certs("ensure")
    assert ran.code == 0
    assert api.log == [*READS, ("GET", MUTATING), ("GET", VALIDATING)], "the second time for what is binding"
    assert len(ran.out.splitlines()) == 1


def test_the_leaf_is_for_the_service(api: CertsApiServer, certs: Certs):
    certs("ensure", "--name", "hook")
    (leaf,) = verify.certificates(api.data(TLS)["tls.crt"])
    full = "hook.vgpu-webhook.svc"
    assert verify.hosts(leaf) == {full, f"{full}.cluster.local", "hook.vgpu-webhook", "hook", "vgpu-webhook"}


def test_all_names_are_options(api: CertsApiServer, certs: Certs):
    renamed = [path.replace("/vgpu-webhook", "/hook") for path in (MUTATING, VALIDATING)]
    api.apply_webhooks(*renamed)
    names = ["--name", "hook", "--tls-secret", "serving", "--ca-secret", "authority"]
    assert certs("ensure", *names).code == 0
    assert {f"{SECRETS}/serving", f"{SECRETS}/authority"} <= set(api.objects)
    assert all(all(api.bundles(path)) for path in renamed)
    assert not any(api.bundles(MUTATING))


def test_configurations_that_are_not_applied_yet_are_passed_over(api: CertsApiServer, certs: Certs):
    del api.objects[MUTATING]
    ran = certs("ensure")
    assert ran.code == 0
    assert "MutatingWebhookConfiguration vgpu-webhook does not exist: skipped until it is applied" in ran.out
    api.apply_webhooks(MUTATING, webhooks=3)
    assert certs("ensure").code == 0
    assert len(authorities(api)) == 1


def test_a_ca_changes_in_one_patient_run(api: CertsApiServer, certs: Certs):
    certs("ensure")
    before = authorities(api)
    api.log.clear()
    ran = certs("ensure", "--rotate-ca", "--wait", "5", "--publish-lag", "2", "--serve-lag", "0")
    assert ran.code == 0, ran.err
    assert re.search(
        r"^waiting [12] s: the next CA signs the leaf when API servers use the new bundle$", ran.out, re.MULTILINE
    )
    introduced = [AUTHORITY, MUTATING, VALIDATING, TLS]
    assert api.written() == [*introduced, AUTHORITY, TLS, *introduced]
    assert not authorities(api) & before
    assert set(api.data(AUTHORITY)) == {"current.crt", "current.key"}


def test_without_patience_a_ca_changes_step_by_step(api: CertsApiServer, certs: Certs):
    certs("ensure")
    for _ in range(2):
        ran = certs("ensure", "--rotate-ca", "--wait", "1")
        assert ran.code == 0
        assert "a CA rotation is in progress: the next CA signs the leaf" in ran.out
        assert len(authorities(api)) == 2
    assert "no other is started" in ran.out
    assert api.data(AUTHORITY)["step"] == b"promote"
    assert certs("ensure", *FAST, "--wait", "1").code == 0
    assert len(authorities(api)) == 1


def test_nothing_of_others_is_lost(api: CertsApiServer, certs: Certs):
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


def test_an_edit_that_leaves_the_pair_alone_delays_nothing(api: CertsApiServer, certs: Certs):
    """Only the record of who wrote the data tells since when pods can have the leaf."""
    certs("ensure")
    fields = {"manager": "labeller", "time": f"{api.now:%Y}-12-31T23:59:59Z", "fieldsV1": {"f:metadata": {}}}
    api.objects[TLS]["metadata"]["managedFields"].append(fields)
    api.log.clear()
    certs("ensure")
    assert api.written() == []


@pytest.mark.parametrize("writes", range(10))
def test_an_interrupted_run_is_taken_further_by_the_next(
    api: CertsApiServer, certs: Certs, monkeypatch: pytest.MonkeyPatch, writes: int
):
    """The server dies after so many writes."""
    monkeypatch.setattr(ensure, "TRIES", 1)
    certs("ensure")
    before = authorities(api)

    def die(_method: str, _path: str) -> None:
        if len(api.written()) > writes:
            raise Refused(503, "shutting down")

    api.log.clear()
    api.before = die
    assert certs("ensure", "--rotate-ca", "--wait", "5", *FAST).code == 1
    api.before = lambda _method, _path: None
    again = ["--rotate-ca"] if writes == 0 else []
    assert certs("ensure", *again, "--wait", "5", *FAST).code == 0
    assert len(authorities(api)) == 1
    assert not authorities(api) & before


@pytest.mark.parametrize("path", [TLS, MUTATING, VALIDATING, AUTHORITY])
def test_a_run_that_is_overtaken_reads_again(api: CertsApiServer, certs: Certs, path: str):
    """Between the first run's read and its write of an object, a second run changes the CA from end to end."""
    certs("ensure")
    overtaken: list[int] = []

    def overtake(method: str, asked: str) -> None:
        if method != "GET" and asked == path and not overtaken:
            overtaken.append(0)
            overtaken.append(certs("ensure", "--rotate-ca", "--wait", "5", *FAST).code)

    api.before = overtake
    ran = certs("ensure", "--rotate-ca", "--wait", "5", *FAST)
    assert (ran.code, overtaken) == (0, [0, 0]), ran.err
    assert ("PATCH", path, 422) in api.refused or ("PUT", path, 409) in api.refused
    assert len(authorities(api)) == 1
    assert certs("show").code == 0


def test_two_processes_at_once(api: CertsApiServer, certs: Certs):
    runs = [certs.start("ensure", "--rotate-ca", "--wait", "10", *FAST) for _ in range(2)]
    for ran in [ended(run) for run in runs]:
        assert (ran.code, ran.err) == (0, "")
    assert len(authorities(api)) == 1
    assert certs("show").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_killed_while_it_writes(api: CertsApiServer, certs: Certs, number: signal.Signals):
    killed: list[subprocess.Popen[str]] = []

    def kill(method: str, path: str) -> None:
        if method == "PATCH" and path == MUTATING and killed:
            killed.pop().send_signal(number)

    api.before = kill
    run = certs.start("ensure")
    killed.append(run)
    assert ended(run).code == -number
    until(lambda: api.bundles(MUTATING)[0])  # what was on its way, arrives
    assert certs("ensure").code == 0
    assert len(authorities(api)) == 1


def test_serving_does_not_wait_for_the_kubernetes_client():
    script = "import sys; import certs.pki, certs.pki; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
