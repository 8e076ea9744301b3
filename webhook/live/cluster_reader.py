"""Reads a cluster as its API server has it: at each call, or with the pods that hold devices followed."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any

from webhook import names
from webhook.cluster.client import Client
from webhook.cluster.pods import BOUND, PAGE, list_bound_pods
from webhook.cluster.reflector import Access, Reflector, State
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader
from webhook.errors import ClusterError, ConfigError
from webhook.live.devices import LiveCluster
from webhook.live.objects import Key, LiveObjects, controller_key, group_of, read_pod_group
from webhook.live.reader import (
    KEEP_SECONDS,
    LiveState,
    Reader,
    Reports,
    Settings,
    Statuses,
    Wanted,
    paths_of,
    read_statuses,
)
from webhook.pod.workload_kinds import JOB, POD
from webhook.settings.table import NODES, PODS

JOBS = "/apis/batch/v1/jobs"
ALL_PODGROUPS = f"/apis/{names.QUEUE_API}/podgroups"
PODGROUPS = f"/apis/{names.QUEUE_API}/namespaces/{{}}/podgroups/{{}}"
PODS_OF = "/api/v1/namespaces/{}/pods"
PENDING = {"fieldSelector": "spec.nodeName=,status.phase=Pending"}
STARTED = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
ALL: Mapping[str, str] = {}
MAX_READ = 200  # controllers that are read to find the pods of one


class ClusterReader(Reader):
    """The pods, PodGroups and workloads of an API server."""

    def __init__(
        self,
        connect: Callable[[], Client],
        settings: Settings,
        reports: Reports,
        *,
        follow: Callable[[], None] | None = None,
    ) -> None:
        """Prepare.

        Args:
            connect: makes a client.
            settings: as the attribute.
            reports: as the attribute.
            follow: called after each change of the pods that hold devices, which are then followed; None lists them once.
        """
        super().__init__(settings, reports)
        self._connect = connect
        self._share: float | None = None
        self._statuses: tuple[float, Statuses] | None = None
        # Optional, as the right to list pods is the operator's to give.
        self._followed: Reflector[BoundPod] | None = (
            Reflector(Access(connect, changed=follow), "pods", PODS, BOUND, optional=True) if follow else None
        )

    @property
    def version(self) -> int | None:
        if self._followed is None:
            return 0
        reader = self._reader()
        self._followed.follow(reader.read, reader)
        known = self._followed.state() is State.KNOWN and self._followed.copy.key == reader
        return self._followed.version if known else None

    @property
    def problem(self) -> str | None:
        problem = self._followed.problem if self._followed is not None else None
        if self._followed is None or self._followed.state() is not State.UNKNOWN:
            return problem
        return (
            f"{problem}; grant the right to get, list and watch the pods of all namespaces, for a console as "
            "store.readPods of the chart and deploy/overlays/store-pods do"
        )

    def stop(self) -> None:
        if self._followed is not None:
            self._followed.stop()

    @property
    def share(self) -> float | None:
        return self._share

    def pods(self) -> Sequence[BoundPod]:
        if self._followed is not None:
            return list(self._followed.objects.copy().values())
        found = []
        for pod in list_bound_pods(self._connect(), self._reader(), self._note):
            self.reports.step()
            found.append(pod)
        return found

    def waiting(self) -> LiveState:
        live, client = self.live(), self._connect()
        objects = LiveObjects(live.snapshot)
        self._add_all(client, objects, PODS, PENDING)
        groups = {(key[0], group_of(raw)) for key, raw in objects.waiting.items() if group_of(raw)}
        if groups:
            self._add_pod_groups(client, objects)
        gangs = {key for key in groups if key in objects.groups and objects.groups[key].minimum > 1}
        for namespace in sorted({namespace for namespace, _ in gangs}):
            self._add_all(client, objects, PODS_OF.format(namespace), STARTED)
        return self._state(client, live, objects)

    def read(self, wanted: Wanted | None) -> LiveState:
        live, client = self.live(), self._connect()
        objects = LiveObjects(live.snapshot)
        if wanted is not None:
            self._read_object(client, objects, wanted)
        return self._state(client, live, objects)

    def whole(self) -> LiveState:
        client = self._connect()
        inputs, snapshot = self.settings()
        objects = LiveObjects(snapshot, keeps_running=True)
        self._add_all(client, objects, PODS)
        self._add_pod_groups(client, objects)
        if any(
            work[:2] == JOB for work in map(objects.work_of, chain(objects.waiting.values(), objects.running.values()))
        ):
            # The pods of a Job do not show whether all of them run at the same time.
            denied = "Jobs may not be listed, so the pods of each indexed Job count as a group that works together"
            self._add_if_allowed(client, objects, JOBS, denied)
        return self._state(client, LiveCluster(inputs, snapshot, objects.bound), objects)

    def _reader(self) -> BoundPodReader:
        snapshot = self.settings()[1]
        return BoundPodReader.under(snapshot.config, snapshot.target)

    def _note(self, read: int, left: int) -> None:
        self._share = read / (read + left) if left else None

    def _state(self, client: Client, live: LiveCluster, objects: LiveObjects) -> LiveState:
        if self._statuses is None or time.monotonic() - self._statuses[0] > KEEP_SECONDS:
            self._statuses = time.monotonic(), read_statuses(client.list(NODES))
        return LiveState(live.with_statuses(self._statuses[1]), objects)

    def _read_object(self, client: Client, objects: LiveObjects, wanted: Wanted) -> None:
        """The object, the pods of its namespace, and its PodGroup."""
        raw = _first(client, paths_of(wanted.kind, wanted.key))
        if raw is None:
            return
        namespace, name = wanted.key
        objects.wanted[wanted.object_key] = raw
        self._add_all(client, objects, PODS_OF.format(namespace))
        if wanted.kind is not POD:
            self._read_owners(client, objects, name)
        own = group_of(raw) or next((group_of(pod) for pod in objects.pods_of(wanted.object_key) if group_of(pod)), "")
        if own:
            self._add_pod_group(client, objects, (namespace, own))

    @staticmethod
    def _read_owners(client: Client, objects: LiveObjects, name: str) -> None:
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

    def _add_pod_groups(self, client: Client, objects: LiveObjects) -> None:
        denied = "PodGroups may not be listed, so gangs and queues are unknown"
        objects.knows_groups = self._add_if_allowed(client, objects, ALL_PODGROUPS, denied)

    def _add_if_allowed(self, client: Client, objects: LiveObjects, path: str, denied: str) -> bool:
        """Add a collection that the cluster may not have, or may not show; whether it was listed."""
        try:
            self._add_all(client, objects, path)
        except ClusterError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self.reports.warn(denied)
            elif error.status != HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def _add_all(self, client: Client, objects: LiveObjects, path: str, query: Mapping[str, str] = ALL) -> None:
        for raw in client.list(path, query, PAGE):
            self.reports.step()
            objects.add(raw)

    def _add_pod_group(self, client: Client, objects: LiveObjects, key: Key) -> None:
        """Read the PodGroup that a pod names, if there is one of this name."""
        try:
            objects.groups[key] = read_pod_group(client.get(PODGROUPS.format(*key)))
        except ConfigError:  # the pod's author chose a name that no PodGroup has
            pass
        except ClusterError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                self.reports.warn(f"PodGroup {'/'.join(key)} may not be read, so its gang is unknown")
                return
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        objects.knows_groups = True


def _first(client: Client, paths: Iterable[str]) -> dict[str, Any] | None:
    """The object at the first path that has one; None if none has."""
    for path in paths:
        try:
            return client.get(path)
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    return None
