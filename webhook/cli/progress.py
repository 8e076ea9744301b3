"""Long reads, with their progress on standard error if that is a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from webhook.cli.inputs import SettingsOptions
from webhook.cli.program import bad_usage, report_warning
from webhook.inputs.documents import Complain
from webhook.live.reader import Reader, Reports, read_statuses
from webhook.settings.sources import load
from webhook.settings.table import FLEET

EVERY = 0.25  # seconds


class Progress:
    """Rewrites one line on a terminal; writes nothing into a pipe."""

    def __init__(self, stream: TextIO, share: Callable[[], float | None]) -> None:
        """Begin.

        Args:
            stream: the line is written only if it is a terminal.
            share: returns the part that is done, from 0 to 1; None if it is not known.
        """
        self._stream = stream
        self._active = stream.isatty()
        self._share = share
        self._began = self._shown_at = time.monotonic()
        self._count = 0
        self._shown = False

    def step(self) -> None:
        """Count one more object."""
        self._count += 1
        if self._active and not self._count % 64:
            now = time.monotonic()
            if now - self._shown_at >= EVERY:
                self._shown_at = now
                self._show(now)

    def clear(self) -> None:
        """Erase the line, so that another can be written."""
        if self._shown:
            self._shown = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _show(self, now: float) -> None:
        share = self._share()
        of = f", {share:.0%}" if share is not None else ""
        rate = self._count / max(now - self._began, 0.001)
        self._stream.write(f"\r\x1b[Kread {self._count:,} objects{of}, {rate:,.0f} a second")
        self._stream.flush()
        self._shown = True


@contextmanager
def reading(
    settings: SettingsOptions,
    pod_files: tuple[Path, ...],
    complain: Complain | None = None,
    *,
    may_be_empty: bool = False,
) -> Iterator[Reader]:
    """Read the settings, and what is then asked of the pods of files or of the cluster, with progress on standard error.

    Args:
        settings: where they come from.
        pod_files: what kubectl printed; empty for the pods of the cluster.
        complain: as of `Reports`.
        may_be_empty: without files and without a cluster, no pod holds anything, and a warning says so.

    Raises:
        click.UsageError: there are no files, and no cluster is read.
        WebhookError: a setting cannot be read or used.
    """
    pod_files = settings.or_sample_pods(pod_files)
    if settings.cluster is None and not pod_files:
        advice = "name the pods with --pods FILE, as `kubectl get pods,podgroups -A -o json` prints them"
        if not may_be_empty:
            raise bad_usage(advice)
        report_warning(f"no pods are read, so the nodes count as empty; {advice}")
    given = load(settings.files)
    inputs = settings.read(given)
    current = inputs, inputs.snapshot()
    # Of a file; the nodes themselves take more memory.
    statuses = read_statuses(given.pop(FLEET.part)) if FLEET.part in given else None
    progress = Progress(sys.stderr, lambda: reader.share)
    reports = Reports(report_warning, progress.step, complain)
    reader = settings.reader(pod_files, lambda: current, reports, statuses=statuses)
    try:
        yield reader
    finally:
        progress.clear()
