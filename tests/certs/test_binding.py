"""Entries become binding when the API server gets a response from the webhook, and then stay binding."""

from typing import Any

import pytest
import yaml

from certs import ensure
from tests.certs.apiserver import AUTHORITY, MUTATING, NAMESPACE, PROBE, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs
from tests.kube.apihttp import Refused

RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
PATHS = (MUTATING, VALIDATING)
NAMESPACE_PATH = f"/api/v1/namespaces/{NAMESPACE}"
UNANSWERED = 'Internal error occurred: failed calling webhook "probe.vgpu-webhook.svc": connection refused'


@pytest.fixture(autouse=True)
def installed(api: CertsApiServer):
    """Manifests whose entries wait for the webhook."""
    api.apply_webhooks(rules=yaml.safe_dump(RULES))
    api.store(NAMESPACE_PATH, {"metadata": {"name": NAMESPACE, "uid": "the-uid"}}, "kubectl")


def rules(api: CertsApiServer) -> list[Any]:
    return [webhook.get("rules") for path in PATHS for webhook in api.objects[path]["webhooks"]]


def never_answer(api: CertsApiServer) -> None:
    def before(_method: str, path: str) -> None:
        if path == PROBE:
            raise Refused(500, UNANSWERED)

    api.before = before


def test_an_answer_makes_all_entries_binding(api: CertsApiServer, certs: Certs):
    ran = certs("ensure")
    assert (ran.code, ran.err) == (0, "")
    assert rules(api) == [RULES] * 4
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": "the-uid"}
    assert [api.objects[path]["metadata"]["ownerReferences"] for path in PATHS] == [[owner], [owner]]
    assert "ValidatingWebhookConfiguration vgpu-webhook: binding: " in ran.out


def test_the_probe_comes_after_the_certificates_and_before_the_rules(api: CertsApiServer, certs: Certs):
    certs("ensure")
    assert api.written()[-3:] == [PROBE, *PATHS]


@pytest.mark.parametrize("command", ["ensure", "bind"])
def test_without_an_answer_nothing_is_binding(api: CertsApiServer, certs: Certs, command: str):
    never_answer(api)
    ran = certs(command)
    assert ran.code == 1
    assert UNANSWERED in ran.err
    assert ran.err.strip().endswith("see `kubectl get pods -n vgpu-webhook`")
    assert rules(api) == [None] * 4
    assert all("ownerReferences" not in api.objects[path]["metadata"] for path in PATHS)
    assert len(ran.err.splitlines()) == 1


def test_a_dry_run_that_the_webhook_did_not_see_is_no_answer(api: CertsApiServer, certs: Certs):
    api.warnings = ["another webhook: beware of ConfigMaps"]
    ran = certs("ensure")
    assert (ran.code, "did not call the webhook" in ran.err) == (1, True)
    assert rules(api) == [None] * 4


def test_it_waits_for_the_answer(api: CertsApiServer, certs: Certs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ensure, "PROBE_SECONDS", 0.05)
    asked: list[str] = []

    def before(_method: str, path: str) -> None:
        if path == PROBE:
            asked.append(path)
            if len(asked) < 4:
                raise Refused(500, UNANSWERED)

    api.before = before
    ran = certs("ensure", "--wait", "10")
    assert (ran.code, len(asked)) == (0, 4)
    assert ran.out.count("waiting until the API server can call the webhook") == 1


def test_what_is_binding_is_not_tried_again(api: CertsApiServer, certs: Certs):
    """A webhook that dies later stays binding: the failurePolicy decides."""
    certs("ensure")
    never_answer(api)
    api.log.clear()
    assert certs("ensure").code == 0
    assert PROBE not in [path for _, path in api.log]
    assert api.written() == []


def test_an_entry_whose_rules_change_waits_with_the_old_ones(api: CertsApiServer, certs: Certs):
    certs("ensure")
    changed = [RULES[0] | {"operations": ["CREATE", "UPDATE"]}]
    api.objects[MUTATING]["metadata"]["annotations"]["rules.vgpu-webhook/w0"] = yaml.safe_dump(changed)
    never_answer(api)
    assert certs("ensure").code == 1
    assert rules(api) == [RULES] * 4
    api.before = lambda _method, _path: None
    assert certs("ensure").code == 0
    assert rules(api) == [changed, RULES, RULES, RULES]


def test_rules_that_others_changed_are_put_back(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.objects[VALIDATING]["webhooks"][1]["rules"] = []
    assert certs("show").code == 1
    assert "waiting    w1 does not have its rules yet" in certs("show").out
    assert certs("bind").code == 0
    assert rules(api) == [RULES] * 4
    assert certs("show").code == 0


def test_a_namespace_that_was_made_anew_is_the_owner(api: CertsApiServer, certs: Certs):
    """Else the garbage collector would delete the configuration of the new installation."""
    certs("ensure")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "x"}
    api.objects[MUTATING]["metadata"]["ownerReferences"].append(other)
    api.store(NAMESPACE_PATH, {"metadata": {"name": NAMESPACE, "uid": "another"}}, "kubectl")
    assert certs("bind").code == 0
    owners = api.objects[MUTATING]["metadata"]["ownerReferences"]
    assert [(owner["name"], owner["uid"]) for owner in owners] == [("theirs", "x"), (NAMESPACE, "another")]


def test_entries_that_trust_different_cas_are_not_tried(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.apply_webhooks(MUTATING, rules=yaml.safe_dump(RULES))
    ran = certs("bind")
    assert (ran.code, "the caBundles of the webhook configurations differ" in ran.err) == (1, True)


def test_a_configuration_without_these_annotations_stays(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.apply_webhooks()
    api.log.clear()
    assert certs("bind").code == 0
    assert api.log == [("GET", MUTATING), ("GET", VALIDATING)]


def test_an_annotation_that_cannot_be_read(api: CertsApiServer, certs: Certs):
    api.apply_webhooks(rules="[")
    ran = certs("ensure")
    assert ran.code == 1
    assert ran.err.strip().endswith("the annotation rules.vgpu-webhook/w0 is not YAML: apply the manifests again")


def test_a_right_that_is_missing_is_named(api: CertsApiServer, certs: Certs):
    def before(_method: str, path: str) -> None:
        if path == PROBE:
            raise Refused(403, "no")

    api.before = before
    assert "not allowed to apply ConfigMap vgpu-webhook/vgpu-webhook-probe as a dry run" in certs("ensure").err


def test_bind_reads_no_secret(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.apply_webhooks(rules=yaml.safe_dump(RULES))
    api.log.clear()
    assert certs("bind").code == 0
    assert not [path for _, path in api.log if "secrets" in path]
    assert AUTHORITY in api.objects
