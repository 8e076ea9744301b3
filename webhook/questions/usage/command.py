"""`vgpu-webhook usage`: who holds which slice of which device, what is free, and the largest pod that fits now."""

import gc
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import click

from webhook.cli.inputs import SettingsOptions, settings_option
from webhook.cli.options import output_option, pods_option, refuse_both
from webhook.cli.program import Command, Complaints, ExitCode, bad_usage, exit_code, report_warning
from webhook.cli.progress import Progress, read_bound_pods
from webhook.cli.terminal import Terminal
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader, occupancy
from webhook.devices.usage import UsageReport, report
from webhook.emit import emit
from webhook.errors import ConfigError
from webhook.inputs.documents import ObjectFiles
from webhook.questions.usage.text import WAYS, show
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.table import FLEET, PODS
from webhook.snapshot import Snapshot

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
    pod_files = settings.or_sample_pods(pod_files)
    if settings.cluster is None and not pod_files:
        raise bad_usage("name the pods with --pods FILE, as `kubectl get pods -A -o json` prints them")
    usage = UsageCommand(UsageSelection(nodes, namespaces, size), by, output)
    if watch:
        usage.follow(settings)
        return ExitCode.OK
    with _without_collector():
        inputs = settings.read()
        pods = usage.read_files(pod_files, inputs) if pod_files else read_bound_pods(settings, inputs)
    usage.show(inputs, pods)
    return exit_code(unread=usage.complain.count > 0)


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
    """Reads pods, and prints what they hold.

    Attributes:
        complain: reports what could not be read.
    """

    def __init__(self, selection: UsageSelection, by: str, output: str) -> None:
        """Take what to show, and how."""
        self._selection = selection
        self._by = by
        self._output = output
        self._terminal = Terminal(wide=output == "wide")
        self.complain = Complaints()

    def read_files(self, paths: Sequence[Path], inputs: SnapshotInputs) -> list[BoundPod]:
        """Read the bound pods of files; whatever else they hold is left out."""
        snapshot = inputs.snapshot()
        reader = BoundPodReader.under(snapshot.config, snapshot.target)
        source = ObjectFiles([str(path) for path in paths], self.complain)
        progress = Progress(sys.stderr, lambda: source.share)
        found, pods, others = [], 0, 0
        for document in source:
            progress.step()
            raw = document.value
            if isinstance(raw, dict) and raw.get("kind") == "Pod":
                pods += 1
                pod = reader.read(raw)
                if pod is not None:
                    found.append(pod)
            else:
                others += 1
        progress.clear()
        if others and not pods and not self.complain.count:
            raise ConfigError(f"{paths[0]}: there is no pod in it; write what `kubectl get pods -A -o json` prints")
        return found

    def follow(self, settings: SettingsOptions) -> None:
        """Follow nodes, pods and settings, and print what they come to whenever it changes."""
        from webhook.cluster.pods import BOUND  # noqa: PLC0415
        from webhook.cluster.reflector import Access, Reflector  # noqa: PLC0415  # only --cluster needs the Kubernetes client
        from webhook.cluster.watcher import SettingsWatcher  # noqa: PLC0415

        settings.read()  # what cannot be used or read is an error now, and a warning later
        changed = threading.Event()
        pods: Reflector[BoundPod] = Reflector(Access(settings.client, changed=changed.set), "pods", PODS, BOUND)
        shown: tuple[Snapshot, int] | None = None
        told: set[str | None] = set()
        with SettingsWatcher(settings.files, settings.cluster, lambda _: changed.set()) as watcher:
            try:
                while True:
                    inputs, snapshot = watcher.current
                    reader = BoundPodReader.under(snapshot.config, snapshot.target)
                    pods.follow(reader.read, reader)
                    version = snapshot, pods.version
                    ready = watcher.settled.is_set() and pods.copy.key == reader
                    if ready and snapshot.knows_nodes and version != shown:
                        shown = version
                        self._clear()
                        self.show(inputs, list(pods.objects.copy().values()))
                    problems = {pods.problem, *(one.source.problem for one in watcher.statuses())}
                    for problem in sorted(filter(None, problems - told)):
                        report_warning(problem)
                    told = problems
                    time.sleep(WATCH_SECONDS if shown else 0.0)
                    changed.wait(WATCH_SECONDS)
                    changed.clear()
            finally:
                pods.stop()

    def show(self, inputs: SnapshotInputs, pods: Sequence[BoundPod]) -> None:
        """Print what the pods hold."""
        found = self._report(inputs, pods)
        emit([found], self._output, lambda: show(found, self._by, self._terminal, wide=self._output == "wide"))

    def _report(self, inputs: SnapshotInputs, pods: Sequence[BoundPod]) -> UsageReport:
        snapshot = inputs.snapshot()
        if snapshot.fleet is None or inputs.nodes is None:
            raise ConfigError("the nodes are not known; name them with --fleet, or read the cluster")
        found = occupancy(inputs.nodes, pods, snapshot.fleet)
        selection = self._selection
        known = {node.name for node in found.nodes}
        for name in selection.nodes:
            if name not in known:
                raise ConfigError(
                    f"node {name} has no devices that the scheduler uses; `usage` without --node lists all"
                )
        return report(found, snapshot.families, *selection)

    def _clear(self) -> None:
        if self._terminal.interactive and self._output in ("table", "wide"):
            print(f"{CLEAR}{datetime.now(UTC):%H:%M:%S} UTC")
