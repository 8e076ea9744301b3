"""The resources that the API server sends, pinned.

A webhook that is called for Leases or for authorization checks can stop the whole cluster.
"""

from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import DEPLOY, OVERLAYS, Json, bound, built
from webhook.manifests.configurations import configurations
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import default_policy, parse_policy
from webhook.settings.snapshot import default_device_config

WORKLOADS = {
    (kind.group, version, kind.plural): {"CREATE", "UPDATE"}
    for kind in WORKLOAD_KINDS.values()
    for version in kind.versions
}
ALWAYS_SENT = {
    ("", "v1", "pods"): {"CREATE", "UPDATE"},
    ("", "v1", "pods/ephemeralcontainers"): {"UPDATE"},
    # These two only if they write an assignment, and not of the scheduler: see test_sent.py.
    ("", "v1", "pods/status"): {"UPDATE"},
    ("", "v1", "pods/binding"): {"CREATE"},
    ("", "v1", "bindings"): {"CREATE"},
    ("scheduling.volcano.sh", "v1beta1", "podgroups"): {"CREATE", "UPDATE"},  # if the queue is new
    # The probe, as a dry run only, and three settings, all by name; limits of devices: see test_sent.py.
    ("", "v1", "configmaps"): {"CREATE", "UPDATE"},
    ("", "v1", "resourcequotas"): {"CREATE", "UPDATE"},
    ("scheduling.volcano.sh", "v1beta1", "queues"): {"CREATE", "UPDATE"},
}
# The control plane needs these to recover when the webhook fails.
NEVER = {
    ("coordination.k8s.io", "v1", "leases"), ("authentication.k8s.io", "v1", "tokenreviews"),
    ("authentication.k8s.io", "v1", "selfsubjectreviews"), ("authorization.k8s.io", "v1", "subjectaccessreviews"),
    ("authorization.k8s.io", "v1", "localsubjectaccessreviews"), ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
    ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"), ("", "v1", "nodes"), ("", "v1", "nodes/status"),
    ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"), ("", "v1", "events"), ("", "v1", "endpoints"),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), ("", "v1", "namespaces"),
    ("discovery.k8s.io", "v1", "endpointslices"),
}  # fmt: skip


def rendered() -> list[Json]:
    """The configurations with every optional entry."""
    return configurations(default_device_config(), default_policy(), all_pods=True)


def installed(overlay: Path) -> list[Json]:
    """The configurations of an overlay, with the rules that `certs bind` copies into the entries."""
    return [bound(document) for document in built(overlay) if document["kind"].endswith("WebhookConfiguration")]


SOURCES = [pytest.param(rendered, id="manifests")]
SOURCES += [pytest.param(partial(installed, overlay), id=overlay.name) for overlay in OVERLAYS]


def rules(found: list[Json]) -> list[Json]:
    return [rule for configuration in found for entry in configuration["webhooks"] for rule in entry["rules"]]


@pytest.mark.parametrize("find", SOURCES)
def test_only_the_pinned_resources_are_sent(find):
    sent: dict[tuple[str, str, str], set[str]] = {}
    for rule in rules(find()):
        for group in rule["apiGroups"]:
            for version in rule["apiVersions"]:
                for resource in rule["resources"]:
                    sent.setdefault((group, version, resource), set()).update(rule["operations"])
                    # Some workloads have no namespace, such as a ClusterWorkflowTemplate.
                    assert (
                        rule["scope"] == "Namespaced" or resource == "queues" or (group, version, resource) in WORKLOADS
                    )
    assert sent == ALWAYS_SENT | WORKLOADS
    assert NEVER.isdisjoint(sent), "no entry has a wildcard, as no kind has one"


def test_without_workloads_only_pods_and_the_probe_are_sent():
    off = parse_policy({"workloads": "off"}, "the test's policy")
    found = rules(configurations(default_device_config(), off))
    assert {name for rule in found for name in rule["resources"]} == {resource for _, _, resource in ALWAYS_SENT}


def test_the_probe_is_sent_by_its_name_as_a_dry_run():
    text = (DEPLOY / "base" / "webhook-configurations.yaml").read_text()
    entries = [entry for configuration in yaml.safe_load_all(text) for entry in configuration["webhooks"]]
    (probe,) = [entry for entry in entries if any("configmaps" in rule["resources"] for rule in entry.get("rules", []))]
    (condition,) = probe["matchConditions"]
    assert "request.dryRun" in condition["expression"]
    assert "vgpu-webhook-probe" in condition["expression"]
