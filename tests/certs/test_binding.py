"""Entries become binding when the API server gets a response from the webhook, and then stay binding."""

from functools import partial
from math import inf
from typing import Any

import pytest
import yaml

from certs.ensure import Patience, bind
from tests.certs.apiserver import MUTATING, NAMESPACE, PROBE, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs
from tests.cluster.apihttp import StatusError

RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
PATHS = (MUTATING, VALIDATING)
CALL_FAILED = 'Internal error occurred: failed calling webhook "probe.vgpu-webhook.svc": connection refused'


@pytest.fixture(autouse=True)
def installed(api: CertsApiServer):
    """Manifests whose entries wait for the webhook."""
    api.apply_webhooks(rules=yaml.safe_dump(RULES))
    api.put("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "uid": "the-uid"}}, manager="kubectl")


def rules(api: CertsApiServer) -> list[Any]:
    return [webhook.get("rules") for path in PATHS for webhook in api.objects[path]["webhooks"]]


def fail_probes(api: CertsApiServer, times: float = inf, status: int = 500) -> list[str]:
    """Refuse the first probes; returns all of them."""
    probes: list[str] = []

    def before(_method: str, path: str) -> None:
        if path == PROBE:
            probes.append(path)
            if len(probes) <= times:
                raise StatusError(status, CALL_FAILED)

    api.before = before
    return probes


def test_a_response_after_the_certificates_makes_all_entries_binding(api: CertsApiServer, certs: Certs):
    result = certs("ensure")
    assert (result.code, result.err) == (0, "")
    assert rules(api) == [RULES] * 4
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": "the-uid"}
    assert [api.objects[path]["metadata"]["ownerReferences"] for path in PATHS] == [[owner], [owner]]
    assert "ValidatingWebhookConfiguration vgpu-webhook: binding: " in result.out
    assert api.written()[-3:] == [PROBE, *PATHS]


UNCALLED = (
    "the API server cannot call the webhook: {}; until it can, it admits pods without it (or calls it by its previous rules): "
    "see `kubectl get pods -n vgpu-webhook`"
)
RIGHTS = "`vgpu-webhook certs --help` lists the rights that are needed"
PROBE_MAP = f"ConfigMap {NAMESPACE}/vgpu-webhook-probe"


@pytest.mark.parametrize(
    "spoil, message",
    [
        (fail_probes, UNCALLED.format(CALL_FAILED)),
        (
            lambda api: api.warnings.__setitem__(0, "another webhook: beware of ConfigMaps"),
            UNCALLED.format(f"it did not call the webhook for {PROBE_MAP}: apply the manifests again"),
        ),
        (partial(fail_probes, status=403), f"not allowed to apply {PROBE_MAP} as a dry run: {CALL_FAILED}; {RIGHTS}"),
        (
            lambda api: api.apply_webhooks(rules="["),
            "the annotation rules.vgpu-webhook/w0 is not YAML: apply the manifests again",
        ),
    ],
    ids=["no response", "another webhook", "no right", "no YAML"],
)
@pytest.mark.parametrize("command", ["ensure", "bind"])
def test_without_a_response_no_entry_is_binding(
    api: CertsApiServer, certs: Certs, spoil: Any, message: str, command: str
):
    spoil(api)
    result = certs(command)
    assert (result.code, result.err) == (1, f"error: {message}\n")
    assert rules(api) == [None] * 4
    assert all("ownerReferences" not in api.objects[path]["metadata"] for path in PATHS)


def test_entries_with_different_ca_bundles_are_not_probed(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.apply_webhooks(MUTATING, rules=yaml.safe_dump(RULES))
    result = certs("bind")
    assert (result.code, "the caBundles of the webhook configurations differ" in result.err) == (1, True)


def test_it_waits_for_a_response(api: CertsApiServer, certs: Certs):
    assert certs("ensure").code == 0
    api.apply_webhooks(rules=yaml.safe_dump([RULES[0] | {"operations": ["UPDATE"]}]), bundle=api.bundles(MUTATING)[0])
    reported: list[str] = []
    probes = fail_probes(api, 3)
    bind(certs.cluster(), Patience(inf, probe=0.01), reported.append)
    assert len(probes) == 4
    assert "".join(reported).count("waiting until the API server can call the webhook") == 1


def test_a_binding_entry_is_not_probed_again(api: CertsApiServer, certs: Certs):
    """Entries stay binding if the webhook fails later; then the failurePolicy applies."""
    certs("ensure")
    fail_probes(api)
    api.requests.clear()
    assert certs("ensure").code == 0
    assert PROBE not in [path for _, path in api.log]
    assert api.written() == []


def test_new_rules_replace_the_old_ones_after_a_response(api: CertsApiServer, certs: Certs):
    certs("ensure")
    changed = [RULES[0] | {"operations": ["CREATE", "UPDATE"]}]
    api.objects[MUTATING]["metadata"]["annotations"]["rules.vgpu-webhook/w0"] = yaml.safe_dump(changed)
    fail_probes(api)
    assert certs("ensure").code == 1
    assert rules(api) == [RULES] * 4
    api.before = lambda _method, _path: None
    assert certs("ensure").code == 0
    assert rules(api) == [changed, RULES, RULES, RULES]


def test_rules_that_another_client_changed_are_restored(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.objects[VALIDATING]["webhooks"][1]["rules"] = []
    assert certs("show").code == 1
    assert "waiting    w1 does not have its rules yet" in certs("show").out
    api.requests.clear()
    assert certs("bind").code == 0
    assert not [path for _, path in api.log if "secrets" in path]
    assert rules(api) == [RULES] * 4
    assert certs("show").code == 0


def test_a_recreated_namespace_becomes_the_owner(api: CertsApiServer, certs: Certs):
    """Otherwise the garbage collector would delete the configuration of the new installation."""
    certs("ensure")
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "uid": "x"}
    api.objects[MUTATING]["metadata"]["ownerReferences"].append(other)
    api.put("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "uid": "another"}}, manager="kubectl")
    assert certs("bind").code == 0
    owners = api.objects[MUTATING]["metadata"]["ownerReferences"]
    assert [(owner["name"], owner["uid"]) for owner in owners] == [("theirs", "x"), (NAMESPACE, "another")]


def test_a_configuration_without_these_annotations_is_not_changed(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.apply_webhooks()
    api.requests.clear()
    assert certs("bind").code == 0
    assert api.log == [("GET", MUTATING), ("GET", VALIDATING)]
