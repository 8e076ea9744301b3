"""Keeps a snapshot of device config, policy and fleet up to date with files and, if there is one, a cluster.

    watcher = SettingsWatcher({"policy": path}, cluster=None)
    watcher.start()
    watcher.snapshot                                     # from any thread, at any time

Threads follow the API server and keep a copy. Another thread looks at the files and at the versions of the copies, and builds a
new snapshot when one has changed; it never waits for the network.
"""

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from webhook.cluster.file_watcher import FileWatcher, ReadAgain, WatchedFiles
from webhook.cluster.pace import PACE, Pace
from webhook.errors import ConfigError
from webhook.inputs.files import Signature, signature
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import ClusterOptions, Paths, SettingStatus, SourceStatus, load
from webhook.settings.table import DEVICE_CONFIG, FLEET, SETTING_NAMES, SETTINGS, DocumentSetting
from webhook.snapshot import Snapshot
from webhook.texts import counted
from webhook.worker import Worker

if TYPE_CHECKING:
    from webhook.cluster.settings import ClusterSettings

SWITCH_SECONDS = 0.0005  # after which a busy thread lets the event loop run; Python's default of 5 ms delays reviews
STOP_SECONDS = 5.0  # to wait for a file that is being read

# A device config says what to read of the nodes: the two files are used together or not at all, any other one by itself.
_USED_TOGETHER = (DEVICE_CONFIG, FLEET)

log = logging.getLogger(__name__)


class _InUse(NamedTuple):
    """A snapshot, its inputs, and since when each of its parts is unchanged; swapped as a whole, as other threads read it."""

    inputs: SnapshotInputs
    snapshot: Snapshot
    since: Mapping[str, datetime]


class SettingsWatcher:
    """Has a snapshot from the start, and a newer one whenever a setting has changed and can be used.

    Nothing runs before `start`, so the process may fork before that. It is safe in any thread, and a context manager.

    Attributes:
        settled: set once there is a snapshot of all that the cluster has, or a request to it failed, or there is no cluster.
    """

    def __init__(
        self,
        files: Paths,
        cluster: ClusterOptions | None,
        use: Callable[[Snapshot], None] = lambda _: None,
        reloaded: Callable[[str, bool], None] = lambda _, __: None,
        *,
        pace: Pace = PACE,
    ) -> None:
        """Read the files; this sends nothing.

        Args:
            files: the settings files, which take precedence over the cluster.
            cluster: the cluster to follow; None loads no client.
            use: called in the watcher's thread with each later snapshot.
            reloaded: called in the watcher's thread with each source that was read again (of files the options), and
                whether it can be used.
            pace: how often to look, and the clock.

        Raises:
            ConfigError: a file cannot be used, or there are no credentials for the API server.
        """
        self._files = files
        self._use_snapshot = use
        self._reloaded = reloaded
        self._bad_file: dict[str, str | None] = {}  # by source, the part that cannot be used
        self._nodes = 0  # in the fleet file, as it is in use
        self._dropped: Signature = ()  # of the fleet file with far fewer nodes
        self._loaded_before = False
        self._read: dict[str, Signature] = {}  # by part, as in use
        self._pace = pace
        self._built: tuple[object, ...] = ()  # the version of the cluster's settings in use
        self._knew_nodes = False
        self._earliest = 0.0  # when the next snapshot may be built
        self.settled = threading.Event()
        self._worker = Worker("settings", self._turn, self._stop_following)
        given: dict[str, Any] = {}
        watched = []
        for source, parts in _groups(files).items():
            paths = tuple(parts.values())
            seen = signature(paths)  # before they are read: a change during that counts as a change
            given |= self._load(source, parts)
            watched.append(WatchedFiles(source, paths, partial(self._use_files, source, parts), seen))
        self._loaded_before = True
        inputs = SnapshotInputs.of(given)
        snapshot = inputs.snapshot()
        self._in_use = _InUse(inputs, snapshot, dict.fromkeys(SETTING_NAMES, datetime.now(UTC)))
        self._cluster = None if cluster is None else self._settings_of(cluster, given)
        self._file_watcher = FileWatcher(watched, reloaded)

    def start(self, patience: float = 0.0) -> None:
        """Start the threads; an API server that does not answer does not prevent it.

        Args:
            patience: seconds to wait, at most, until the snapshot holds all settings of the cluster.
        """
        self._worker.start()
        self.settled.wait(patience)

    def stop(self) -> None:
        """Stop the threads; returns at once. The last snapshot stays."""
        self._worker.stop()
        self._stop_following()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._worker.join(STOP_SECONDS)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot in use."""
        return self._in_use.snapshot

    @property
    def current(self) -> tuple[SnapshotInputs, Snapshot]:
        """The snapshot in use, and what it was built from."""
        in_use = self._in_use
        return in_use.inputs, in_use.snapshot

    @property
    def inputs(self) -> SnapshotInputs:
        """What the snapshot in use was built from; replaced together with it."""
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
        problems = self.problems
        for source, parts in _groups(self._files).items():
            bad = self._bad_file.get(source)
            for part, path in parts.items():
                found[part] = SourceStatus(str(path), problems.get(source) if bad in (part, None) else None)
        return found

    def _load(self, source: str, parts: Paths) -> dict[str, Any]:
        """Read files that are used together; remember which one cannot be used."""
        reading: str | None = None

        def begin(part: str, path: Path) -> None:
            nonlocal reading
            reading = part
            if self._loaded_before:
                _refuse_pipe(path)

        written = {part: signature((path,)) for part, path in parts.items()}
        try:
            found = load(parts, begin)
            if FLEET.part in parts:
                reading = FLEET.part
                self._refuse_drop(found[FLEET.part], written[FLEET.part])
        except Exception as error:
            self._bad_file[source] = reading
            changed = [
                str(parts[part]) for part in written if part != reading and written[part] != self._read.get(part)
            ]
            if self._loaded_before and changed and isinstance(error, ConfigError):
                error.args = (f"{error}; what changed in {', '.join(changed)} is not used either until this is mended",)
            raise
        self._bad_file.pop(source, None)
        self._read |= written
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

    def _use_files(self, source: str, parts: Paths) -> None:
        found = self._load(source, parts)
        if self._cluster is not None:
            self._cluster.give(found)
            return
        inputs = self._in_use.inputs.updated(found)
        self._use(inputs, inputs.snapshot())

    def _use(self, inputs: SnapshotInputs, snapshot: Snapshot) -> None:
        now, before = datetime.now(UTC), self._in_use
        since = {
            part: since if snapshot.digests.get(part) == before.snapshot.digests.get(part) else now
            for part, since in before.since.items()
        }
        self._in_use = _InUse(inputs, snapshot, since)
        self._use_snapshot(snapshot)

    def _turn(self) -> float:
        """Look at the files and at the copies of the cluster's settings, and build a snapshot if that is due."""
        self._file_watcher.look()
        if self._cluster is None:
            self.settled.set()
            return self._pace.files
        if not self._built:
            sys.setswitchinterval(SWITCH_SECONDS)
            self._cluster.start()
        settled = self._cluster.settled  # asked first: what becomes known from here on may miss the snapshot below
        version, known = self._cluster.version(), self._cluster.knows_nodes
        if version != self._built:
            began = self._pace.clock()
            # Reviews need to learn at once whether the nodes are known; other changes may be collected.
            if began < self._earliest and known == self._knew_nodes:
                return min(self._pace.files, self._earliest - began)
            self._built, self._knew_nodes = version, known
            self._rebuild(self._cluster)
            now = self._pace.clock()
            rest = max(self._pace.pause, (now - began) / self._pace.share)
            self._earliest = now + rest if known and self.settled.is_set() else 0.0
        if settled:
            self.settled.set()
        return self._pace.files

    def _rebuild(self, cluster: "ClusterSettings") -> None:
        try:
            inputs, reloaded = cluster.read()
            snapshot = inputs.snapshot()
        except Exception:
            log.exception("a bug: no snapshot could be built; the last one stays in use")
            return
        for source, usable in reloaded.items():
            self._reloaded(source, usable)
        self._use(inputs, snapshot)

    def _stop_following(self) -> None:
        if self._cluster is not None:
            self._cluster.stop()

    def _settings_of(self, options: ClusterOptions, given: Mapping[str, Any]) -> "ClusterSettings":
        from webhook.cluster.reflector import Access  # noqa: PLC0415  # the Kubernetes client takes some MiB
        from webhook.cluster.settings import ClusterSettings, connector  # noqa: PLC0415

        access = Access(connector(options), changed=self._worker.wake, pace=self._pace)
        return ClusterSettings(options, given, access)


def _groups(files: Paths) -> dict[str, Paths]:
    """By source, the name in logs and metrics, the files that are used together."""
    grouped = [_USED_TOGETHER, *((each,) for each in SETTINGS if each not in _USED_TOGETHER)]
    given = [[each for each in group if each.part in files] for group in grouped]
    return {
        ", ".join([each.option for each in group]): {each.part: files[each.part] for each in group}
        for group in given
        if group
    }


def _refuse_pipe(path: Path) -> None:
    """Reading a pipe again would block, or return nothing, which is a valid policy."""
    try:
        piped = path.is_fifo()
    except OSError:
        return  # the reader reports it
    if piped:
        raise ConfigError(f"{path}: a pipe cannot be read again; name a file, or restart")
