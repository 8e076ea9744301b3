"""What is looked at: objects as the API server has them, and what could not be seen of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from webhook.doctor.reading import Object, name_of, namespace_of, table, tables, text
from webhook.policy.policy import Policy

EVERYWHERE = ""  # as a namespace: of all namespaces, or of none

_NODE_METADATA = ("name", "labels", "annotations")
_PUBLIC = ("tls.crt", "ca.crt")  # of a Secret; its keys are never kept


class Kind(StrEnum):
    """The objects that are looked at."""

    NODE = "Node"
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"  # noqa: S105  # the name of a kind
    SERVICE = "Service"
    DAEMON_SET = "DaemonSet"
    DEPLOYMENT = "Deployment"
    ENDPOINT_SLICE = "EndpointSlice"
    MUTATING = "MutatingWebhookConfiguration"
    VALIDATING = "ValidatingWebhookConfiguration"

    @property
    def plural(self) -> str:
        """As the API and kubectl call them."""
        return f"{self.lower()}s"

    @property
    def namespaced(self) -> bool:
        """Whether they live in namespaces."""
        return self not in (Kind.NODE, Kind.MUTATING, Kind.VALIDATING)


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be looked at.

    Attributes:
        what: was to be seen.
        why: it was not.
        needs: what would show it.
    """

    what: str
    why: str
    needs: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What an HTTP server said."""

    status: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of a cluster.

    Attributes:
        now: the instant at which certificates are judged.
        objects: by kind.
        complete: kinds with a namespace of which all objects are known, so that an absent one is not there.
        gaps: kinds with a namespace of which not all are known, and why.
        namespace, name: of the webhook's Service, as the operator gave them; empty: what its configurations call.
        policy: what the operator gave by hand; None: what stands in the cluster.
        readiness: the webhook's own answer to `/readyz`.
        metrics: what the API server counts.
    """

    now: datetime
    objects: Mapping[Kind, tuple[Object, ...]]
    complete: frozenset[tuple[Kind, str]] = frozenset()
    gaps: Mapping[tuple[Kind, str], Unread] = field(default_factory=lambda: MappingProxyType({}))
    namespace: str = ""
    name: str = ""
    policy: Policy | None = None
    readiness: Answer | Unread
    metrics: Answer | Unread

    def all(self, kind: Kind) -> tuple[Object, ...]:
        """All that were seen of a kind."""
        return self.objects.get(kind, ())

    def gap(self, kind: Kind, namespace: str = EVERYWHERE) -> Unread | None:
        """Why not all objects of a kind are known; None if they are."""
        if not self.complete.isdisjoint({(kind, namespace), (kind, EVERYWHERE)}):
            return None
        found = self.gaps.get((kind, namespace)) or self.gaps.get((kind, EVERYWHERE))
        where = f" in {namespace}" if namespace else ""
        return found or Unread(f"{kind.plural}{where}", "not looked at", f"list on {kind.plural}{where}")

    def find(self, kind: Kind, namespace: str, name: str) -> Object | Unread | None:
        """One object; None if there is none."""
        for found in self.all(kind):
            if name_of(found) == name and namespace_of(found) == namespace:
                return found
        gap = self.gap(kind, namespace)
        if gap is None:
            return None
        place = f"{namespace}/{name}" if namespace else name
        return Unread(f"{kind} {place}", gap.why, gap.needs)


def kept(kind: Kind, raw: Object) -> Object:
    """What is kept of an object: of a Secret no private key, of a node no list of images."""
    if kind is Kind.SECRET:
        data = table(raw, "data")
        public = {key: data[key] for key in _PUBLIC if key in data}
        return {"metadata": {"name": name_of(raw), "namespace": namespace_of(raw)}, "data": public}
    if kind is Kind.NODE:
        metadata, status = table(raw, "metadata"), table(raw, "status")
        return {
            "metadata": {key: metadata[key] for key in _NODE_METADATA if key in metadata},
            "spec": {"taints": tables(raw, "spec", "taints")},
            "status": {key: table(status, key) for key in ("capacity", "allocatable")},
        }
    if kind is Kind.CONFIG_MAP:
        metadata = {"name": name_of(raw), "namespace": namespace_of(raw)}
        return {"metadata": metadata, "data": {key: text(raw, "data", key) for key in table(raw, "data")}}
    return raw
