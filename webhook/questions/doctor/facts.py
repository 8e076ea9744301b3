"""The objects that checks look at, as the API server has them, and what could not be read of them.

Objects are read without trust: a value of an unexpected type counts as absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from webhook.devices.ledger import BoundPod
from webhook.devices.nodes import cut_node
from webhook.devices.occupancy import cut_pod
from webhook.lenient import obj, objs, only, text
from webhook.policy.policy import Policy

Object = dict[str, Any]

EVERYWHERE = ""  # as a namespace: all namespaces, or objects without one

_PUBLIC = ("tls.crt", "ca.crt")  # of a Secret; its keys are never kept
_POD_GROUP = {"metadata": ("name", "namespace", "ownerReferences"), "spec": ("queue",), "status": ("phase",)}


def name_of(value: Object) -> str:
    """The name of an object."""
    return text(value, "metadata", "name")


def namespace_of(value: Object) -> str:
    """The namespace of an object; empty where it has none."""
    return text(value, "metadata", "namespace")


def place_of(value: Object) -> str:
    """Namespace and name of an object, for people."""
    return "/".join(part for part in (namespace_of(value), name_of(value)) if part)


class ObjectKind(StrEnum):
    """The kinds of objects that checks look at."""

    NODE = "Node"
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"  # noqa: S105  # the name of a kind
    SERVICE = "Service"
    DAEMON_SET = "DaemonSet"
    DEPLOYMENT = "Deployment"
    ENDPOINT_SLICE = "EndpointSlice"
    MUTATING = "MutatingWebhookConfiguration"
    VALIDATING = "ValidatingWebhookConfiguration"
    ROLE = "Role"
    ROLE_BINDING = "RoleBinding"
    CLUSTER_ROLE = "ClusterRole"
    CLUSTER_ROLE_BINDING = "ClusterRoleBinding"
    POD = "Pod"
    QUEUE = "Queue"
    POD_GROUP = "PodGroup"
    DEVICE_CLASS = "DeviceClass"
    RESOURCE_QUOTA = "ResourceQuota"
    VALIDATING_POLICY = "ValidatingAdmissionPolicy"
    VALIDATING_POLICY_BINDING = "ValidatingAdmissionPolicyBinding"

    @property
    def plural(self) -> str:
        """The name in the API and for kubectl."""
        return f"{self.lower()}s".replace("policys", "policies").replace("classs", "classes")

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind have a namespace."""
        return self not in _CLUSTER_WIDE


_CLUSTER_WIDE = (
    ObjectKind.NODE,
    ObjectKind.MUTATING,
    ObjectKind.VALIDATING,
    ObjectKind.CLUSTER_ROLE,
    ObjectKind.CLUSTER_ROLE_BINDING,
    ObjectKind.QUEUE,
    ObjectKind.DEVICE_CLASS,
    ObjectKind.VALIDATING_POLICY,
    ObjectKind.VALIDATING_POLICY_BINDING,
)


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read.

    Attributes:
        what: could not be read.
        why: it could not.
        needs: what would allow it.
    """

    what: str
    why: str
    needs: str


A_RUN, _FILES = "a run against the cluster", "files do not show it"

Gaps = Mapping[tuple[ObjectKind, str], Unread | None]


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response of an HTTP server."""

    status: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of a cluster.

    Attributes:
        now: the time for which certificates are checked.
        objects: by kind; if several have the same name, the first.
        gaps: by kind and namespace, why not all objects are known; None if they are, so that an absent one does not exist.
        namespace, name: of the webhook's Service, as the operator gave them; empty: what its configurations call.
        policy: given by the operator; None: the one in the cluster.
        bound_pods: those with devices that are bound to a node.
        readiness: the webhook's response to `/readyz`.
        metrics: those of the API server.
        complaints: about files that cannot be read.
    """

    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    objects: Mapping[ObjectKind, tuple[Object, ...]] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=lambda: MappingProxyType({}))
    namespace: str = ""
    name: str = ""
    policy: Policy | None = None
    bound_pods: tuple[BoundPod, ...] | Unread = Unread("pods with devices", _FILES, A_RUN)
    readiness: HttpResponse | Unread = Unread("/readyz of the webhook", _FILES, A_RUN)
    metrics: HttpResponse | Unread = Unread("metrics of the API server", _FILES, A_RUN)
    complaints: tuple[str, ...] = ()

    def all(self, kind: ObjectKind) -> tuple[Object, ...]:
        """All objects of a kind that were read."""
        return self.objects.get(kind, ())

    def gap(self, kind: ObjectKind, namespace: str = EVERYWHERE) -> Unread | None:
        """Why not all objects of a kind are known; None if they are."""
        found = [self.gaps[kind, where] for where in (namespace, EVERYWHERE) if (kind, where) in self.gaps]
        if None in found:
            return None
        where = f" in {namespace}" if namespace else ""
        return next(iter(found), Unread(f"{kind.plural}{where}", "not looked at", f"list on {kind.plural}{where}"))

    def find(self, kind: ObjectKind, namespace: str, name: str) -> Object | Unread | None:
        """One object; None if it does not exist."""
        for found in self.all(kind):
            if name_of(found) == name and namespace_of(found) == namespace:
                return found
        gap = self.gap(kind, namespace)
        if gap is None:
            return None
        place = f"{namespace}/{name}" if namespace else name
        return Unread(f"{kind} {place}", gap.why, gap.needs)


def kept(kind: ObjectKind, raw: Object) -> Object:
    """The part of an object that checks read: of a Secret no private key, of a node no list of images; pending pods whole."""
    if kind is ObjectKind.SECRET:
        data = {key: value for key, value in obj(raw, "data").items() if key in _PUBLIC}
        return {"metadata": {"name": name_of(raw), "namespace": namespace_of(raw)}, "data": data}
    if kind is ObjectKind.CONFIG_MAP:
        metadata: Object = {"name": name_of(raw), "namespace": namespace_of(raw)}
        writes = [{"time": text(write, "time")} for write in objs(raw, "metadata", "managedFields")]
        metadata |= {"creationTimestamp": text(raw, "metadata", "creationTimestamp"), "managedFields": writes}
        return {"metadata": metadata, "data": {key: text(raw, "data", key) for key in obj(raw, "data")}}
    found: Object = raw
    if kind is ObjectKind.NODE:
        found = cut_node(raw)
    elif kind is ObjectKind.POD_GROUP:
        found = only(raw, _POD_GROUP)
    elif kind is ObjectKind.POD and text(raw, "status", "phase") != "Pending":
        found = cut_pod(raw)
    return found
