"""Minimal objects to create."""

from typing import Any

import yaml

from tests.server.program import DATA
from webhook.pod.workload_kinds import WORKLOAD_KINDS

Object = dict[str, Any]

SLICE = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"}
SCHEDULER = "system:serviceaccount:volcano-system:volcano-scheduler"
USER = "alice"
KUBELETS = "system:nodes"


def pod(name: str, limits: dict[str, str] | None = None, **container: Any) -> Object:
    main = {"name": "main", "image": "cuda", "resources": {"limits": limits or {}}} | container
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [main]}}


def device_pod(name: str, **container: Any) -> Object:
    """A pod that requests a slice but does not name Volcano as its scheduler."""
    return pod(name, SLICE, **container)


def binding(annotations: dict[str, str]) -> Object:
    """What gives the pod `p` its node, and these annotations."""
    metadata = {"name": "p", "annotations": annotations}
    target = {"apiVersion": "v1", "kind": "Node", "name": "gpu-a"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def pods(namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of the pods of a namespace, of a pod, or of a subresource."""
    return "/".join(filter(None, (f"/api/v1/namespaces/{namespace}/pods", name, subresource)))


def namespace_objects(name: str) -> list[Object]:
    """A namespace in which `USER`, the scheduler and kubelets may create pods and change them."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "change-pods", "namespace": name}}
    resources = ["pods", "pods/status", "pods/ephemeralcontainers"]
    changing = {"apiGroups": [""], "resources": resources, "verbs": ["get", "create", "patch"]}
    binding = {"apiGroups": [""], "resources": ["pods/binding", "bindings"], "verbs": ["create"]}
    subjects = [("User", USER), ("User", SCHEDULER), ("Group", KUBELETS)]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        service_account(name),
        rbac | {"kind": "Role", "rules": [changing, binding]},
        rbac
        | {
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "change-pods"},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": subject} for kind, subject in subjects
            ],
        },
    ]


def service_account(namespace: str, name: str = "default") -> Object:
    """The ServiceAccount that a controller would create in each new namespace."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def config_map(namespace: str, name: str, data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def custom_resource(group: str, version: str, kind: str) -> Object:
    """A namespaced custom resource definition without validation."""
    builtin = WORKLOAD_KINDS.get((group, kind))
    plural = builtin.plural if builtin else f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},  # required for groups of k8s.io
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


def load_nodes(fleet: str) -> list[Object]:
    nodes: list[Object] = yaml.safe_load((DATA / "fleets" / f"{fleet}.yaml").read_text())["items"]
    return nodes
