"""Why a pod waits: the page that draws the answer, and the list of the pods that wait."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import click
from pydantic import Field, StringConstraints
from werkzeug.exceptions import RequestEntityTooLarge

from webhook import names
from webhook.cli.program import bad_usage
from webhook.console.guard import computing
from webhook.console.pages import Section
from webhook.console.state import NO_PODS, ConsoleState, Sources
from webhook.console.texts import MAX_MANIFEST, MAX_NAME, SOURCE
from webhook.errors import ConfigError, WebhookError
from webhook.inputs.documents import Document, parse_documents
from webhook.lenient import at, obj
from webhook.live.reader import Reader, Wanted
from webhook.output.json import ResponseModel
from webhook.questions.why.answer import WaitAnswer, explain_objects, explain_waiting
from webhook.questions.why.events import PACE, WaitingEvents
from webhook.questions.why.listing import WaitingPod, list_waiting
from webhook.questions.why.node_reasons import WaitVerdict
from webhook.questions.why.subject import existing, subjects_of, wanted_object
from webhook.questions.why.text import age, hints, holder_words, nearest_words, waiting_words

MAX_LISTED = 500  # waiting pods
LIST_SECONDS = 5.0  # to explain them
MAX_DOCUMENTS = 5  # of a manifest
MAX_REASONS = 50  # of an answer, on the page
MAX_DRAWINGS = 12  # on the page

# Each verdict in words, the class of its colour, and its sign.
VERDICTS = {
    WaitVerdict.BOUND: ("Does not wait", "good", "✓"),
    WaitVerdict.FITS_NOW: ("Fits now", "good", "✓"),
    WaitVerdict.UNKNOWN: ("Cannot be decided", "warn", "?"),
    WaitVerdict.NOT_NOW: ("Does not fit now", "warn", "▲"),
    WaitVerdict.NEVER: ("Never fits this fleet", "bad", "✕"),
}


class WaitingResponse(ResponseModel):
    """The pods that wait for devices.

    Attributes:
        known: False if the console reads no pods.
        problem: why they cannot be read, and what to do; null if they can.
        pods: as `vgpu-webhook why -o json` lists them: those that never start first, then the oldest; at most 500.
        more: how many are left out.
    """

    known: bool
    problem: str | None
    pods: tuple[WaitingPod, ...]
    more: int


Name = StringConstraints(max_length=2 * MAX_NAME, strip_whitespace=True)
Namespace = Annotated[str, Name, Field(description="of the pod; also of a manifest that names none")]
PodName = Annotated[str, Name, Field(description="the name of a waiting pod, or NAMESPACE/NAME")]
Manifest = Annotated[
    str,
    Field(description="YAML or JSON, at most 256 KiB, of which the first 5 objects are explained; instead of a name"),
]


class WhyResponse(ResponseModel):
    """Why pods wait.

    Attributes:
        answers: one for each object, as `vgpu-webhook why -o json` prints it.
        problems: why other objects of the manifest have none.
    """

    answers: tuple[WaitAnswer, ...]
    problems: tuple[str, ...] = ()


def follow(sources: Sources) -> Reader | None:
    """What reads the waiting pods, with a writer of Events about them if that is wanted; None if no pods are read."""
    if sources.reader and sources.cluster and sources.connect and sources.given.get("events"):
        from webhook.cluster.credentials import Credentials  # noqa: PLC0415  # the Kubernetes client takes a second to load
        from webhook.cluster.lease import Lease  # noqa: PLC0415

        namespace = Credentials(sources.cluster.kubeconfig, sources.cluster.context).webhook_namespace
        lease, full = Lease(namespace, names.EVENTS_LEASE), sources.given["events"] == FULL
        pace = sources.given.get("event_pace", PACE)
        WaitingEvents(sources.connect, lease, sources.reader, names_others=full, pace=pace).start()
    return sources.reader


def check(given: Mapping[str, Any], follows_pods: bool) -> None:
    """Refuse --events where the pods of no cluster are followed."""
    if given["events"] and not follows_pods:
        raise bad_usage("--events is about the pods of a cluster: add --cluster, and leave out --pods")


PLAIN, FULL = "plain", "full"
EVENTS = click.option(
    "--events",
    is_flag=False,
    flag_value=PLAIN,
    type=click.Choice([PLAIN, FULL]),
    help="Write an Event about each waiting pod when its verdict changes; with --cluster, and the right to create Events. "
    "--events=full also names the pods of other namespaces that hold what a pod waits for.",
)
SECTION = Section("Why pods wait", options=[EVENTS], check=check, follow=follow)


def _reader(state: ConsoleState) -> Reader | None:
    found: Reader | None = state.followed.get("why")
    return found


def drawn(state: ConsoleState, _: Any, __: Any) -> Mapping[str, Any]:
    """What the page shows besides the answers."""
    with computing():
        listed = waiting(state)
    return {
        "listed": listed,
        "verdicts": VERDICTS,
        "rows": lambda answer: answer.by_node[:MAX_REASONS],
        "now": datetime.now(UTC),
        "age": age,
        "waiting_words": waiting_words,
        "nearest_words": nearest_words,
        "hints": hints,
        "holder_words": holder_words,
        "most_drawings": MAX_DRAWINGS,
    }


@SECTION.page("/why", "why.html", more=drawn, methods=("GET", "POST"), heavy=True, form=True)
def why(state: ConsoleState, namespace: Namespace = "", pod: PodName = "", manifest: Manifest = "") -> WhyResponse:
    """Why a pod waits: what refuses it, who holds the devices, and what would help."""
    if pod and manifest:
        raise ConfigError("name a waiting pod, or write a manifest")
    if "/" in pod:  # the list has namespace and name in one
        namespace, _, pod = pod.partition("/")
    if not pod and not manifest:
        return WhyResponse(answers=())
    reader = _reader(state)
    if reader is None:
        raise ConfigError(NO_PODS)
    if pod:
        wanted = Wanted((namespace or "default", pod))
        cluster = reader.read(wanted)
        return WhyResponse(answers=(explain_waiting(wanted_object(cluster, wanted), cluster.live),))
    data = manifest.encode(errors="surrogatepass")
    if len(data) > MAX_MANIFEST:
        raise RequestEntityTooLarge(
            f"the manifest is larger than {MAX_MANIFEST >> 10} KiB; use `vgpu-webhook why -f FILE`"
        )
    written = subjects_of(parse_documents(data, SOURCE)[:MAX_DOCUMENTS], namespace or "default")
    cluster = reader.read(None)
    subjects = [existing(cluster, each.document) if _exists(each.document) else each for each in written]
    answers, problems = explain_objects(subjects, cluster.live)
    return WhyResponse(answers=tuple(answers), problems=tuple(problems))


@SECTION.page("/waiting", heavy=True)
def waiting(state: ConsoleState) -> WaitingResponse:
    """The pods that wait for devices."""
    reader = _reader(state)
    if reader is None:
        return WaitingResponse(known=False, problem=NO_PODS, pods=(), more=0)
    try:
        found = list_waiting(reader.waiting(), seconds=LIST_SECONDS)
    except WebhookError as error:
        return WaitingResponse(known=False, problem=str(error), pods=(), more=0)
    pods = found.pods[:MAX_LISTED]
    return WaitingResponse(known=True, problem=None, pods=pods, more=len(found.pods) - len(pods) + found.more)


def _exists(document: Document) -> bool:
    """Whether a document was printed by kubectl: the API server gave it a uid and a phase."""
    value = document.value
    return at(value, "kind") == "Pod" and bool(at(value, "metadata", "uid")) and "phase" in obj(value, "status")
