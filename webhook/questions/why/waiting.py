"""Pods that wait, with what is needed to explain them: from files, or from the API server."""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from webhook import names
from webhook.errors import ClusterError, ConfigError
from webhook.inputs.documents import Document
from webhook.live.cluster import FilePods, LiveCluster, LiveSource
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
from webhook.settings.table import NODES, PODS

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

    def is_in(self, objects: LiveObjects) -> bool:
        """Whether the object is a pod that waits."""
        return self.kind is POD and self.key in objects.waiting

    def __str__(self) -> str:
        volcano = "Volcano " if self.kind.group == VCJOB_GROUP else ""
        return f"{volcano}{'pod' if self.kind is POD else self.kind.kind} {self.key[1]} in namespace {self.key[0]}"


def paths_of(kind: WorkloadKind, key: Key) -> Iterator[str]:
    """Where the API server has an object, in each version of its group, the latest first."""
    for version in reversed(kind.versions):
        api = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        yield f"{api}/namespaces/{key[0]}/{kind.plural}/{key[1]}"


@dataclass(frozen=True, slots=True)
class WaitingState:
    """A cluster at one moment.

    Attributes:
        live: what live pods leave of the devices.
        objects: the pods that wait, and the object to explain.
        explained: what the list of waiting pods says of those that are alike, as far as that has been found out.
    """

    live: LiveCluster
    objects: LiveObjects
    explained: dict[Hashable, Any] = field(default_factory=dict)

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
    """What live pods leave of the devices, the state that was made of it, and until when the statuses of its nodes count."""

    live: LiveCluster
    state: WaitingState
    until: float


class FileSource:
    """Pods, PodGroups and Volcano Jobs of files, as kubectl prints them."""

    def __init__(
        self,
        pods: FilePods,
        live: LiveSource,
        nodes: Callable[[], Iterable[Any]],
        warn: Warn,
        seconds: float = KEEP_SECONDS,
    ) -> None:
        """Prepare.

        Args:
            pods: the pods.
            live: what they leave of the devices.
            nodes: the nodes as they are.
            warn: what to do with a warning.
            seconds: after which the nodes may have changed while the settings have not.
        """
        self._seconds = seconds
        self._pods = pods
        self._live = live
        self._nodes = nodes
        self._warn = warn
        self._kept: _Kept | None = None

    def waiting(self, step: Callable[[], None] = lambda: None) -> WaitingState:
        """The cluster of the files: the same one until they, the settings or the statuses of the nodes have changed."""
        objects, live, kept = self._pods.objects(step), self._live(), self._kept
        same = kept is not None and kept.live is live and kept.state.objects is objects
        if kept is None or not same or kept.until < time.monotonic():
            state = self._state(live, objects)
            found = state.live.statuses
            locked = any(status.locked for status in found.values())  # until a time that passes
            if kept is not None and same and not locked and found == kept.state.live.statuses:
                state = kept.state
            self._kept = kept = _Kept(live, state, time.monotonic() + (KEEP_SECONDS if locked else self._seconds))
        return kept.state

    def read(
        self, wanted: Wanted | None, step: Callable[[], None] = lambda: None, *, keeps_running: bool = False
    ) -> WaitingState:
        """The cluster of the files, which are read again only once they have changed; `step` is called for each object."""
        known = self._pods.known
        if not keeps_running and (wanted is None or (known is not None and wanted.is_in(known))):
            return self.waiting(step)
        inputs, snapshot = self._live.settings()
        found = LiveObjects(snapshot, wanted={wanted.object_key: None} if wanted else {}, keeps_running=keeps_running)
        objects = self._pods.read(found, step)
        return self._state(LiveCluster(inputs, snapshot, objects.bound), objects)

    def whole(self) -> WaitingState:
        """The cluster of the files."""
        return self.read(None, keeps_running=True)

    def _state(self, live: LiveCluster, objects: LiveObjects) -> WaitingState:
        if not objects.knows_groups and any(map(group_of, objects.waiting.values())):
            self._warn(
                "the files have no PodGroups, so gangs and queues are unknown; add what `kubectl get podgroups -A -o json` "
                "prints"
            )
        return WaitingState(live.with_statuses(statuses(self._nodes())), objects)


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
