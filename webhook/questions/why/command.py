"""`vgpu-webhook why`: why a pod waits: it never fits, it does not fit now, or it fits and is not bound yet."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

import click

from webhook.cli.inputs import namespace_of
from webhook.cli.options import output_option, pods_option
from webhook.cli.program import FILE, Command, ExitCode, bad_usage, report_warning
from webhook.cli.reading import reading
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import Terminal
from webhook.inputs.documents import read_documents
from webhook.live.reader import LiveState, Wanted
from webhook.output.formats import emit
from webhook.pod.workload_kinds import POD, VCJOB, WorkloadKind, WorkloadKinds
from webhook.questions.why.answer import WaitAnswer, explain_objects
from webhook.questions.why.listing import WaitingPod, list_waiting
from webhook.questions.why.node_reasons import WaitVerdict, rank
from webhook.questions.why.subject import WaitingObject, subjects_of, wanted_object
from webhook.questions.why.text import show_answers, show_waiting

MAX_ANSWERS = 100  # documents of a manifest

_SUBJECT = re.compile(r"(?:([^/]+)/)?([^/]+)")

_SHORT_NAMES = {
    "cj": ("batch", "CronJob"),
    "deploy": ("apps", "Deployment"),
    "ds": ("apps", "DaemonSet"),
    "po": POD.key,
    "rc": ("", "ReplicationController"),
    "rs": ("apps", "ReplicaSet"),
    "sts": ("apps", "StatefulSet"),
    "vcjob": VCJOB,
    "vj": VCJOB,
}

_EPILOG = """
Without a name it lists all pods that wait for devices. It reads nodes, pods and PodGroups, and changes nothing. It judges
devices; cpu, memory and pod affinity keep pods waiting, too.

  kubectl vgpu why
  kubectl vgpu why train-0 -n team-a
  kubectl vgpu why deployment/server
  kubectl vgpu why vcjob/train
  kubectl vgpu why -f pod.yaml
  kubectl get pods,podgroups -A -o json > pods.json; kubectl get nodes -o json > nodes.json
  kubectl vgpu why train-0 -n team-a --fleet nodes.json --pods pods.json

exit codes, of several pods that of the worst:
  0  it fits now, or does not wait
  1  it does not fit now
  2  something could not be read or decided
  4  it never fits this fleet
"""
_CODES = {
    WaitVerdict.BOUND: ExitCode.OK,
    WaitVerdict.FITS_NOW: ExitCode.OK,
    WaitVerdict.NOT_NOW: ExitCode.FOUND,
    WaitVerdict.UNKNOWN: ExitCode.BAD_INPUT,
    WaitVerdict.NEVER: ExitCode.NEVER,
}


@click.command("why", cls=Command, epilog=_EPILOG)
@click.argument("subject", metavar="[POD|KIND/NAME]", required=False)
@settings_option("Read the cluster, which is the default without --fleet.", cluster_by_default=True)
@click.option(
    "-f", "--filename", type=FILE, help="A manifest that is not applied yet, instead of a name: would its pods fit now?"
)
@pods_option("What `kubectl get pods,podgroups -A -o json` prints, instead of the cluster; can be repeated.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="Of the pod; default that of the context, without a cluster `default`. Without a name: only its pods.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="List the pods of all namespaces, which is the default.")
@output_option("text", "wide", "json", "yaml", more=" json is one line for each object.")
def command(
    subject: str | None,
    settings: SettingsOptions,
    filename: Path | None,
    pod_files: tuple[Path, ...],
    namespace: str | None,
    all_namespaces: bool,
    output: str,
) -> int:
    """Show why a pod waits, what holds the devices, and what would let it start now."""
    listed = subject is None and filename is None
    if subject is not None and filename is not None:
        raise bad_usage("name a pod or KIND/NAME, or a manifest with -f FILE, not both")
    if all_namespaces and (namespace or not listed):
        raise bad_usage("--all-namespaces lists waiting pods: leave out the name, -f and --namespace")
    named = _parse(subject) if subject is not None else None
    place = namespace or namespace_of(settings.cluster) or "default"
    with reading(settings, pod_files, may_be_empty=filename is not None) as reader:
        wanted = _wanted(*named, place, reader.settings()[0].policy.workload_kinds) if named is not None else None
        state = reader.waiting() if listed else reader.read(wanted)
    if listed:
        return _list(state, namespace, output)
    subjects = [wanted_object(state, wanted)] if wanted is not None else _manifests(str(filename), place)
    answers, problems = explain_objects(subjects, state.live)
    for problem in problems:
        report_warning(problem)
    emit(answers, output, lambda: show_answers(answers, Terminal()))
    return _exit_code(answers)


def _parse(subject: str) -> tuple[str, str]:
    """The kind and the name of what is named."""
    match = _SUBJECT.fullmatch(subject)
    if match is None:
        raise bad_usage(f"{subject!r} is neither POD nor KIND/NAME")
    return match[1] or "pod", match[2]


def _wanted(word: str, name: str, namespace: str, kinds: WorkloadKinds) -> Wanted:
    kind = _kind_named(word, kinds)
    if kind is None:
        known = sorted({each.kind.lower() for each in kinds.values()})
        guess = get_close_matches(word.lower(), known, 1)
        meant = (
            f"did you mean {guess[0]}?" if guess else "add it to workloadKinds of the policy, or name one of its pods"
        )
        raise bad_usage(f"no kind of workload is called {word!r}; {meant}")
    return Wanted((namespace, name), kind)


def _kind_named(word: str, kinds: WorkloadKinds) -> WorkloadKind | None:
    """The kind that a word of kubectl names, in any letters: `deployment`, `jobs.batch.volcano.sh`, `sts`, `vcjob`, `pod`.

    Of several groups without a name, Kubernetes' own comes first; None if no kind has this name.
    """
    name, _, group = word.lower().partition(".")
    short = _SHORT_NAMES.get(name)
    for kind in (POD, *kinds.values()):
        named = name in (kind.kind.lower(), kind.plural) or short == kind.key
        if named and group in ("", kind.group):
            return kind
    return None


def _list(state: LiveState, namespace: str | None, output: str) -> int:
    """List the pods that wait."""
    found = list_waiting(state, [namespace] if namespace else ())
    emit(found.pods, output, lambda: show_waiting(found, Terminal(wide=output == "wide"), datetime.now(UTC)))
    if found.more and output not in ("text", "wide"):
        report_warning(f"{found.more:,} younger pods are left out")
    return _exit_code(found.pods)


def _exit_code(answers: Sequence[WaitAnswer | WaitingPod]) -> int:
    return _CODES[max([answer.verdict for answer in answers], key=rank, default=WaitVerdict.BOUND)]


def _manifests(path: str, namespace: str) -> list[WaitingObject]:
    """The objects of a manifest, at most 100."""
    documents = read_documents(path)
    if len(documents) > MAX_ANSWERS:
        report_warning(f"{path}: only the first {MAX_ANSWERS} of {len(documents)} objects are explained")
    return subjects_of(documents[:MAX_ANSWERS], namespace)
