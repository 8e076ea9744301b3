"""Pods that wait, with what is needed to explain them: from files, or from the API server."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from webhook import names
from webhook.errors import ClusterError, ConfigError
from webhook.inputs.documents import Document
from webhook.inputs.files import STANDARD_INPUT
from webhook.inputs.objects import ObjectFiles
from webhook.live.cluster import LiveCluster
from webhook.live.objects import (
    Key,
    LiveObjects,
    NodeStatus,
    ObjectKey,
    controller_key,
    group_of,
    key_of,
    object_key,
    read_node_status,
    read_pod_group,
)
from webhook.pod.workload_kinds import JOB, POD, VCJOB_GROUP, WorkloadKind
from webhook.questions.why.subject import WaitingObject
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.table import NODES, PODS
from webhook.snapshot import Snapshot

if TYPE_CHECKING:
    from webhook.cluster.client import Client  # only --cluster needs the Kubernetes client

JOBS = "/apis/batch/v1/jobs"
ALL_PODGROUPS = f"/apis/{names.QUEUE_API}/podgroups"
PODGROUPS = f"/apis/{names.QUEUE_API}/namespaces/{{}}/podgroups/{{}}"
PODS_OF = "/api/v1/namespaces/{}/pods"
PENDING = {"fieldSelector": "spec.nodeName=,status.phase=Pending"}
STARTED = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
PAGE = 500  # objects; of 5 KiB they make 2.5 MiB
MAX_READ = 200  # controllers that are read to find the pods of one
KEEP_SECONDS = 15.0  # the statuses of the nodes, between two questions

Settings = Callable[[], tuple[SnapshotInputs, Snapshot]]
Warn = Callable[[str], None]


class Wanted(NamedTuple):
    """The object to explain: a pod, or a workload.

    Attributes:
        key: its namespace and name.
        kind: its kind.
    """

    key: Key
    kind: WorkloadKind = POD

    @property
    def object_key(self) -> ObjectKey:
        """What tells it from all others."""
        return *self.kind.key, *self.key

    @property
    def paths(self) -> Iterator[str]:
        """Where the API server has it, in each version of its group."""
        return paths_of(self.kind, self.key)

    def __str__(self) -> str:
        volcano = "Volcano " if self.kind.group == VCJOB_GROUP else ""
        return f"{volcano}{'pod' if self.kind is POD else self.kind.kind} {self.key[1]} in namespace {self.key[0]}"


def paths_of(kind: WorkloadKind, key: Key) -> Iterator[str]:
    """Where the API server has an object, in each version of its group, the latest first."""
    for version in reversed(kind.versions):
        api = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        yield f"{api}/namespaces/{key[0]}/{kind.plural}/{key[1]}"


class WaitingState(NamedTuple):
    """A cluster at one moment.

    Attributes:
        live: what live pods leave of the devices.
        objects: the pods that wait, and the object to explain.
    """

    live: LiveCluster
    objects: LiveObjects

    def has(self, wanted: Wanted) -> bool:
        """Whether the object is a pod that waits."""
        return wanted.kind is POD and wanted.key in self.objects.waiting

    def subject(self, wanted: Wanted) -> WaitingObject:
        """The object to explain, with the pods that start together with it.

        Raises:
            ConfigError: it does not exist.
        """
        raw = self.objects.wanted.get(wanted.object_key)
        if raw is None and wanted.kind is POD:
            raw = self.objects.waiting.get(wanted.key)
        if raw is None:
            other = "; a Job of Volcano is vcjob/NAME" if wanted.kind.key == JOB else ""
            raise ConfigError(f"there is no {wanted}; check the name and the namespace{other}")
        return self.existing(Document(str(wanted), raw))

    def existing(self, document: Document) -> WaitingObject:
        """An object of the cluster, with the pods that start together with it."""
        raw, objects = document.value, self.objects
        key = object_key(raw)
        waiting = objects.pods_of(key) if key[1] != "Pod" else []
        groups = {group_of(pod) for pod in waiting}
        own = group_of(raw) or (groups.pop() if len(groups) == 1 else "")
        if not own:
            return WaitingObject(document, True, waiting, {"": objects.started_of(key)})
        at = key[2], own
        group = objects.groups.get(at)
        lacks = next(filter(None, map(objects.lacks_group, (raw, *waiting))), "")
        return WaitingObject(document, True, objects.siblings(at), objects.started[at], group, lacks_group=lacks)


class WaitingSource(Protocol):
    """Where waiting pods come from."""

    def waiting(self) -> WaitingState:
        """The cluster as it is now, with all pods that wait.

        Raises:
            WebhookError: it cannot be read.
        """

    def read(self, wanted: Wanted | None) -> WaitingState:
        """The cluster as it is now, with an object, if it exists, and the pods that start together with it.

        Raises:
            WebhookError: it cannot be read.
        """

    def whole(self) -> WaitingState:
        """The cluster as it is now, with all pods that wait for devices or hold some, as they are.

        Raises:
            WebhookError: it cannot be read.
        """


class _Kept(NamedTuple):
    """What files had, how they were then, the settings, and until when the statuses of the nodes count."""

    files: Sequence[object]
    snapshot: Snapshot
    state: WaitingState
    until: float


def _signature(paths: Sequence[str]) -> Sequence[object]:
    """Changes when one of the files does; empty where that cannot be known."""
    try:
        found = [Path(path).stat() for path in paths if path != STANDARD_INPUT]
    except OSError:
        return ()
    return [(one.st_mtime_ns, one.st_size, one.st_ino) for one in found] if len(found) == len(paths) else ()


class FileSource:
    """Pods, PodGroups and Volcano Jobs of files, as kubectl prints them."""

    def __init__(
        self, paths: Sequence[Path], settings: Settings, nodes: Callable[[], Iterable[Any]], warn: Warn
    ) -> None:
        """Take the files, the settings in use, the nodes as they are, and what to do with a warning."""
        self._warn = warn
        self._paths = [str(path) for path in paths]
        self._settings = settings
        self._nodes = nodes
        self._source: ObjectFiles | None = None
        self._kept: _Kept | None = None

    def share(self) -> float | None:
        """How much of the files has been read, from 0 to 1; None if that is not known."""
        return self._source.share if self._source is not None else None

    def waiting(self) -> WaitingState:
        """The cluster of the files."""
        return self.read(None)

    def read(
        self, wanted: Wanted | None, step: Callable[[], None] = lambda: None, *, keeps_running: bool = False
    ) -> WaitingState:
        """The cluster of the files, which are read again only once they have changed; `step` is called for each object."""
        inputs, snapshot = self._settings()
        files = _signature(self._paths)
        kept = self._still_kept(files, snapshot)
        if kept is not None and not keeps_running and (wanted is None or kept.has(wanted)):
            return kept
        objects = self._objects(snapshot, wanted, step, keeps_running=keeps_running)
        live = LiveCluster(inputs, snapshot, objects.bound)
        state = WaitingState(live.with_statuses(statuses(self._nodes())), objects)
        if files and wanted is None and not keeps_running:
            self._kept = _Kept(files, snapshot, state, time.monotonic() + KEEP_SECONDS)
        return state

    def _still_kept(self, files: Sequence[object], snapshot: Snapshot) -> WaitingState | None:
        """What was read of the same files under the same settings, with statuses of the nodes of the last seconds."""
        kept = self._kept
        if kept is None or kept.files != files or kept.snapshot is not snapshot:
            return None
        if kept.until < time.monotonic():
            live = kept.state.live.with_statuses(statuses(self._nodes()))
            state = kept.state._replace(live=live)
            self._kept = kept = kept._replace(state=state, until=time.monotonic() + KEEP_SECONDS)
        return kept.state

    def whole(self) -> WaitingState:
        """The cluster of the files."""
        return self.read(None, keeps_running=True)

    def _objects(
        self,
        snapshot: Snapshot,
        wanted: Wanted | None,
        step: Callable[[], None] = lambda: None,
        *,
        keeps_running: bool = False,
    ) -> LiveObjects:
        objects = LiveObjects(snapshot, wanted={wanted.object_key: None} if wanted else {}, keeps_running=keeps_running)
        complaints: list[str] = []
        self._source = ObjectFiles(self._paths, complaints.append)
        for document in self._source:
            step()
            objects.add(document.value)
        if complaints:
            raise ConfigError("; ".join(complaints))
        objects.knows_groups = bool(objects.groups)
        if not objects.knows_groups and any(map(group_of, objects.waiting.values())):
            self._warn(
                "the files have no PodGroups, so gangs and queues are unknown; add what `kubectl get podgroups -A -o json` "
                "prints"
            )
        return objects


class ClusterSource:
    """The waiting pods of an API server, read at each call."""

    def __init__(self, connect: Callable[[], "Client"], live: Callable[[], LiveCluster], warn: Warn) -> None:
        """Take how to make a client, what live pods leave of the devices now, and what to do with a warning."""
        self._connect = connect
        self._live = live
        self._warn = warn
        self._statuses: tuple[float, Mapping[str, NodeStatus]] | None = None

    def waiting(self) -> WaitingState:
        """The cluster as it is now, with all pods that wait, and of gangs also those that have started."""
        live, client = self._live(), self._connect()
        objects = LiveObjects(live.snapshot)
        for raw in client.list(PODS, PENDING, PAGE):
            objects.add(raw)
        groups = {(key[0], group_of(raw)) for key, raw in objects.waiting.items() if group_of(raw)}
        if groups:
            self._add_pod_groups(client, objects)
        gangs = {key for key in groups if key in objects.groups and objects.groups[key].minimum > 1}
        for namespace in sorted({namespace for namespace, _ in gangs}):
            for raw in client.list(PODS_OF.format(namespace), STARTED, PAGE):
                objects.add(raw)
        return self._state(client, live, objects)

    def read(self, wanted: Wanted | None) -> WaitingState:
        """The cluster as it is now."""
        live, client = self._live(), self._connect()
        objects = LiveObjects(live.snapshot)
        if wanted is not None:
            self._read_object(client, objects, wanted)
        return self._state(client, live, objects)

    def whole(self) -> WaitingState:
        """The cluster as it is now, with all its pods."""
        live, client = self._live(), self._connect()
        objects = LiveObjects(live.snapshot, keeps_running=True)
        for raw in client.list(PODS, limit=PAGE):
            objects.add(raw)
        self._add_pod_groups(client, objects)
        if any(
            work[:2] == JOB for work in map(objects.work_of, chain(objects.waiting.values(), objects.running.values()))
        ):
            self._add_jobs(client, objects)
        return self._state(client, live.with_bound(objects.bound), objects)

    def _state(self, client: "Client", live: LiveCluster, objects: LiveObjects) -> WaitingState:
        if self._statuses is None or time.monotonic() - self._statuses[0] > KEEP_SECONDS:
            self._statuses = time.monotonic(), statuses(client.list(NODES))
        return WaitingState(live.with_statuses(self._statuses[1]), objects)

    def _read_object(self, client: "Client", objects: LiveObjects, wanted: Wanted) -> None:
        """The object, the pods of its namespace, and its PodGroup."""
        raw = _first(client, wanted.paths)
        if raw is None:
            return
        namespace, name = wanted.key
        objects.wanted[wanted.object_key] = raw
        for pod in client.list(PODS_OF.format(namespace)):
            objects.add(pod)
        if wanted.kind is not POD:
            self._read_owners(client, objects, name)
        own = group_of(raw) or next((group_of(pod) for pod in objects.pods_of(wanted.object_key) if group_of(pod)), "")
        if own:
            self._add_pod_group(client, objects, (namespace, own))

    @staticmethod
    def _read_owners(client: "Client", objects: LiveObjects, name: str) -> None:
        """The controllers of controllers of pods, where a name begins with that of the wanted one, as controllers name them."""
        kinds = objects.snapshot.policy.workload_kinds
        found = {controller_key(pod) for pod in objects.waiting.values()} | objects.started_by.keys()
        unread = [key for key in found if key is not None]
        for _ in range(MAX_READ):
            if not unread:
                return
            *_, top = objects.chain(unread.pop())
            kind = kinds.get(top[:2])
            if kind is None or top[3] == name or not top[3].startswith(name):
                continue
            try:
                owner = controller_key(_first(client, paths_of(kind, top[2:])) or {})
            except ClusterError as error:
                if error.status != HTTPStatus.FORBIDDEN:
                    raise
                continue
            if owner is not None:
                objects.owners[top] = owner
                unread.append(owner)

    def _add_pod_groups(self, client: "Client", objects: LiveObjects) -> None:
        try:
            for raw in client.list(ALL_PODGROUPS, limit=PAGE):
                objects.add(raw)
        except ClusterError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self._warn("PodGroups may not be listed, so gangs and queues are unknown")
            elif error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            objects.knows_groups = True

    def _add_jobs(self, client: "Client", objects: LiveObjects) -> None:
        """Read the Jobs: their pods do not show whether all of them run at the same time."""
        try:
            for raw in client.list(JOBS, limit=PAGE):
                objects.add(raw)
        except ClusterError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            self._warn("Jobs may not be listed, so the pods of each indexed Job count as a group that works together")

    def _add_pod_group(self, client: "Client", objects: LiveObjects, key: Key) -> None:
        """Read the PodGroup that a pod names, if there is one of this name."""
        try:
            objects.groups[key] = read_pod_group(client.get(PODGROUPS.format(*key)))
        except ConfigError:  # the pod's author chose a name that no PodGroup has
            pass
        except ClusterError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self._warn(f"PodGroup {'/'.join(key)} may not be read, so its gang is unknown")
                return
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        objects.knows_groups = True


def _first(client: "Client", paths: Iterable[str]) -> dict[str, Any] | None:
    """The object at the first path that has one; None if none has."""
    for path in paths:
        try:
            return client.get(path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    return None


def statuses(nodes: Iterable[Any]) -> dict[str, NodeStatus]:
    """What may keep pods off each node, whatever its devices are; equal ones are one object."""
    known: dict[NodeStatus, NodeStatus] = {}
    found = ((key_of(raw)[1], read_node_status(raw)) for raw in nodes)
    return {name: known.setdefault(status, status) for name, status in found}
