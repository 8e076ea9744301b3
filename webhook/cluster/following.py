"""Device config, policy and fleet as files and, where asked, the cluster have them: the newest that can be used.

following = Following(SettingsFiles(policy=path), cluster=None)
for job in following.jobs: loop.create_task(job())     # or FollowingThread(following).start()
following.snapshot                                     # from any thread, at any time
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webhook.cluster.files import Files, SettingsFiles
from webhook.cluster.kinds import DEVICE_CONFIG, POLICY
from webhook.cluster.options import ClusterOptions
from webhook.cluster.snapshot import Parts
from webhook.cluster.sources import SourceState, Standing
from webhook.cluster.watch import Watched, Watcher, signature
from webhook.errors import ConfigError
from webhook.review import Snapshot

if TYPE_CHECKING:
    from webhook.cluster.live import Live

Job = Callable[[], Coroutine[None, None, None]]

_FILES = "settings"  # what logs and metrics call them; they are used together or not at all
_NAMES = {"config": "device config", "policy": "policy", "fleet": "fleet"}  # by the key in Snapshot.digests


class _InUse(NamedTuple):
    """A snapshot, and since when each of its parts is as it is; swapped as a whole, as other threads read it."""

    parts: Parts | None
    snapshot: Snapshot
    since: Mapping[str, datetime]


class Following:
    """Has a snapshot from the start, and a newer one whenever something changed that can be used.

    Nothing runs before the jobs do, so a process may fork in between. All else may be asked from any thread.

    Attributes:
        jobs: to be run in one event loop, until cancelled.
    """

    def __init__(
        self,
        files: SettingsFiles,
        cluster: ClusterOptions | None,
        use: Callable[[Snapshot], None] = lambda _: None,
        read: Callable[[str, bool], None] = lambda _, __: None,
        *,
        keep_parts: bool = False,
    ) -> None:
        """Read the files; nothing is sent yet.

        Args:
            files: what goes over the cluster.
            cluster: what to follow there; None asks no API server, and loads no client of it.
            use: takes each later snapshot, in the event loop.
            read: told, there too, which source was read anew (`settings`: the files) and whether it can be used.
            keep_parts: keep what the snapshot was built from, too, which is every node of a file.

        Raises:
            ConfigError: a file cannot be used, or there are no credentials for the API server.
        """
        seen = signature(files.paths)  # first: what changes while it is read has changed
        self._files = files
        self._told = use
        self._keep_parts = keep_parts
        self._bad: str | None = None
        self._again = False
        given = self._load()
        self._again = True
        parts, snapshot = _built(given)
        since = dict.fromkeys(snapshot.digests, datetime.now(UTC))
        self._in_use = _InUse(parts if keep_parts else None, snapshot, since)
        self._live = None if cluster is None else _live(cluster, given, self._use, read)
        if self._live is None:
            watched = Watched(_FILES, files.paths, lambda: _built(self._load()), lambda built: self._use(*built), seen)
        else:
            watched = Watched(_FILES, files.paths, self._load, self._live.use_files, seen)
        self._watcher = Watcher([watched], read)
        self.jobs: Sequence[Job] = [self._watcher.run, *([self._live.run] if self._live else [])]

    @property
    def snapshot(self) -> Snapshot:
        """The one in use."""
        return self._in_use.snapshot

    @property
    def parts(self) -> Parts:
        """What it was built from; the same object as long as the snapshot is.

        Raises:
            RuntimeError: made without `keep_parts`.
        """
        parts = self._in_use.parts
        if parts is None:
            raise RuntimeError("the parts of snapshots are not kept: make Following with keep_parts=True")
        return parts

    @property
    def problems(self) -> dict[str, str]:
        """Why the newest version of the files is not in use, by source; empty if it is."""
        return self._watcher.problems

    async def caught_up(self) -> None:
        """Wait, in the jobs' event loop, until they know what the cluster has, or cannot know it now."""
        if self._live is not None:
            await self._live.caught_up()

    def stop(self) -> None:
        """End the threads that follow the API server, when no more news is wanted; returns at once."""
        if self._live is not None:
            self._live.stop()

    def lines(self) -> Iterable[str]:
        """For people: where everything of the cluster comes from, how old it is, and what is wrong with it."""
        return self._live.lines() if self._live is not None else ()

    def age(self) -> float | None:
        """Seconds since the nodes were last known to be up to date; None if they do not come from the API server."""
        return self._live.age() if self._live is not None else None

    def sources(self) -> tuple[SourceState, ...]:
        """Where each of the settings in use comes from: device config, policy, fleet."""
        _, snapshot, since = self._in_use
        standings = self._standings()
        return tuple(
            SourceState(name, since=since[part], digest=snapshot.digests[part], **standings[part]._asdict())
            for part, name in _NAMES.items()
        )

    def _standings(self) -> dict[str, Standing]:
        fleet = "no file and no cluster" if self.snapshot.fleet is None else "the shapes that the policy declares"
        defaults = {"config": DEVICE_CONFIG.default_name, "policy": POLICY.default_name, "fleet": fleet}
        found = {part: Standing(name) for part, name in defaults.items()}
        found |= self._live.standings() if self._live is not None else {}
        bad, problem = self._bad, self.problems.get(_FILES)
        paths = {"config": self._files.device_config, "policy": self._files.policy, "fleet": self._files.fleet}
        for part, path in paths.items():
            if path is not None:
                found[part] = Standing(str(path), problem if bad in (part, None) else None)
        return found

    def _load(self) -> Files:
        """Read the files, in a thread; when one is bad, remember which one it was."""
        reading: str | None = None

        def begin(part: str, path: Path) -> None:
            nonlocal reading
            reading = part
            if self._again:
                _refuse_pipe(path)

        try:
            found = self._files.load(begin)
        except Exception:
            self._bad = reading
            raise
        self._bad = None
        return found

    def _use(self, parts: Parts, snapshot: Snapshot) -> None:
        now, before = datetime.now(UTC), self._in_use
        since = {
            part: before.since[part] if digest == before.snapshot.digests[part] else now
            for part, digest in snapshot.digests.items()
        }
        self._in_use = _InUse(parts if self._keep_parts else None, snapshot, since)
        self._told(snapshot)


def _live(
    options: ClusterOptions, files: Files, use: Callable[[Parts, Snapshot], None], read: Callable[[str, bool], None]
) -> "Live":
    from webhook.cluster.live import Live  # noqa: PLC0415  # the Kubernetes client takes some MiB

    return Live(options, files, use, read)


def _refuse_pipe(path: Path) -> None:
    """Read again, a pipe would keep us waiting, or seem empty, which is a policy, too."""
    try:
        piped = path.is_fifo()
    except OSError:
        return  # whoever reads it says why
    if piped:
        raise ConfigError(f"{path}: a pipe cannot be read again; name a file, or start anew")


def _built(files: Files) -> tuple[Parts, Snapshot]:
    parts = files.parts()
    return parts, parts.snapshot()
