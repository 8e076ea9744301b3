"""Clusters with their rendered configurations, admission requests, and the outcome of the webhook for a request."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.deploy.calling import Entry, called, entries
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.manifests.configurations import configurations
from webhook.outcome import Outcome
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import Policy, default_policy
from webhook.review.endpoints import mutate, validate
from webhook.settings.snapshot import SnapshotInputs, default_device_config, read_nodes
from webhook.settings.table import FLEET
from webhook.snapshot import Snapshot
from webhook.wire.codec import decode

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Cluster:
    """A cluster's settings, and the configurations that are rendered for them."""

    snapshot: Snapshot
    entries: list[Entry]


def cluster(nvidia: dict[str, Any] | None = None, policy: Policy | None = None, *, all_pods: bool = False) -> Cluster:
    policy = policy or default_policy()
    document = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())
    document["nvidia"].update(nvidia or {})
    config = parse_device_config(document, "device-config.yaml")
    nodes = read_nodes(FLEET.load(DATA / "fleets" / "every-family.yaml"), config)
    snapshot = SnapshotInputs(config, policy, nodes).snapshot()
    return Cluster(snapshot, entries(configurations(snapshot.config, policy, all_pods=all_pods)))


USUAL = cluster()
RENAMED = cluster({"resourceCountName": names.NVIDIA_GPU, "resourceMemoryName": "example.org/slice"})
HIDING = cluster({"overwriteEnv": True, "resourceCountName": names.NVIDIA_GPU}, all_pods=True)
WITHOUT_CONFIG = Cluster(
    SnapshotInputs(default_device_config(), default_policy(), None).snapshot(),
    entries(configurations(default_device_config(), default_policy())),
)
CLUSTERS = st.sampled_from([USUAL, RENAMED, HIDING, WITHOUT_CONFIG])


def request(obj: dict[str, Any], operation: str = "CREATE", **more: Any) -> dict[str, Any]:
    kind, version = obj["kind"], obj["apiVersion"]
    group, _, version = version.rpartition("/")
    workload_kind = WORKLOAD_KINDS.get((group, kind))
    return {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {
            "group": group,
            "version": version,
            "resource": workload_kind.plural if workload_kind else f"{kind.lower()}s",
        },
        "operation": operation,
        "namespace": "default",
        "userInfo": {"username": "alice"},
        "object": obj,
        "oldObject": None,
        **more,
    }


def binding(annotations: dict[str, str] | None, resource: str = "pods/binding", **more: Any) -> dict[str, Any]:
    """The request that binds a pod."""
    metadata = {"name": "pod", "namespace": "default"} | ({} if annotations is None else {"annotations": annotations})
    written = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": "n0"}}
    name, _, part = resource.partition("/")
    return request(written, resource={"group": "", "version": "v1", "resource": name}, subResource=part, **more)


def outcome_of(endpoint: Any, admission_request: dict[str, Any], snapshot: Snapshot) -> Outcome:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": admission_request}
    return endpoint(decode(json.dumps(review).encode()), snapshot)


# What these find in pods that name no device, but for NVIDIA's own name, is told where the pod is reviewed anyway: in files,
# and by `scan`.
TOLD_ANYWAY = {"device-misplaced", "resource-as-annotation", "resource-not-offered"}


def has_outcome(outcome: Outcome) -> bool:
    """Whether the webhook changes, warns of or refuses the request, but for what it does not have to be sent."""
    cards = f"[{names.NVIDIA_GPU}]"
    found = [one for one in outcome.violations if one.rule not in TOLD_ANYWAY or one.path.endswith(cards)]
    return bool(outcome.operations or outcome.notices or found)


def assert_sent(admission_request: dict[str, Any], where: Cluster) -> None:
    """Fails if the API server does not send a request that the webhook would change, warn of or refuse."""
    missed = "the API server does not send it: add a condition in webhook/manifests/match_conditions.py"
    repaired = outcome_of(mutate, admission_request, where.snapshot)
    if has_outcome(repaired):
        assert called(where.entries, admission_request, "/mutate"), missed
    if repaired.reviewed:
        admission_request = admission_request | {"object": dict(repaired.object)}
    if has_outcome(outcome_of(validate, admission_request, where.snapshot)):
        assert called(where.entries, admission_request, "/validate"), missed
