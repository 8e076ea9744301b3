"""`vgpu-webhook why`: why a pod waits: it never fits, it does not fit now, or it fits and is not bound yet."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from webhook import names
from webhook.cli.options import FILE, SettingsOptions, output_option, refuse_url, settings_option
from webhook.cli.program import Command, ExitCode, bad_usage, report_warning
from webhook.cli.progress import Progress
from webhook.cli.usage import UsageCommand
from webhook.errors import ClusterError, ConfigError
from webhook.offline.documents import Document, read_documents
from webhook.offline.live import (
    Key,
    LiveCluster,
    LiveObjects,
    NodeStatus,
    PodGroup,
    group_of,
    key_of,
    read_node_status,
    read_pod_group,
)
from webhook.offline.objects import ObjectFiles
from webhook.offline.why import WaitingObject, WaitVerdict, explain_waiting
from webhook.render.terminal import Terminal
from webhook.render.why import as_json, as_yaml, show
from webhook.settings.files import SAMPLE_FLEET, SAMPLE_PODS, load_raw_nodes
from webhook.settings.snapshot import SnapshotInputs

PODGROUPS = f"/apis/{names.PODGROUP_API}/namespaces/{{}}/podgroups/{{}}"
JOBS = f"/apis/{names.VCJOB_API}/namespaces/{{}}/jobs/{{}}"
MAX_ANSWERS = 100  # documents of a manifest

_SUBJECT = re.compile(r"(?:(pod|pods|po|vcjob|vj|job\.batch\.volcano\.sh)/)?([^/]+)")
_FORBIDDEN, _NOT_FOUND = 403, 404

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
@click.option(
    "--pods",
    "pod_files",
    type=FILE,
    metavar="FILE",
    multiple=True,
    help="What `kubectl get pods,podgroups -A -o json` prints, instead of the cluster; can be repeated.",
)
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
    if settings.files.fleet == SAMPLE_FLEET and not pod_files:
        pod_files = (SAMPLE_PODS,)
    if settings.cluster is None and not pod_files:
        raise bad_usage("name the pods with --pods FILE, as `kubectl get pods,podgroups -A -o json` prints them")
    place = namespace or settings.namespace or "default"
    wanted = None
    if match is not None:
        wanted = Wanted("Pod" if match[1] is None or match[1].startswith("po") else "Job", (place, match[2]))
    inputs = settings.read()
    state = _from_files(settings, inputs, pod_files, wanted) if pod_files else _from_cluster(settings, inputs, wanted)
    subjects = [state.subject(wanted)] if wanted is not None else state.manifests(str(filename), place)
    answers = [explain_waiting(one, state.live) for one in subjects]
    if output == "text":
        terminal = Terminal(sys.stdout, os.environ)
        for number, answer in enumerate(answers):
            if number:
                terminal.line()
            show(answer, terminal)
    else:
        print(as_json(answers) if output == "json" else as_yaml(answers).rstrip("\n"))
    worst = max([answer.verdict for answer in answers], key=tuple(WaitVerdict).index)
    return _CODES[worst]


class Wanted(NamedTuple):
    """The object that is asked about: its kind, `Pod` or `Job`, and its namespace and name."""

    kind: str
    key: Key


class State(NamedTuple):
    """A cluster as it is now.

    Attributes:
        live: what live pods leave of the devices.
        objects: the pods that wait, and the object that is asked about.
    """

    live: LiveCluster
    objects: LiveObjects

    def subject(self, wanted: Wanted) -> WaitingObject:
        """The object that is asked about, with the pods that start together with it.

        Raises:
            ConfigError: it does not exist.
        """
        namespace, name = wanted.key
        raw = self.objects.wanted.get((wanted.kind, *wanted.key))
        if raw is None:
            kind = "pod" if wanted.kind == "Pod" else "Volcano Job"
            raise ConfigError(f"there is no {kind} {name} in namespace {namespace}; name another one with -n")
        waiting = self.objects.pods_of_job(wanted.key) if wanted.kind == "Job" else []
        own = group_of(raw) or next((group_of(pod) for pod in waiting if group_of(pod)), "")
        group = self.objects.groups.get((namespace, own))
        if own:
            waiting = self.objects.siblings((namespace, own))
        started = self.objects.started[namespace, own] + (group.succeeded if group is not None else 0)
        return WaitingObject(Document(f"{wanted.kind} {namespace}/{name}", raw), True, waiting, started, group)

    @staticmethod
    def manifests(path: str, namespace: str) -> list[WaitingObject]:
        """The objects of a manifest, at most 100."""
        documents = read_documents(path)
        if len(documents) > MAX_ANSWERS:
            report_warning(f"{path}: only the first {MAX_ANSWERS} of {len(documents)} objects are explained")
        return [WaitingObject(document, False, namespace=namespace) for document in documents[:MAX_ANSWERS]]


def _from_files(
    settings: SettingsOptions, inputs: SnapshotInputs, paths: Sequence[Path], wanted: Wanted | None
) -> State:
    """Read the pods of files; the nodes, too, may come from one."""
    snapshot = inputs.snapshot()
    objects = LiveObjects(snapshot, wanted={(wanted.kind, *wanted.key): None} if wanted else {})
    complaints: list[str] = []
    source = ObjectFiles([refuse_url(str(path)) for path in paths], complaints.append)
    progress = Progress(sys.stderr, lambda: source.share)
    for _, raw in source:
        progress.step()
        objects.add(raw)
    progress.clear()
    if complaints:
        raise ConfigError("; ".join(complaints))
    statuses = _statuses(settings)
    return State(LiveCluster(inputs, snapshot, objects.bound, statuses), objects)


def _from_cluster(settings: SettingsOptions, inputs: SnapshotInputs, wanted: Wanted | None) -> State:
    """Read the pods of a cluster: what all of them hold, and those of one namespace as they are."""
    snapshot, client = inputs.snapshot(), settings.client()
    objects = LiveObjects(snapshot)
    if wanted is not None:
        namespace, name = wanted.key
        path = f"/api/v1/namespaces/{namespace}/pods"
        try:
            raw = client.get(f"{path}/{name}" if wanted.kind == "Pod" else JOBS.format(namespace, name))
        except ClusterError as error:
            if error.status != _NOT_FOUND:
                raise
        else:
            objects.wanted[wanted.kind, *wanted.key] = raw
            for pod in client.list(path):
                objects.add(pod)
            own = group_of(raw) or next((group_of(pod) for pod in objects.pods_of_job(wanted.key)), "")
            if own and (group := _pod_group(settings, namespace, own)) is not None:
                objects.groups[namespace, own] = group
    bound = UsageCommand.read_cluster(settings, inputs)
    return State(LiveCluster(inputs, snapshot, bound, _statuses(settings)), objects)


def _pod_group(settings: SettingsOptions, namespace: str, name: str) -> PodGroup | None:
    try:
        return read_pod_group(settings.client().get(PODGROUPS.format(namespace, name)))
    except ClusterError as error:
        if error.status == _FORBIDDEN:
            report_warning(f"PodGroup {namespace}/{name} may not be read, so its gang is unknown")
        elif error.status != _NOT_FOUND:
            raise
        return None


def _statuses(settings: SettingsOptions) -> dict[str, NodeStatus]:
    """Which nodes take no pods, whatever their devices are."""
    found = {}
    for raw in _raw_nodes(settings):
        status = read_node_status(raw)
        if status != NodeStatus():
            found[key_of(raw)[1]] = status
    return found


def _raw_nodes(settings: SettingsOptions) -> Iterator[dict[str, object]]:
    if settings.files.fleet is not None:
        yield from load_raw_nodes(settings.files.fleet)
    elif settings.cluster is not None:
        yield from settings.client().list("/api/v1/nodes")
