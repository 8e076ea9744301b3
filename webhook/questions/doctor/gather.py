"""Reads the facts: from the API server, or from files with what kubectl printed. Changes nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from webhook import names
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader
from webhook.errors import ClusterError, ConfigError
from webhook.inputs.documents import file_size, flattened, manifest_files
from webhook.inputs.files import parse_file, source_name
from webhook.lenient import at
from webhook.questions.doctor.facts import (
    A_RUN,
    EVERYWHERE,
    Facts,
    HttpResponse,
    Object,
    ObjectKind,
    Unread,
    kept,
    name_of,
    namespace_of,
)
from webhook.questions.doctor.setup import CONFIGURATIONS, entries, port, put_together, service
from webhook.questions.doctor.volcano import CONFIG_NAMESPACE_VARIABLE, ImageWorkload, SettingMap
from webhook.settings.table import DEVICE_CONFIG_NAMESPACES

if TYPE_CHECKING:
    from webhook.cluster.client import Client  # loading the Kubernetes client takes a second

MAX_BYTES = 1 << 30  # of all files: those of 5,000 nodes and 50,000 pods have some 600 MiB
MAX_TEXT = 64 << 20  # the metrics of a large API server take some MiB

_WITHOUT_KEY = "`kubectl get secret -n NAMESPACE NAME -o json | jq 'del(.data[\"tls.key\"])'`"

_GROUPS: Mapping[str, Sequence[ObjectKind]] = {
    "apps/v1": (ObjectKind.DAEMON_SET, ObjectKind.DEPLOYMENT),
    "discovery.k8s.io/v1": (ObjectKind.ENDPOINT_SLICE,),
    "admissionregistration.k8s.io/v1": (
        *CONFIGURATIONS,
        ObjectKind.VALIDATING_POLICY,
        ObjectKind.VALIDATING_POLICY_BINDING,
    ),
    "rbac.authorization.k8s.io/v1": [kind for kind in ObjectKind if "Role" in kind],
    names.QUEUE_API: (ObjectKind.QUEUE, ObjectKind.POD_GROUP),
    names.DEVICE_CLASS_API: (ObjectKind.DEVICE_CLASS,),
}
_API = {kind: f"/apis/{group}" for group, kinds in _GROUPS.items() for kind in kinds}
_FIRST = (
    *[kind for kind in ObjectKind if not kind.namespaced],
    ObjectKind.DEPLOYMENT,
    ObjectKind.DAEMON_SET,
    ObjectKind.POD_GROUP,
    ObjectKind.RESOURCE_QUOTA,
)
_MAY_BE_ABSENT = (ObjectKind.SECRET, ObjectKind.DEVICE_CLASS)  # an API server older than 1.34 has no DeviceClasses
_ALL: Mapping[str, str] = MappingProxyType({})
_PENDING = {"fieldSelector": "status.phase=Pending"}


# --- from files ---------------------------------------------------------------------------------------------------


def facts_from_files(
    paths: Sequence[str | Path], start: Facts, *, recursive: bool = True, most: int = MAX_BYTES
) -> Facts:
    """Read files, and all files in directories.

    Args:
        paths: files and directories; `-` for standard input.
        start: what the operator gave.
        recursive: read the directories below a directory, too.
        most: how many bytes of all files are read.

    Raises:
        ConfigError: a directory cannot be read, or nothing holds an object that checks read.
    """
    source = ", ".join(source_name(str(path)) for path in paths)
    collection = _Collection()
    complaints: list[str] = []
    left = most
    for file in [file for path in paths for file in manifest_files(path, recursive=recursive)]:
        try:
            for document in parse_file(file, left, _cut):
                collection.add(document)
            left -= file_size(file)
        except ConfigError as error:
            complaints.append(str(error))
    if not collection.objects and complaints:
        raise ConfigError("; ".join(complaints))
    if not collection.objects:
        raise ConfigError(
            f"{source}: holds no object that the doctor examines; `vgpu-webhook doctor --help` lists them"
        )
    return collection.facts(source, replace(start, complaints=tuple(complaints)))


def _cut(raw: Any) -> Any:
    """What checks read of an item of a list, with its kind; nothing of kinds that they do not read."""
    kind = at(raw, "kind")
    if not isinstance(kind, str) or kind.endswith("List"):
        return raw  # the list says what it is, or it is a list itself
    return {"kind": kind, **kept(ObjectKind(kind), raw)} if kind in list(ObjectKind) else None


@dataclass(slots=True)
class _Collection:
    """The objects of all files."""

    objects: dict[ObjectKind, dict[tuple[str, str], Object]] = field(default_factory=dict)
    known: set[tuple[ObjectKind, str]] = field(default_factory=set)

    def add(self, document: Any) -> None:
        """Add the objects of a document. A List holds all objects of its kind in its namespaces."""
        listed: dict[ObjectKind, set[str]] = {}
        for inside, raw in flattened(document):
            if not isinstance(raw, dict) or raw.get("kind") not in list(ObjectKind):
                continue
            kind = ObjectKind(raw["kind"])
            key = (namespace_of(raw) if kind.namespaced else EVERYWHERE, name_of(raw))
            self.objects.setdefault(kind, {}).setdefault(key, kept(kind, raw))
            if inside:
                listed.setdefault(kind, set()).add(key[0])
        for kind, namespaces in listed.items():
            everywhere = len(namespaces) > 1  # kubectl prints several of them only with -A
            self.known |= {(kind, namespace) for namespace in ({EVERYWHERE} if everywhere else namespaces)}

    def facts(self, source: str, start: Facts) -> Facts:
        gaps = {
            (kind, EVERYWHERE): Unread(kind.plural, f"not in {source}", _command(kind))
            if kind not in self.objects
            else Unread(kind.plural, f"{source} does not show whether it has those of all namespaces", A_RUN)
            for kind in ObjectKind
        }
        objects = {kind: tuple(found.values()) for kind, found in self.objects.items()}
        facts = replace(start, objects=objects, gaps={**gaps, **dict.fromkeys(self.known)})
        pods, reader = facts.all(ObjectKind.POD), BoundPodReader(put_together(facts).config)
        bound = tuple([pod for raw in pods if (pod := reader.read(raw)) is not None])
        return replace(facts, bound_pods=bound if pods else gaps[ObjectKind.POD, EVERYWHERE])


def _command(kind: ObjectKind) -> str:
    if kind is ObjectKind.SECRET:
        return _WITHOUT_KEY
    return f"`kubectl get {kind.plural}{' -A' if kind.namespaced else ''} -o yaml`"


# --- from the API server ------------------------------------------------------------------------------------------


def facts_from_cluster(client: "Client", start: Facts) -> Facts:
    """Read what checks need from the API server, and close the client.

    Args:
        client: of the API server.
        start: what the operator gave.

    Raises:
        ClusterError: the API server does not answer, or does not accept the credentials.
    """
    try:
        return _Gathering(client, start).gather()
    finally:
        client.close()


class _Gathering:
    def __init__(self, client: "Client", start: Facts) -> None:
        self._client = client
        self._objects: dict[ObjectKind, tuple[Object, ...]] = {}
        self._gaps: dict[tuple[ObjectKind, str], Unread | None] = {}
        self._start = start

    def gather(self) -> Facts:
        """Read; earlier objects decide where to look for later ones."""
        for kind in _FIRST:
            self._list(kind)
        namespace, name = service(self._facts)
        self._list(ObjectKind.SERVICE, namespace)
        self._list(ObjectKind.ENDPOINT_SLICE, namespace)
        self._list(ObjectKind.ROLE, namespace)
        self._list(ObjectKind.ROLE_BINDING, namespace)
        self._list(ObjectKind.POD, query=_PENDING)
        self._get(ObjectKind.SECRET, namespace, names.TLS_SECRET)
        looked: set[str] = set()
        while fresh := _config_namespaces(self._facts) - looked:
            for wanted in sorted(fresh):
                self._list(ObjectKind.CONFIG_MAP, wanted)
            looked |= fresh
        called = next(map(port, entries(self._facts, ObjectKind.VALIDATING).values()), 443)
        proxy = f"{api_path(ObjectKind.SERVICE, namespace)}/https:{quote(name, safe='')}:{called}/proxy/readyz"
        readiness = self._text(proxy, "/readyz of the webhook", f"get on services/proxy in {namespace}")
        metrics = self._text("/metrics", "metrics of the API server", "get on the URL /metrics")
        return replace(self._facts, bound_pods=self._bound_pods(), readiness=readiness, metrics=metrics)

    @property
    def _facts(self) -> Facts:
        return replace(self._start, objects=self._objects, gaps=self._gaps)

    def _list(self, kind: ObjectKind, namespace: str = EVERYWHERE, query: Mapping[str, str] = _ALL) -> None:
        what, path = f"{kind.plural} in {namespace}" if namespace else kind.plural, api_path(kind, namespace)
        self._read(kind, namespace, lambda: self._client.list(path, query), Unread(what, "", f"list on {what}"))

    def _get(self, kind: ObjectKind, namespace: str, name: str) -> None:
        what, path = f"{kind} {namespace}/{name}", f"{api_path(kind, namespace)}/{name}"
        needs = f"get on {kind.plural}/{name} in {namespace}"
        self._read(kind, namespace, lambda: [self._client.get(path)], Unread(what, "", needs))

    def _read(self, kind: ObjectKind, namespace: str, read: Callable[[], Iterable[Object]], unread: Unread) -> None:
        """Continue with the rest if this cannot be read, unless nothing has been read and nothing will be."""
        objects: list[Object] = []
        try:
            objects += (kept(kind, raw) for raw in read())
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND or kind not in _MAY_BE_ABSENT:
                refused = error.status == HTTPStatus.UNAUTHORIZED
                if refused or (error.status in (0, HTTPStatus.OK) and None not in self._gaps.values()):
                    raise
                self._gaps[kind, namespace] = replace(unread, why=_why(error))
                return
        self._objects[kind] = (*self._objects.get(kind, ()), *objects)
        self._gaps[kind, namespace] = None

    def _bound_pods(self) -> tuple[BoundPod, ...] | Unread:
        from webhook.cluster.pods import list_bound_pods  # noqa: PLC0415  # loads the Kubernetes client

        try:
            return tuple(list_bound_pods(self._client, BoundPodReader(put_together(self._facts).config)))
        except ClusterError as error:
            return Unread("pods with devices", _why(error), "list on pods")

    def _text(self, path: str, what: str, needs: str) -> HttpResponse | Unread:
        try:
            return HttpResponse(200, self._client.text(path, MAX_TEXT))
        except ClusterError as error:
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                return HttpResponse(error.status, str(error))
            return Unread(what, _why(error), needs)


def api_path(kind: ObjectKind, namespace: str) -> str:
    """The path of a collection; an empty namespace for all of them."""
    inside = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{_API.get(kind, '/api/v1')}{inside}/{kind.plural}"


def _why(error: ClusterError) -> str:
    return "not allowed (403)" if error.status == HTTPStatus.FORBIDDEN else str(error)


def _config_namespaces(facts: Facts) -> set[str]:
    """Where to look for ConfigMaps; the scheduler's may name another namespace, as may the device plugin."""
    setup, found = put_together(facts), {*DEVICE_CONFIG_NAMESPACES, service(facts)[0]}
    if isinstance(setup.scheduler, ImageWorkload):
        found.add(namespace_of(setup.scheduler.raw))
    if isinstance(setup.plugin, ImageWorkload):
        found.add(setup.plugin.variable(CONFIG_NAMESPACE_VARIABLE) or EVERYWHERE)
    if isinstance(setup.conf, SettingMap):
        found.add(setup.conf.value.config_place[0])
    return found - {EVERYWHERE}
