"""`vgpu-webhook usage`: who holds which slice of which device, what is free, and the largest pod that fits now."""

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from webhook.cli.complaints import Complaints
from webhook.cli.inputs import read_settings
from webhook.cli.options import output_option, pods_option, refuse_both
from webhook.cli.program import Command, ExitCode, bad_usage, exit_code, report_warning
from webhook.cli.reading import reader_of, reading
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import Terminal
from webhook.devices.usage import UsageReport, report
from webhook.errors import ConfigError
from webhook.live.devices import LiveCluster
from webhook.live.reader import Reports
from webhook.output.formats import emit
from webhook.questions.usage.text import WAYS, show
from webhook.settings.table import FLEET

WATCH_SECONDS = 2.0  # between two tables
CLEAR = "\x1b[H\x1b[2J\x1b[3J"

_EPILOG = """
Accounted is what the scheduler reckons with, by the rules of the version in the policy's target. Assigned is what live pods
hold. Both come from annotations of pods, so it must be allowed to list the pods of all namespaces; it changes nothing.

  kubectl vgpu usage
  kubectl vgpu usage --by card --node gpu-a
  kubectl vgpu usage --by pod -n team-a -o wide
  kubectl get pods -A -o json > pods.json; kubectl get nodes -o json > nodes.json
  kubectl vgpu usage --fleet nodes.json --pods pods.json

exit codes:
  0  done, also with findings
  2  something could not be read
"""


@click.command("usage", cls=Command, epilog=_EPILOG)
@settings_option("Read the cluster, which is the default without --fleet.", cluster_by_default=True)
@pods_option("What `kubectl get pods -A -o json` prints, instead of the cluster; can be repeated.")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    metavar="NAMESPACE",
    multiple=True,
    help="Only what this namespace holds; can be repeated.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="What all namespaces hold, which is the default.")
@click.option("--node", "nodes", metavar="NAME", multiple=True, help="Only this node; can be repeated.")
@click.option("--by", type=click.Choice(WAYS), default=WAYS[0], help="What a row of the table is.")
@click.option(
    "--size",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=False,
    metavar="MIB",
    help="Show how much free memory a slice of this size cannot use.",
)
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes.")
@output_option("table", "wide", "json", "yaml")
def command(
    settings: SettingsOptions,
    pod_files: tuple[Path, ...],
    namespaces: tuple[str, ...],
    all_namespaces: bool,
    nodes: tuple[str, ...],
    by: str,
    size: int,
    watch: bool,
    output: str,
) -> int:
    """Show who holds which slice of which device, what is free, and the largest pod that fits now."""
    refuse_both(namespaces, all_namespaces)
    if watch and (pod_files or FLEET.part in settings.files):
        raise bad_usage("--watch follows a cluster: leave out --fleet, --sample and --pods")
    usage = UsageCommand(UsageSelection(nodes, namespaces, size), by, output)
    if watch:
        usage.follow(settings)
        return ExitCode.OK
    complain = Complaints()
    with _without_collector(), reading(settings, pod_files, complain) as reader:
        live = reader.live()
    usage.show(live)
    return exit_code(bad_input=complain.count > 0)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Millions of objects come and go, and none is part of a cycle: the collector would take half of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class UsageSelection(NamedTuple):
    """What to show.

    Attributes:
        nodes, namespaces: none for all.
        size: of a slice, in MiB; 0 for none.
    """

    nodes: Sequence[str]
    namespaces: Sequence[str]
    size: int


class UsageCommand:
    """Prints what pods hold."""

    def __init__(self, selection: UsageSelection, by: str, output: str) -> None:
        """Take what to show, and how."""
        self._selection = selection
        self._by = by
        self._output = output
        self._terminal = Terminal(wide=output == "wide")

    def follow(self, settings: SettingsOptions) -> None:
        """Follow nodes, pods and settings, and print what they come to whenever it changes."""
        from webhook.cluster.watcher import SettingsWatcher  # noqa: PLC0415

        read_settings(settings)  # what cannot be used or read is an error now, and a warning later
        changed = threading.Event()
        shown: LiveCluster | None = None
        reported: set[str | None] = set()
        with SettingsWatcher(settings.files, settings.cluster, lambda _: changed.set()) as watcher:
            reader = reader_of(settings, (), lambda: watcher.current, Reports(report_warning), follow=changed.set)
            try:
                while True:
                    known = reader.version is not None and watcher.settled.is_set() and watcher.snapshot.knows_nodes
                    if known and (live := reader.live()) is not shown:
                        shown = live
                        self._clear()
                        self.show(live)
                    problems = {reader.problem, *(one.source.problem for one in watcher.statuses())}
                    for problem in sorted(filter(None, problems - reported)):
                        report_warning(problem)
                    reported = problems
                    time.sleep(WATCH_SECONDS if shown else 0.0)
                    changed.wait(WATCH_SECONDS)
                    changed.clear()
            finally:
                reader.stop()

    def show(self, live: LiveCluster) -> None:
        """Print what pods hold."""
        usage = self._report(live)
        emit([usage], self._output, lambda: show(usage, self._by, self._terminal, wide=self._output == "wide"))

    def _report(self, live: LiveCluster) -> UsageReport:
        occupancy, selection = live.occupancy, self._selection
        known = {node.name for node in occupancy.nodes}
        for name in selection.nodes:
            if name not in known:
                raise ConfigError(
                    f"node {name} has no devices that the scheduler uses; `usage` without --node lists all"
                )
        return report(occupancy, live.snapshot.families, *selection)

    def _clear(self) -> None:
        if self._terminal.interactive and self._output in ("table", "wide"):
            print(f"{CLEAR}{datetime.now(UTC):%H:%M:%S} UTC")
