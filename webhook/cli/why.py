"""`vgpu-webhook why`: why a pod waits: it never fits, it does not fit now, or it fits and is not bound yet."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from webhook.cli.inputs import SettingsOptions, pods_option, settings_option
from webhook.cli.options import FILE, output_option
from webhook.cli.program import Command, ExitCode, bad_usage, report_warning
from webhook.cli.progress import Progress
from webhook.cli.usage import UsageCommand
from webhook.inputs.documents import read_documents
from webhook.render.terminal import Terminal
from webhook.render.why import as_json, as_yaml, show
from webhook.settings.snapshot import SnapshotInputs
from webhook.why.answer import WaitingObject, explain_objects
from webhook.why.live import LiveCluster
from webhook.why.node_reasons import WaitVerdict
from webhook.why.waiting import ClusterSource, FileSource, WaitingState, Wanted

MAX_ANSWERS = 100  # documents of a manifest

_SUBJECT = re.compile(r"(?:(pod|pods|po|vcjob|vj|job\.batch\.volcano\.sh)/)?([^/]+)")

_EPILOG = """
It reads nodes, pods and PodGroups, and changes nothing. It judges devices; cpu, memory and pod affinity keep pods waiting, too.

  kubectl vgpu why train-0 -n team-a
  kubectl vgpu why vcjob/train
  kubectl vgpu why -f pod.yaml
  kubectl get pods,podgroups -A -o json > pods.json; kubectl get nodes -o json > nodes.json
  kubectl vgpu why train-0 -n team-a --fleet nodes.json --pods pods.json

exit codes:
  0  it fits now, or does not wait
  1  it does not fit now
  2  something could not be read or decided
  3  it never fits this fleet
"""
_CODES = {
    WaitVerdict.BOUND: ExitCode.OK,
    WaitVerdict.FITS_NOW: ExitCode.OK,
    WaitVerdict.NOT_NOW: ExitCode.FOUND,
    WaitVerdict.UNKNOWN: ExitCode.BAD_INPUT,
    WaitVerdict.NEVER: ExitCode.NEVER,
}


@click.command("why", cls=Command, epilog=_EPILOG)
@click.argument("subject", metavar="[POD|vcjob/NAME]", required=False)
@settings_option("Read the cluster, which is the default without --fleet.", cluster_by_default=True)
@click.option(
    "-f",
    "--filename",
    type=FILE,
    metavar="FILE",
    help="A manifest that is not applied yet, instead of a name: would its pods fit now?",
)
@pods_option("What `kubectl get pods,podgroups -A -o json` prints, instead of the cluster; can be repeated.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="Of the pod; default that of the context, without a cluster `default`.",
)
@output_option("text", "json", "yaml", more=" json is one line for each object.")
def command(
    subject: str | None,
    settings: SettingsOptions,
    filename: Path | None,
    pod_files: tuple[Path, ...],
    namespace: str | None,
    output: str,
) -> int:
    """Show why a pod waits, what holds the devices, and what would let it start now."""
    if (subject is None) == (filename is None):
        raise bad_usage("name a pod, vcjob/NAME, or a manifest with -f FILE")
    match = _SUBJECT.fullmatch(subject) if subject is not None else None
    if subject is not None and match is None:
        raise bad_usage(f"{subject!r} is neither POD nor vcjob/NAME")
    pod_files = settings.or_sample_pods(pod_files)
    if settings.cluster is None and not pod_files:
        raise bad_usage("name the pods with --pods FILE, as `kubectl get pods,podgroups -A -o json` prints them")
    place = namespace or settings.namespace or "default"
    wanted = None
    if match is not None:
        wanted = Wanted("Pod" if match[1] is None or match[1].startswith("po") else "Job", (place, match[2]))
    inputs = settings.read()
    state = _from_files(settings, inputs, pod_files, wanted) if pod_files else _from_cluster(settings, inputs, wanted)
    subjects = [state.subject(wanted)] if wanted is not None else _manifests(str(filename), place)
    answers, problems = explain_objects(subjects, state.live)
    for problem in problems:
        report_warning(problem)
    if output == "text":
        terminal = Terminal()
        for number, answer in enumerate(answers):
            if number:
                terminal.line()
            show(answer, terminal)
    else:
        print(as_json(answers) if output == "json" else as_yaml(answers).rstrip("\n"))
    worst = max([answer.verdict for answer in answers], key=tuple(WaitVerdict).index)
    return _CODES[worst]


def _manifests(path: str, namespace: str) -> list[WaitingObject]:
    """The objects of a manifest, at most 100."""
    documents = read_documents(path)
    if len(documents) > MAX_ANSWERS:
        report_warning(f"{path}: only the first {MAX_ANSWERS} of {len(documents)} objects are explained")
    return [WaitingObject(document, False, namespace=namespace) for document in documents[:MAX_ANSWERS]]


def _from_files(
    settings: SettingsOptions, inputs: SnapshotInputs, paths: Sequence[Path], wanted: Wanted | None
) -> WaitingState:
    """Read the pods of files; the nodes may come from a cluster."""
    snapshot = inputs.snapshot()
    source = FileSource(paths, lambda: (inputs, snapshot), settings.raw_nodes)
    progress = Progress(sys.stderr, source.share)
    try:
        return source.read(wanted, progress.step)
    finally:
        progress.clear()


def _from_cluster(settings: SettingsOptions, inputs: SnapshotInputs, wanted: Wanted | None) -> WaitingState:
    """Read the pods of a cluster: what all of them hold, and those of one namespace as they are."""

    def live() -> LiveCluster:
        return LiveCluster(inputs, inputs.snapshot(), UsageCommand.read_cluster(settings, inputs))

    return ClusterSource(settings.client, live, report_warning).read(wanted)
