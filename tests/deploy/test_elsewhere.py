"""In another namespace, and with other names: `namespace` and `namePrefix` of a kustomization are enough."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.files import DEPLOY, Json, built, one, pod_specs
from webhook import names

NAMESPACE, PREFIX = "gpu-system", "team-"
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
FALLBACK = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", *CONFIGURATIONS, *FALLBACK}

# What keeps its name wherever the webhook is installed.
CONSTANT = re.compile(
    r"app\.kubernetes\.io/[a-z-]+: .*"  # labels
    r"|rules\.vgpu-webhook/[a-z-]+\.vgpu-webhook\.svc|[a-z-]+\.vgpu-webhook\.svc$"  # the names of entries
    r"|vgpu-webhook-(tls|ca|probe|client-ca)\b|vgpu-webhook CA"  # Secrets, which are in no manifest, and the probe
    r"|image: .*|/var/[a-z]+/vgpu-webhook"
)


def rendered(directory: Path, resource: Path, components: Iterable[Path] = ()) -> list[Json]:
    text = {
        "resources": [os.path.relpath(resource, directory)],
        "components": [os.path.relpath(component, directory) for component in components],
        "namespace": NAMESPACE,
        "namePrefix": PREFIX,
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(text))
    return built(directory)


def text_of(document: Json) -> str:
    """As YAML, which libyaml writes ten times as fast."""
    text: str = yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    return text


def lines(documents: list[Json]) -> Iterator[str]:
    """All lines but those of policy, dashboard and alerts, which speak of the webhook by its general name."""
    for document in documents:
        if document["kind"] not in ("ConfigMap", "PrometheusRule"):
            yield from text_of(document).splitlines()


CERT_MANAGER = DEPLOY / "components" / "cert-manager"
OTHERS = [
    path for path in sorted((DEPLOY / "components").iterdir()) if path != CERT_MANAGER
]  # `store` before `store-pods`


@pytest.mark.parametrize("components", [OTHERS, [CERT_MANAGER]], ids=["all others", "cert-manager"])
def test_nothing_keeps_the_old_namespace_and_names(components: list[Path], tmp_path: Path):
    found = rendered(tmp_path, DEPLOY / "base", components)
    assert {d["metadata"].get("namespace") for d in found if d["kind"] not in CLUSTER_WIDE} == {NAMESPACE}
    assert one(found, "Namespace", NAMESPACE)
    text = "\n".join(map(text_of, found))
    old = r"namespace: vgpu-webhook|-n vgpu-webhook|vgpu-webhook\.vgpu-webhook|namespace vgpu-webhook|\$\([A-Z]+\)"
    assert re.findall(old, text) == []
    assert "volcano-system" not in re.sub(r"system:serviceaccount:volcano-system:|- volcano-system\n", "", text)
    assert {d["metadata"]["name"] for d in found if not d["metadata"]["name"].startswith(PREFIX)} == {NAMESPACE}
    plain = [
        line for line in lines(found) if "vgpu-webhook" in CONSTANT.sub("", line.replace(f"{PREFIX}vgpu-webhook", ""))
    ]
    assert {line.strip(" -") for line in plain} <= EXPECTED, plain


# The container's name, the name in the certificate by which Prometheus verifies it, and what is in no manifest: the Secret that
# the user makes, the Lease that the console makes, and the PolicyReports of `scan`; the policy's name has a prefix or a suffix.
EXPECTED = {
    'expression: has(request.name) && request.name.contains("vgpu-webhook-policy")',
    "vgpu-webhook",
    "serverName: vgpu-webhook",
    "name: vgpu-webhook-store",
    names.EVENTS_LEASE,
    "vgpu-webhook-scan",
}


def test_the_parts_agree(tmp_path: Path):
    found = rendered(tmp_path, DEPLOY)
    service = one(found, "Service", f"{PREFIX}vgpu-webhook")["metadata"]
    for kind in CONFIGURATIONS:
        called = [entry["clientConfig"]["service"] for entry in one(found, kind, f"{PREFIX}vgpu-webhook")["webhooks"]]
        assert {(c["namespace"], c["name"]) for c in called} == {(service["namespace"], service["name"])}
    entries = one(found, "ValidatingWebhookConfiguration", f"{PREFIX}vgpu-webhook")["webhooks"]
    (policy,) = (entry for entry in entries if entry["name"].startswith("policy."))
    assert policy["namespaceSelector"]["matchExpressions"][0]["values"] == [service["namespace"]]
    pods = pod_specs(found)
    for kind in ("Job", "CronJob"):
        assert options(pods[kind])["--name"] == service["name"]
    policies = [d["metadata"]["name"] for d in found if d["kind"] == "ConfigMap"]
    assert policies == [options(pods["Deployment"])["--policy-map"]]
    for role in (d for d in found if d["kind"] in ("Role", "ClusterRole")):
        for rule in role["rules"]:
            if "mutatingwebhookconfigurations" in rule["resources"]:
                assert rule["resourceNames"] == [f"{PREFIX}vgpu-webhook"]
    accounts = {(d["metadata"]["namespace"], d["metadata"]["name"]) for d in found if d["kind"] == "ServiceAccount"}
    bound = {(s["namespace"], s["name"]) for d in found for s in d.get("subjects", [])}
    assert bound == accounts == {(NAMESPACE, pod["serviceAccountName"]) for pod in pods.values()}


def options(pod: Json) -> dict[str, Any]:
    """The options of a pod's first container whose values are arguments of their own."""
    args = pod["containers"][0]["args"]
    return {args[at]: args[at + 1] for at in range(len(args) - 1) if args[at].startswith("--") and "=" not in args[at]}
