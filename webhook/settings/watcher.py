"""Keeps a snapshot of device config, policy and fleet up to date with files and, if there is one, a cluster.

    watcher = SettingsWatcher({"policy": path}, cluster=None)
    for job in watcher.jobs: loop.create_task(job())     # or SettingsThread(watcher).start()
    watcher.snapshot                                     # from any thread, at any time

Threads follow the API server and keep a copy. The event loop compares their versions, and builds a new snapshot in another
thread when one has changed; it never waits for the network.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from webhook.errors import ConfigError
from webhook.settings.file_watcher import FileWatcher, ReadAgain, Signature, WatchedFiles, signature
from webhook.settings.files import Paths, load
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import ClusterOptions, SettingStatus, SourceStatus
from webhook.settings.table import FLEET, SETTING_NAMES, SETTINGS, DocumentSetting
from webhook.snapshot import Snapshot
from webhook.texts import counted

if TYPE_CHECKING:
    from webhook.settings.cluster_sources import ClusterSources

POLL_SECONDS = 0.25  # between two comparisons of versions
FIRST_POLL_SECONDS = 0.02  # until the first complete snapshot
PAUSE_SECONDS = 3.0  # at least, between two snapshots
SHARE = 0.01  # of the time that may go into building snapshots: the next one of a large fleet comes later
SWITCH_SECONDS = 0.0005  # after which a busy thread lets the event loop run; Python's default of 5 ms delays reviews
STOP_SECONDS = 5.0  # to wait for a file that is being read

Job = Callable[[], Coroutine[None, None, None]]

_FILES = "settings"  # the source's name in logs and metrics; files are used together or not at all

log = logging.getLogger(__name__)


class _InUse(NamedTuple):
    """A snapshot, and since when each of its parts is unchanged; swapped as a whole, as other threads read it."""

    inputs: SnapshotInputs | None
    snapshot: Snapshot
    since: Mapping[str, datetime]


class SettingsWatcher:
    """Has a snapshot from the start, and a newer one whenever a setting has changed and can be used.

    Nothing runs before its jobs do, so the process may fork before that. Its other members are safe in any thread.

    Attributes:
        jobs: run them in one event loop, until they are cancelled.
    """

    def __init__(
        self,
        files: Paths,
        cluster: ClusterOptions | None,
        use: Callable[[Snapshot], None] = lambda _: None,
        reloaded: Callable[[str, bool], None] = lambda _, __: None,
        *,
        keep_inputs: bool = False,
    ) -> None:
        """Read the files; this sends nothing.

        Args:
            files: the settings files, which take precedence over the cluster.
            cluster: the cluster to follow; None loads no client.
            use: called in the event loop with each later snapshot.
            reloaded: called in the event loop with each source that was read again (`settings` for the files), and
                whether it can be used.
            keep_inputs: also keep what the snapshot was built from, which includes every node of a file.

        Raises:
            ConfigError: a file cannot be used, or there are no credentials for the API server.
        """
        seen = signature(
            paths := tuple(files.values())
        )  # before they are read: a change during that counts as a change
        self._files = files
        self._use_snapshot = use
        self._reloaded = reloaded
        self._keep_inputs = keep_inputs
        self._bad_file: str | None = None
        self._nodes = 0  # in the fleet file, as it is in use
        self._dropped: Signature = ()  # of the fleet file with far fewer nodes
        self._loaded_before = False
        self._settled = asyncio.Event()
        self._stopped = False
        given = self._load()
        self._loaded_before = True
        inputs = SnapshotInputs.of(given)
        snapshot = inputs.snapshot()
        since = dict.fromkeys(SETTING_NAMES, datetime.now(UTC))
        self._in_use = _InUse(inputs if keep_inputs else None, snapshot, since)
        self._cluster = None if cluster is None else _cluster_sources(cluster, given)
        more: list[Job] = []
        if self._cluster is None:
            watched = WatchedFiles(_FILES, paths, self._build_from_files, self._use, seen)
        else:
            watched = WatchedFiles(_FILES, paths, self._load, self._cluster.give, seen)
            more = [partial(self._follow, self._cluster)]
        self._file_watcher = FileWatcher([watched], reloaded)
        self.jobs: Sequence[Job] = [self._file_watcher.run, *more]

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot in use."""
        return self._in_use.snapshot

    @property
    def current(self) -> tuple[SnapshotInputs, Snapshot]:
        """The snapshot in use, and what it was built from.

        Raises:
            RuntimeError: made without `keep_inputs`.
        """
        in_use = self._in_use
        if in_use.inputs is None:
            raise RuntimeError("the inputs of snapshots are not kept: make SettingsWatcher with keep_inputs=True")
        return in_use.inputs, in_use.snapshot

    @property
    def inputs(self) -> SnapshotInputs:
        """What the snapshot in use was built from; replaced together with it.

        Raises:
            RuntimeError: made without `keep_inputs`.
        """
        return self.current[0]

    @property
    def unknown(self) -> Mapping[str, str]:
        """By option, why the policy or the device config of the cluster is not known; empty if both are.

        Until they are, `snapshot` has their defaults, which nobody chose: nothing may be enforced by it.
        """
        return self._cluster.unknown if self._cluster is not None else {}

    @property
    def problems(self) -> dict[str, str]:
        """By source, why the newest version of the files is not in use; empty if it is."""
        return self._file_watcher.problems

    async def settled(self) -> None:
        """Wait, in the jobs' event loop, for a snapshot of all that the cluster has, or until a request to it fails."""
        if self._cluster is not None:
            await self._settled.wait()

    def stop(self) -> None:
        """Stop the threads that follow the API server; returns at once."""
        self._stopped = True
        if self._cluster is not None:
            self._cluster.stop()

    def lines(self) -> Iterable[str]:
        """Of each setting of the cluster: its origin, age and problem; for people."""
        found = self._cluster.statuses() if self._cluster is not None else {}
        return [f"{SETTING_NAMES[part]}: {status.text}" for part, status in found.items()]

    def age(self) -> float | None:
        """Seconds since the nodes were last confirmed to be up to date; None if they do not come from the API server."""
        return self._cluster.age() if self._cluster is not None else None

    def statuses(self) -> tuple[SettingStatus, ...]:
        """The status of each setting in use; of those without a default only where there is a source."""
        _, snapshot, since = self._in_use
        sources = self._sources()
        return tuple(
            SettingStatus(each.name, sources[each.part], since[each.part], snapshot.digests.get(each.part, "unknown"))
            for each in SETTINGS
            if each.part in sources
        )

    def _sources(self) -> dict[str, SourceStatus]:
        fleet = "no file and no cluster" if self.snapshot.fleet is None else "the shapes that the policy declares"
        found = {FLEET.part: SourceStatus(fleet)}
        found |= {
            each.part: SourceStatus(each.default_name)
            for each in SETTINGS
            if isinstance(each, DocumentSetting) and not each.optional
        }
        found |= self._cluster.statuses() if self._cluster is not None else {}
        problem = self.problems.get(_FILES)
        for part, path in self._files.items():
            found[part] = SourceStatus(str(path), problem if self._bad_file in (part, None) else None)
        return found

    def _load(self) -> dict[str, Any]:
        """Read the files; remember which one cannot be used."""
        reading: str | None = None

        def begin(part: str, path: Path) -> None:
            nonlocal reading
            reading = part
            if self._loaded_before:
                _refuse_pipe(path)

        fleet = self._files.get(FLEET.part)
        written = signature((fleet,)) if fleet is not None else ()
        try:
            found = load(self._files, begin)
            reading = FLEET.part
            self._refuse_drop(found.get(FLEET.part, ()), written)
        except Exception:
            self._bad_file = reading
            raise
        self._bad_file = None
        return found

    def _refuse_drop(self, nodes: Sequence[object], written: Signature) -> None:
        """Read a file with far fewer nodes once more: one that is being written is valid at the end of each node."""
        if 2 * len(nodes) <= self._nodes and written != self._dropped:
            self._dropped = written
            raise ReadAgain(
                f"{self._files[FLEET.part]}: {counted(len(nodes), 'node')}, {self._nodes} before; it may not be complete yet, "
                "and is used if it is the same when it is read again"
            )
        self._nodes, self._dropped = len(nodes), ()

    def _build_from_files(self) -> tuple[SnapshotInputs, Snapshot]:
        inputs = SnapshotInputs.of(self._load())
        return inputs, inputs.snapshot()

    def _use(self, built: tuple[SnapshotInputs, Snapshot]) -> None:
        inputs, snapshot = built
        now, before = datetime.now(UTC), self._in_use
        since = {
            part: since if snapshot.digests.get(part) == before.snapshot.digests.get(part) else now
            for part, since in before.since.items()
        }
        self._in_use = _InUse(inputs if self._keep_inputs else None, snapshot, since)
        self._use_snapshot(snapshot)

    async def _follow(self, cluster: "ClusterSources") -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        cluster.start()
        built: tuple[object, ...] = ()
        were_known = False
        earliest = 0.0
        while not self._stopped:
            version, known = cluster.version(), cluster.nodes_known
            # Reviews need to learn at once whether the nodes are known; other changes may be collected.
            if version != built and (time.monotonic() >= earliest or known != were_known):
                built, were_known, began = version, known, time.monotonic()
                await self._rebuild(cluster)
                pause = max(PAUSE_SECONDS, (time.monotonic() - began) / SHARE)
                earliest = began + pause if known else 0.0
            if cluster.complete:
                self._settled.set()
            await asyncio.sleep(POLL_SECONDS if self._settled.is_set() else FIRST_POLL_SECONDS)

    async def _rebuild(self, cluster: "ClusterSources") -> None:
        def build() -> tuple[SnapshotInputs, Snapshot, Mapping[str, bool]]:
            inputs, reloaded = cluster.read()
            return inputs, inputs.snapshot(), reloaded

        try:
            inputs, snapshot, reloaded = await asyncio.get_running_loop().run_in_executor(None, build)
        except Exception:
            log.exception("a bug: no snapshot could be built; the last one stays in use")
            return
        for source, usable in reloaded.items():
            self._reloaded(source, usable)
        self._use((inputs, snapshot))


class SettingsThread:
    """Runs the jobs of a watcher in a thread, for a process without an event loop. Also a context manager.

    Start it after a fork, in the process that reads the settings. It does not keep the process alive.
    """

    def __init__(self, watcher: SettingsWatcher) -> None:
        """Prepare; nothing runs yet."""
        self._watcher = watcher
        self._thread = threading.Thread(target=self._run, name="settings", daemon=True)
        self._lock = threading.Lock()  # over _loop, _jobs and _stopped
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: asyncio.Task[None] | None = None
        self._stopped = False
        self._settled = threading.Event()

    def start(self, patience: float = 0.0) -> None:
        """Start, once; an API server that does not answer does not prevent it.

        Args:
            patience: seconds to wait, at most, until the snapshot holds all settings of the cluster.
        """
        self._thread.start()
        self._settled.wait(patience)

    def stop(self) -> None:
        """Stop the jobs and the thread; the last snapshot stays. May be called again, and before `start`."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._jobs is not None:
                self._loop.call_soon_threadsafe(self._jobs.cancel)
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except asyncio.CancelledError:
            pass
        except Exception:
            log.exception("a bug: settings are no longer followed; the last ones stay in use")
        finally:
            self._watcher.stop()  # here, where nothing starts another thread
            self._settled.set()

    async def _watch(self) -> None:
        jobs = asyncio.ensure_future(self._run_jobs())
        with self._lock:
            if self._stopped:
                jobs.cancel()
            self._loop, self._jobs = asyncio.get_running_loop(), jobs
        try:
            await jobs
        finally:
            with self._lock:
                self._loop = self._jobs = None

    async def _run_jobs(self) -> None:
        async with asyncio.TaskGroup() as group:
            for job in self._watcher.jobs:
                group.create_task(job())
            await self._watcher.settled()
            self._settled.set()


def _cluster_sources(options: ClusterOptions, given: Mapping[str, Any]) -> "ClusterSources":
    from webhook.settings.cluster_sources import ClusterSources  # noqa: PLC0415  # the Kubernetes client takes some MiB

    return ClusterSources(options, given)


def _refuse_pipe(path: Path) -> None:
    """Reading a pipe again would block, or return nothing, which is a valid policy."""
    try:
        piped = path.is_fifo()
    except OSError:
        return  # the reader reports it
    if piped:
        raise ConfigError(f"{path}: a pipe cannot be read again; name a file, or restart")
