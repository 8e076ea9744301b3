"""The objects in the cluster: reads the state and writes the actions of a plan, one object at a time.

The order of reading matters: the serving Secret, the webhook configurations, the authority Secret. A write succeeds only
if its object has not changed since it was read. So a run that would sign with a CA that another run has retired has an
outdated serving Secret, and a run that would drop a CA that another run has introduced has an outdated configuration:
both fail and read again.

Objects stay JSON, so that fields that this program does not use are written back unchanged.
"""

import base64
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from certs import binding
from certs.errors import Absent, CertsError, Conflict, Uncalled, explained
from certs.pki import CLOCK_SKEW
from certs.plan import AUTHORITY, SERVING, Action, apply
from certs.state import ClusterState, Configuration, Observed, Secret
from webhook import names
from webhook.cluster.client import APPLY_PATCH, JSON_PATCH, Client, Object

_FIELD_MANAGER = "vgpu-webhook-certs"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_COLLECTIONS = {
    "MutatingWebhookConfiguration": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": f"{_ADMISSION}/validatingwebhookconfigurations",
}
KINDS = tuple(_COLLECTIONS)
FRESH_SECONDS = 60.0  # less than the serve lag, so that a deleted Secret is not created again from an outdated read

_CERT_MANAGER = "cert-manager.io/"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the objects."""

    namespace: str = names.WEBHOOK
    serving: str = names.TLS_SECRET
    authority: str = names.CA_SECRET
    webhooks: str = names.WEBHOOK

    def describe(self, target: str) -> str:
        """The kind and name of a target of a plan, for people."""
        if target in KINDS:
            return f"{target} {self.webhooks}"
        return f"Secret {self.namespace}/{self.authority if target == AUTHORITY else self.serving}"


@dataclass(frozen=True, slots=True)
class ReadState:
    """All objects, as read from the API server.

    Attributes:
        now: by the clock of the API server, which it uses to verify certificates.
        objects: the unchanged JSON, by target.
        at: when the read began (time.monotonic).
    """

    state: ClusterState
    now: datetime
    objects: Mapping[str, Object] = field(repr=False)
    at: float


class Cluster:
    """The objects of one webhook in one cluster."""

    def __init__(self, client: Client, names: Names, fresh_seconds: float = FRESH_SECONDS) -> None:
        self.names = names
        self._client = client
        self._fresh_seconds = fresh_seconds

    def read(self) -> ReadState:
        """Read all objects.

        Raises:
            CertsError: they could not be read.
        """
        began = time.monotonic()
        every = [(target, self._get(target)) for target in (SERVING, *KINDS, AUTHORITY)]
        objects = {target: one for target, one in every if one is not None}
        secrets = {target: _read_secret(one) for target, one in objects.items() if target not in KINDS}
        configurations = {kind: _read_configuration(objects[kind]) for kind in KINDS if kind in objects}
        state = ClusterState(secrets.get(AUTHORITY), secrets.get(SERVING), configurations)
        return ReadState(state, self._client.clock or datetime.now(UTC), objects, began)

    def objections(self, reading: ReadState) -> Iterator[str]:
        """Reasons not to write; each sentence includes what to do instead."""
        here = datetime.now(UTC)
        if abs(here - reading.now) > CLOCK_SKEW:
            yield (
                f"the local clock shows {here:%Y-%m-%d %H:%M}, the API server's {reading.now:%Y-%m-%d %H:%M} (UTC): "
                "correct the one that is wrong"
            )
        for target, obj in reading.objects.items():
            name = self.names.describe(target)
            if any(key.startswith(_CERT_MANAGER) for key in obj["metadata"].get("annotations") or {}):
                yield (
                    f"cert-manager manages {name}, according to its annotations: let cert-manager manage all "
                    "certificates, or remove the annotations and the Certificate that makes it write there"
                )

    def write(self, reading: ReadState, observed: Observed, action: Action) -> None:
        """Do one action of the plan for what was read.

        Raises:
            Conflict: the object has changed since, or was read too long ago.
            CertsError: it could not be written.
        """
        if time.monotonic() - reading.at > self._fresh_seconds:
            raise Conflict(f"cannot write {self.names.describe(action.target)}: it was read too long ago")
        after, existing = apply(observed, action), reading.objects.get(action.target)
        if action.target in KINDS:
            self._patch(action.target, _bundle_patch(after.configurations[action.target]))
            return
        secret = after.authority if action.target == AUTHORITY else after.serving
        data = {key: base64.b64encode(content).decode() for key, content in (secret.data if secret else {}).items()}
        if existing is None:
            self._create(action.target, data)
        elif existing.get("immutable"):
            raise CertsError(f"{self.names.describe(action.target)} is immutable: delete it, and run this again")
        else:  # with the resourceVersion that was read
            self._replace(action.target, {**existing, "data": data})

    def bind(self) -> list[str]:
        """Make the webhook configurations binding, if the API server gets a response from the webhook.

        Returns:
            A sentence for each configuration that was changed.

        Raises:
            Uncalled: the API server got no response; nothing was changed.
            Conflict: a configuration was changed after it was read.
            CertsError: they could not be read or written.
        """
        read = {kind: self._get(kind) for kind in KINDS}
        configurations = {kind: one for kind, one in read.items() if one and binding.rules_by_entry(one)}
        if not configurations:
            return []
        with explained(f"get Namespace {self.names.namespace}"):
            namespace = self._client.get(f"/api/v1/namespaces/{self.names.namespace}")["metadata"]
        owner = {"apiVersion": "v1", "kind": "Namespace", "name": namespace["name"], "uid": namespace["uid"]}
        patches = {kind: patch for kind, one in configurations.items() if (patch := binding.patch(one, owner))}
        if any(binding.unbound(one) for one in configurations.values()):
            if not binding.same_bundle(configurations.values()):
                raise Uncalled("the caBundles of the webhook configurations differ")
            self._probe()
        for kind, patch in patches.items():
            self._patch(kind, patch)
        return [
            f"{self.names.describe(kind)}: binding: the API server got a response from the webhook" for kind in patches
        ]

    def _get(self, target: str) -> Object | None:
        """An object; None if it does not exist."""
        try:
            with explained(f"get {self.names.describe(target)}"):
                return self._client.get(self._path(target))
        except Absent:
            return None

    def _create(self, target: str, data: Object) -> None:
        namespace, name, kind = self.names.namespace, self.names.serving, "kubernetes.io/tls"
        if target == AUTHORITY:
            name, kind = self.names.authority, "Opaque"
        metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": names.WEBHOOK}}
        secret = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "data": data}
        collection = self._path(target).rpartition("/")[0]
        absent = CertsError(
            f"namespace {namespace} does not exist: apply the manifests first, or name another with --namespace"
        )
        with explained(f"create {self.names.describe(target)}", absent):
            self._client.create(collection, secret, {"fieldManager": _FIELD_MANAGER})

    def _replace(self, target: str, secret: Object) -> None:
        place = self.names.describe(target)
        with explained(f"update {place}", Conflict(f"{place} was deleted meanwhile")):
            self._client.replace(self._path(target), secret, {"fieldManager": _FIELD_MANAGER})

    def _patch(self, kind: str, operations: list[Object]) -> None:
        place = self.names.describe(kind)
        with explained(f"patch {place}", Conflict(f"{place} was deleted meanwhile")):
            self._client.patch(self._path(kind), operations, JSON_PATCH, {"fieldManager": _FIELD_MANAGER})

    def _probe(self) -> None:
        """Make the API server call the webhook: through the Service, trusting only the caBundle."""
        namespace = self.names.namespace
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": names.PROBE_MAP}}
        query = {"dryRun": "All", "fieldManager": _FIELD_MANAGER, "force": "true"}
        with explained(f"apply ConfigMap {namespace}/{names.PROBE_MAP} as a dry run"):
            path = f"/api/v1/namespaces/{namespace}/configmaps/{names.PROBE_MAP}"
            warnings = self._client.patch(path, document, APPLY_PATCH, query)
        if not any(f"{names.PROBE_MAP}: " in warning for warning in warnings):
            raise Uncalled(
                f"it did not call the webhook for ConfigMap {namespace}/{names.PROBE_MAP}: apply the manifests again"
            )

    def _path(self, target: str) -> str:
        if target in KINDS:
            return f"{_COLLECTIONS[target]}/{self.names.webhooks}"
        name = self.names.authority if target == AUTHORITY else self.names.serving
        return f"/api/v1/namespaces/{self.names.namespace}/secrets/{name}"


def _read_secret(obj: Object) -> Secret:
    data = {key: _decoded(content) for key, content in (obj.get("data") or {}).items()}
    return Secret(data, obj["metadata"]["resourceVersion"], _written(obj["metadata"]))


def _read_configuration(obj: Object) -> Configuration:
    bundles = tuple(_decoded(webhook["clientConfig"].get("caBundle")) for webhook in obj.get("webhooks") or [])
    return Configuration(bundles, obj["metadata"]["resourceVersion"])


def _bundle_patch(wanted: Configuration) -> list[Object]:
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": wanted.version},
        *(
            {"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": base64.b64encode(bundle).decode()}
            for at, bundle in enumerate(wanted.bundles)
        ),
    ]


def _written(metadata: Object) -> datetime | None:
    """When a Secret's data last changed; without a record of that, when the Secret was created."""
    entries = metadata.get("managedFields") or []
    times = [entry.get("time") for entry in entries if "f:data" in (entry.get("fieldsV1") or {})]
    known = [datetime.fromisoformat(text) for text in [*times, metadata.get("creationTimestamp")] if text]
    return max(known, default=None)


def _decoded(content: Any) -> bytes:
    try:
        return base64.b64decode(content or "")
    except ValueError:
        return b""
