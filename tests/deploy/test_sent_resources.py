"""The resources that the API server sends, pinned.

A webhook that is called for Leases or for authorization checks can stop the whole cluster.
"""

from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import DEPLOY, OVERLAYS, Json, bound, built
from webhook.manifests.configurations import configurations
from webhook.policy.policy import default_policy, parse_policy
from webhook.settings.snapshot import default_device_config

# New and changed objects of these resources are sent.
WORKLOADS = {
    ("apps", "v1"): ["daemonsets", "deployments", "replicasets", "statefulsets"],
    ("", "v1"): ["podtemplates", "replicationcontrollers"],
    ("batch", "v1"): ["cronjobs", "jobs"],
    ("argoproj.io", "v1alpha1"): [
        "clusterworkflowtemplates",
        "cronworkflows",
        "rollouts",
        "workflows",
        "workflowtemplates",
    ],
    ("batch.volcano.sh", "v1alpha1"): ["cronjobs", "jobs"],
    ("flow.volcano.sh", "v1alpha1"): ["jobtemplates"],
    ("jobset.x-k8s.io", "v1alpha2"): ["jobsets"],
    ("kubeflow.org", "v1"): ["jaxjobs", "mpijobs", "notebooks", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"],
    ("kubeflow.org", "v2beta1"): ["mpijobs"],
    ("leaderworkerset.x-k8s.io", "v1"): ["leaderworkersets"],
    ("ray.io", "v1"): ["rayclusters", "raycronjobs", "rayjobs", "rayservices"],
    ("serving.knative.dev", "v1"): ["services"],
    ("serving.kserve.io", "v1alpha1"): ["llminferenceservices"],
    ("serving.kserve.io", "v1alpha2"): ["llminferenceservices"],
    ("serving.kserve.io", "v1beta1"): ["inferenceservices"],
    ("sparkoperator.k8s.io", "v1beta2"): ["scheduledsparkapplications", "sparkapplications"],
    ("trainer.kubeflow.org", "v1alpha1"): ["clustertrainingruntimes", "trainingruntimes", "trainjobs"],
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
SENT = ALWAYS_SENT | {
    (*at, resource): {"CREATE", "UPDATE"} for at, resources in WORKLOADS.items() for resource in resources
}

# The control plane needs these to recover when the webhook fails.
NEVER = {
    ("coordination.k8s.io", "v1", "leases"),
    ("authentication.k8s.io", "v1", "tokenreviews"),
    ("authentication.k8s.io", "v1", "selfsubjectreviews"),
    ("authorization.k8s.io", "v1", "subjectaccessreviews"),
    ("authorization.k8s.io", "v1", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
    ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
    ("", "v1", "nodes"),
    ("", "v1", "nodes/status"),
    ("", "v1", "events"),
    ("", "v1", "endpoints"),
    ("", "v1", "namespaces"),
    ("discovery.k8s.io", "v1", "endpointslices"),
}


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
                    assert rule["scope"] == "Namespaced" or resource in [*WORKLOADS.get((group, version), ()), "queues"]
    assert sent == SENT
    assert NEVER.isdisjoint(sent), "SENT has no wildcard, so no entry has one"


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
