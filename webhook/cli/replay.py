"""`vgpu-webhook replay`: which recorded decisions change with another policy, device config, fleet or target."""

import sys
from pathlib import Path

import click

from webhook.audit.changes import Changes
from webhook.audit.decision import Decision
from webhook.audit.filters import Filter
from webhook.audit.replay import Replayer, ReplayVerdict
from webhook.cli.audit import LogReading, filter_option, log_files_option
from webhook.cli.inputs import SettingsOptions, pods_option, settings_option
from webhook.cli.options import Parsed, output_option, target_option
from webhook.cli.program import Command, bad_usage, exit_code, report_warning
from webhook.cli.why import cluster_source
from webhook.devices.node_changes import node_changes
from webhook.render.replay import json_change, json_changes, json_rehearsal, show_changes, show_rehearsal
from webhook.render.terminal import Terminal
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.trial import MAX_SPLIT, try_out
from webhook.snapshot import Snapshot
from webhook.why.rehearsal import waiting_changes
from webhook.why.waiting import FileSource, WaitingState

_EPILOG = """
Replaying with the original inputs changes nothing. Inputs that differ from the original are listed. Give the original
files and try something out on top of them, or give others.

  vgpu-webhook replay --fleet fleet.yaml --device-config device-config.yaml --policy policy.yaml audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --what-if split=4 audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --set rules.host-access=deny audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --set 'namespaces.team-*.rules.card-count=warn' audit.jsonl

Rehearse an upgrade of Volcano, its device plugin or the kubelets: which decisions change, which nodes gain or lose their
cards, and which waiting pods would start, each by itself.

  vgpu-webhook replay --cluster --target volcano=1.16.0,devicePlugin=1.13.0 audit.jsonl
  vgpu-webhook replay --fleet nodes.json --pods pods.json --target volcano=1.16.0 audit.jsonl

exit codes:
  0  nothing changes
  1  some decisions, nodes or waiting pods change
  2  bad input or configuration, or no audit line; what could be read is reported all the same
"""


def _split(text: str) -> int:
    """The number of slices of each card in `split=N`."""
    key, _, number = text.partition("=")
    if key != "split" or not number.isdecimal() or not 1 <= int(number) <= MAX_SPLIT:
        raise ValueError(f"{text!r} is not split=N with N from 1 to {MAX_SPLIT}")
    return int(number)


MAX_WAITING = 1_000  # pods that are rehearsed


@click.command("replay", cls=Command, epilog=_EPILOG)
@log_files_option("-f", "--filename")
@settings_option("Replay with the nodes, the device config and the policy of the cluster.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Try out a key of the policy: rules.ID=LEVEL, namespaces.GLOB.rules.ID=LEVEL, workloads=deny; can be repeated.",
)
@click.option(
    "--what-if",
    "split",
    type=Parsed("split=n", _split),
    help="Try out a fleet whose vGPU cards are split into N slices each.",
)
@target_option(" With --cluster it also reads all pods.")
@pods_option(
    "What `kubectl get pods,podgroups -A -o json` prints: which of the waiting pods would start; can be repeated."
)
@output_option("table", "json", more=" json is one line for each change.")
@filter_option
def command(
    files: tuple[str, ...],
    settings: SettingsOptions,
    changes: tuple[str, ...],
    split: int | None,
    target: tuple[str, ...],
    pod_files: tuple[Path, ...],
    output: str,
    wanted: Filter,
) -> int:
    """Show which recorded decisions change with another policy, device config, fleet or target."""
    settings_tried = (*changes, *target)
    if pod_files and not settings_tried and split is None:
        raise bad_usage("--pods shows which waiting pods would start: add what to try, such as --target volcano=1.16.0")
    inputs = settings.read()
    base = inputs.snapshot()
    tried_inputs = try_out(inputs, settings_tried, split) if settings_tried or split is not None else inputs
    tried = tried_inputs.snapshot() if tried_inputs is not inputs else base
    log, found, replayer = LogReading(files, wanted), Changes(), Replayer(base, tried)

    def replay(decision: Decision) -> None:
        replayed = replayer.replay(decision)
        found.add(replayed)
        if output == "json" and replayed.verdict is not ReplayVerdict.SAME:
            print(json_change(replayed))

    # A wanted /validate decision may be about a pod whose /mutate decision is not wanted.
    log.each(replay, replayer.note, quiet=output == "json" and sys.stdout.isatty())
    nodes = list(node_changes(base.fleet, tried.fleet)) if base.fleet is not None and tried.fleet is not None else []
    waiting = []
    if pod_files or (target and settings.cluster is not None):
        state = _waiting(settings, inputs, base, pod_files)
        pods = sorted(state.objects.wait_for_devices)
        if len(pods) > MAX_WAITING:
            report_warning(f"only the first {MAX_WAITING:,} of {len(pods):,} waiting pods are rehearsed")
        waiting = list(waiting_changes(pods[:MAX_WAITING], state, state.with_settings(tried_inputs, tried)))
    if output == "json":
        for line in json_rehearsal(nodes, waiting):
            print(line)
        print(json_changes(found, base.digests))
    else:
        terminal = Terminal()
        show_rehearsal(nodes, waiting, terminal)
        show_changes(found, base.digests, terminal)
    log.report_skipped()
    return exit_code(unread=log.complaints > 0, found=found.any or bool(nodes or waiting))


def _waiting(
    settings: SettingsOptions, inputs: SnapshotInputs, snapshot: Snapshot, pod_files: tuple[Path, ...]
) -> WaitingState:
    """The pods of files, or of the cluster."""
    if pod_files:
        return FileSource(pod_files, lambda: (inputs, snapshot), settings.raw_nodes).read(None)
    return cluster_source(settings, inputs).waiting()
