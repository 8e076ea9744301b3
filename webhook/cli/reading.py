"""Long reads: readers of live pods, in files or in a cluster, and the progress on standard error if that is a terminal."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import TextIO

from webhook.cli.inputs import client_of, read_settings
from webhook.cli.program import bad_usage, report_warning
from webhook.cli.settings_options import SettingsOptions
from webhook.inputs.documents import Complain
from webhook.live.reader import KEEP_SECONDS, FileReader, Reader, Reports, Settings, Statuses, read_statuses
from webhook.settings.sources import SAMPLE_FLEET, SAMPLE_PODS, load
from webhook.settings.table import FLEET, NODES

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


def or_sample_pods(settings: SettingsOptions, pods: tuple[Path, ...]) -> tuple[Path, ...]:
    """Some files of pods; the package's sample pods if there are none and the nodes are its sample fleet."""
    return pods or ((SAMPLE_PODS,) if settings.files.get(FLEET.part) == SAMPLE_FLEET else ())


def reader_of(
    settings: SettingsOptions,
    pods: tuple[Path, ...],
    current: Settings,
    reports: Reports,
    *,
    statuses: Statuses | None = None,
    follow: Callable[[], None] | None = None,
) -> Reader:
    """What reads live pods, with settings that are read or followed.

    Args:
        settings: where these come from.
        pods: the files that have them; none for those of the cluster, without which there are none.
        current: the settings in use.
        reports: what to do with what is reported.
        statuses: those of the nodes, if they were read.
        follow: as `ClusterReader` has it.
    """
    client = partial(client_of, settings.cluster)
    if not pods and settings.cluster is not None:
        from webhook.live.cluster_reader import ClusterReader  # noqa: PLC0415  # the Kubernetes client takes a second to load

        return ClusterReader(client, current, reports, follow=follow)
    path = settings.files.get(FLEET.part)

    def read() -> Statuses:
        if statuses is not None:
            return statuses
        nodes: Iterable[object] = client().list(NODES) if path is None else FLEET.load(path)
        return read_statuses(nodes)

    # The nodes of a file are settings, which are watched.
    return FileReader(pods, current, read, reports, KEEP_SECONDS if path is None else inf)


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
    pod_files = or_sample_pods(settings, pod_files)
    if settings.cluster is None and not pod_files:
        advice = "name the pods with --pods FILE, as `kubectl get pods,podgroups -A -o json` prints them"
        if not may_be_empty:
            raise bad_usage(advice)
        report_warning(f"no pods are read, so the nodes count as empty; {advice}")
    given = load(settings.files)
    inputs = read_settings(settings, given)
    current = inputs, inputs.snapshot()
    # Of a file; the nodes themselves take more memory.
    statuses = read_statuses(given.pop(FLEET.part)) if FLEET.part in given else None
    progress = Progress(sys.stderr, lambda: reader.share)
    reports = Reports(report_warning, progress.step, complain)
    reader = reader_of(settings, pod_files, lambda: current, reports, statuses=statuses)
    try:
        yield reader
    finally:
        progress.clear()
