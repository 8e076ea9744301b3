"""Readers of a cluster as it is: what live pods leave of the devices, and the pods that wait; and the reader of files."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from webhook.devices.ledger import BoundPod
from webhook.errors import ConfigError
from webhook.inputs.documents import Complain, ObjectFiles
from webhook.inputs.files import Signature, signature
from webhook.lenient import text
from webhook.live.devices import LiveCluster
from webhook.live.objects import Key, LiveObjects, NodeStatus, ObjectKey, group_of, key_of, read_node_status
from webhook.pod.workload_kinds import POD, VCJOB_GROUP, WorkloadKind
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot

KEEP_SECONDS = 15.0  # the statuses of the nodes, between two questions

Settings: TypeAlias = Callable[[], tuple[SnapshotInputs, Snapshot]]
Statuses: TypeAlias = Mapping[str, NodeStatus]


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
class LiveState:
    """A cluster at one moment.

    Attributes:
        live: what live pods leave of the devices.
        objects: the pods that wait, and the object to explain.
        explained: what the list of waiting pods says of those that are alike, as far as that has been found out.
    """

    live: LiveCluster
    objects: LiveObjects
    explained: dict[Hashable, Any] = field(default_factory=dict)


class Reports(NamedTuple):
    """What to do with what is reported during a read.

    Attributes:
        warn: with a warning.
        step: with each object that is read.
        complain: with a file that cannot be read, before the next one is read; None if that is an error.
    """

    warn: Callable[[str], None]
    step: Callable[[], object] = lambda: None
    complain: Complain | None = None


class Reader(ABC):
    """Reads a cluster as it is. Safe in any thread.

    Attributes:
        settings: the settings in use: a snapshot, and what it was built from.
        reports: what to do with what is reported.
    """

    def __init__(self, settings: Settings, reports: Reports) -> None:
        """Take the settings, and what to do with reports; nothing is read yet."""
        self.settings = settings
        self.reports = reports
        self._lock = threading.Lock()
        self._computed: tuple[Snapshot, Hashable, LiveCluster] | None = None

    @property
    @abstractmethod
    def version(self) -> Hashable | None:
        """Of the pods that hold devices: another one after each change; None while they are not known."""

    @property
    def problem(self) -> str | None:
        """Why the pods are unknown or out of date, and what to do; None if they are up to date."""
        return None

    @property
    @abstractmethod
    def share(self) -> float | None:
        """How much of the pods has been read, from 0 to 1; None if that is not known."""

    @abstractmethod
    def pods(self) -> Sequence[BoundPod]:
        """The pods that hold devices.

        Raises:
            WebhookError: they cannot be read.
        """

    @abstractmethod
    def waiting(self) -> LiveState:
        """The cluster as it is now, with all pods that wait, and of gangs also those that have started.

        Raises:
            WebhookError: it cannot be read.
        """

    @abstractmethod
    def read(self, wanted: Wanted | None) -> LiveState:
        """The cluster as it is now, with an object, if it exists, and the pods that start together with it.

        Raises:
            WebhookError: it cannot be read.
        """

    @abstractmethod
    def whole(self) -> LiveState:
        """The cluster as it is now, with all pods that wait for devices or hold some, as they are.

        Raises:
            WebhookError: it cannot be read.
        """

    def stop(self) -> None:  # noqa: B027  # most follow nothing
        """Follow nothing any more; returns at once."""

    def live(self) -> LiveCluster:
        """What live pods leave now: the same one until nodes, settings or pods have changed.

        Raises:
            WebhookError: the pods are not known, or cannot be read.
        """
        with self._lock:
            version = self.version
            if version is None:
                raise ConfigError(self.problem or "nodes and pods are not read yet; try again in some seconds")
            inputs, snapshot = self.settings()
            if self._computed is None or self._computed[0] is not snapshot or self._computed[1] != version:
                self._computed = snapshot, version, LiveCluster(inputs, snapshot, self.pods())
            return self._computed[2]


class _Kept(NamedTuple):
    """What live pods leave of the devices, the state that was made of it, and until when the statuses of its nodes count."""

    live: LiveCluster
    state: LiveState
    until: float


class FileReader(Reader):
    """Pods, PodGroups and workloads of files, as kubectl prints them, which are read again only once they have changed."""

    def __init__(
        self,
        paths: Sequence[Path],
        settings: Settings,
        statuses: Callable[[], Statuses],
        reports: Reports,
        seconds: float = KEEP_SECONDS,
    ) -> None:
        """Prepare.

        Args:
            paths: the files.
            settings: as the attribute.
            statuses: those of the nodes.
            reports: as the attribute.
            seconds: after which the nodes may have changed while the settings have not.
        """
        super().__init__(settings, reports)
        self._paths = paths
        self._statuses = statuses
        self._seconds = seconds
        self._reading = threading.Lock()
        self._source: ObjectFiles | None = None
        self._read: tuple[Signature, LiveObjects] | None = None
        self._kept: _Kept | None = None

    @property
    def version(self) -> Signature:
        return signature(self._paths)

    @property
    def share(self) -> float | None:
        return self._source.share if self._source is not None else None

    def pods(self) -> Sequence[BoundPod]:
        return self._objects().bound

    def waiting(self) -> LiveState:
        """The cluster of the files: the same one until they, the settings or the statuses of the nodes have changed."""
        objects, live, kept = self._objects(), self.live(), self._kept
        same = kept is not None and kept.live is live and kept.state.objects is objects
        if kept is None or not same or kept.until < time.monotonic():
            state = self._state(live, objects)
            found = state.live.statuses
            locked = any(status.locked for status in found.values())  # until a time that passes
            if kept is not None and same and not locked and found == kept.state.live.statuses:
                state = kept.state
            self._kept = kept = _Kept(live, state, time.monotonic() + (KEEP_SECONDS if locked else self._seconds))
        return kept.state

    def read(self, wanted: Wanted | None) -> LiveState:
        known = self._known
        if wanted is None or (known is not None and wanted.is_in(known)):
            return self.waiting()
        return self._anew(wanted={wanted.object_key: None})

    def whole(self) -> LiveState:
        return self._anew(keeps_running=True)

    def _anew(self, **kept: Any) -> LiveState:
        inputs, snapshot = self.settings()
        objects = self._add_all(LiveObjects(snapshot, **kept))
        return self._state(LiveCluster(inputs, snapshot, objects.bound), objects)

    def _state(self, live: LiveCluster, objects: LiveObjects) -> LiveState:
        if not objects.knows_groups and any(map(group_of, objects.waiting.values())):
            self.reports.warn(
                "the files have no PodGroups, so gangs and queues are unknown; add what `kubectl get podgroups -A -o json` "
                "prints"
            )
        return LiveState(live.with_statuses(self._statuses()), objects)

    @property
    def _known(self) -> LiveObjects | None:
        """What the files have, if they were read and have not changed."""
        read = self._read
        return read[1] if read and read[0] == self.version and read[1].snapshot is self.settings()[1] else None

    def _objects(self) -> LiveObjects:
        """What the files have.

        Raises:
            ConfigError: one of them cannot be read.
        """
        with self._reading:
            found, version = self._known, self.version
            if found is None:
                found = self._add_all(LiveObjects(self.settings()[1]))
                self._read = version, found
            return found

    def _add_all(self, objects: LiveObjects) -> LiveObjects:
        complaints: list[str] = []
        self._source = ObjectFiles([str(path) for path in self._paths], self.reports.complain or complaints.append)
        kinds = set()
        for document in self._source:
            self.reports.step()
            objects.add(document.value)
            kinds.add(text(document.value, "kind"))
        if complaints:
            raise ConfigError("; ".join(complaints))
        if kinds and "Pod" not in kinds and not any(objects.wanted.values()):
            raise ConfigError(
                f"{self._paths[0]}: there is no pod in it; write what `kubectl get pods,podgroups -A -o json` prints"
            )
        objects.knows_groups = bool(objects.groups)
        return objects


def read_statuses(nodes: Iterable[Any]) -> Statuses:
    """What may keep pods off each node, whatever its devices are; equal ones are one object."""
    known: dict[NodeStatus, NodeStatus] = {}
    found = ((key_of(raw)[1], read_node_status(raw)) for raw in nodes)
    return {name: known.setdefault(status, status) for name, status in found}
