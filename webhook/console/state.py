"""What the console shows, and where it has that from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from webhook.audit.inputs import try_out
from webhook.audit.journal import Journal
from webhook.console.examiner import Examiner
from webhook.review import Snapshot
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SettingStatus

TRIED = 4  # snapshots that are kept of what is tried out; one of a large fleet takes some MiB


class Settings(Protocol):
    """Device config, policy and fleet as they are now; replaced as a whole when something changes."""

    @property
    def inputs(self) -> SnapshotInputs:
        """What the snapshot is built from."""

    @property
    def snapshot(self) -> Snapshot:
        """What reviews are made with."""

    def statuses(self) -> Sequence[SettingStatus]:
        """Where device config, policy and fleet come from."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that a page may ask for. Read by many threads, changed by none of them.

    Attributes:
        settings: device config, policy and fleet.
        journal: the audit log; None if none is read.
        doctor: has the doctor look at the cluster, or at files; None if there is nothing to look at.
        certificate: the serving certificate of the webhook, a PEM file; None if it is not to be seen.
        replay_options: the options with which `vgpu-webhook replay` uses the same settings.
    """

    settings: Settings
    journal: Journal | None = None
    doctor: Examiner | None = None
    certificate: Path | None = None
    replay_options: tuple[str, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        """What reviews are made with."""
        return self.settings.snapshot

    def tried(self, settings: Sequence[str], split: int | None) -> Snapshot:
        """What reviews would be made with under other settings; the snapshot itself if nothing is tried out.

        Args:
            settings: `KEY=VALUE` of the policy.
            split: how many slices each vGPU card is cut into; None leaves them.

        Raises:
            ConfigError: a setting cannot be used.
        """
        if not settings and split is None:
            return self.snapshot
        return _tried(self.settings.inputs, tuple(settings), split)


@lru_cache(maxsize=TRIED)
def _tried(inputs: SnapshotInputs, settings: tuple[str, ...], split: int | None) -> Snapshot:
    return try_out(inputs, settings, split).snapshot()
