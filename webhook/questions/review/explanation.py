"""An explanation for the terminal and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, cast

from webhook.cli.terminal import INDENT, Style, Terminal
from webhook.devices import wording
from webhook.devices.explanation import PlacementRequest, PodExplanation, Sentence, ShapeExplanation
from webhook.devices.families import Family
from webhook.devices.nearest import ChangeSearch
from webhook.devices.vgpu.explain_gang import GangExplanation, explain_gang
from webhook.devices.vgpu.family import VgpuFamily
from webhook.document_review import Reviewed
from webhook.outcome import PodReview
from webhook.output.json import as_value
from webhook.review.changes import admission, status_takes_less
from webhook.rules.workloads import Workload
from webhook.snapshot import Snapshot
from webhook.texts import and_more

SHOWN_GATED = 3

_PLACEMENTS = {
    "fits": (Style.GOOD, "fits"),
    "tight": (Style.WARNING, "fits tightly"),
    "never": (Style.BAD, "never"),
    "unknown": (Style.WARNING, "unknown"),
}
_GANGS = {
    "fits": "the empty nodes take them, for example so",
    "tight": "the empty nodes have room for them, but the scheduler's order misses it, for example so",
    "never": "the empty nodes have no room for them, but for these",
    "unknown": "whether the empty nodes have room for them could not be computed",
}
_FOR_PEOPLE = frozenset({"declared", "devices", "sentences", "drawing"})  # not part of the JSON


@dataclass(frozen=True, slots=True)
class ObjectExplanation:
    """Which nodes take the pods of an object, each alone, and together if they start together.

    Attributes:
        pods: each pod, for each family that it requests devices of.
        gang: None if the pods start one by one or request no vGPU, or if the nodes are not known.
    """

    pods: tuple[PodExplanation, ...]
    gang: GangExplanation | None


def explain_object(reviewed: Reviewed) -> ObjectExplanation:
    """Explain an object that was reviewed."""
    return ObjectExplanation(tuple(explain_pods(reviewed.outcome.pods)), gang_of(reviewed))


def gang_of(reviewed: Reviewed) -> GangExplanation | None:
    """Explain the pods of an object that start together; None if there are none, or the nodes are not known."""
    request, pods = reviewed.request, {each.path: each.pod for each in reviewed.outcome.pods}
    if request.object is None or not any(pods):  # a pod by itself has an empty path
        return None
    context = next(iter(pods.values())).context
    judged = Workload(request.group, request.kind, request.object, pods, context).judged
    if judged is None or context.cluster.fleet is None:
        return None
    return explain_gang(judged, context.cluster.fleet.vgpu, cast("VgpuFamily", context.cluster.families[Family.VGPU]))


def explain_pods(pods: Iterable[PodReview], search: ChangeSearch | None = None) -> list[PodExplanation]:
    """Explain the pods of an outcome to the nodes of each family that they request devices of.

    Args:
        pods: the pods.
        search: of changes, if its steps limit this and other explanations; None for a search for each pod.
    """
    return [
        explained
        for each in pods
        for pod, snapshot in ((each.pod, cast("Snapshot", each.pod.cluster)),)
        if (fleet := pod.cluster.fleet) is not None
        for family in pod.cluster.families.values()
        if pod.requests_family(family.id)
        for explained in PlacementRequest(pod, family, pod.matches(family.id), pod.context.denies, each.path)
        ._replace(search=search, takes_less=partial(status_takes_less, pod.memory), admits=admission(pod, snapshot))
        .explain(fleet.parts[family.id])
    ]


# --- for the terminal -----------------------------------------------------------------------------------------------


def show(explained: PodExplanation, terminal: Terminal) -> None:
    """Write which nodes of one family take a pod."""
    about = (f" with {explained.chip}" if explained.chip else "") + (f" for {explained.pod}" if explained.pod else "")
    terminal.line(INDENT, (Style.BOLD, f"{explained.family} nodes"), about)
    inner = INDENT * 2
    if explained.shapes is None:
        terminal.line(inner, "nothing to place: correct the quantities first")
        return
    if explained.ignored:
        terminal.line(inner, f"your {explained.ignored} leaves none of them, so it is ignored here")
    for shape in explained.shapes:
        _show_shape(shape, explained.selector, terminal)
    if explained.more > 0:
        terminal.line(inner, f"and {explained.more} more kinds of nodes")
    if explained.missing and not explained.skipped:
        terminal.line(inner, explained.missing)
    for skipped in explained.skipped[:SHOWN_GATED]:
        terminal.line(
            inner,
            (Style.BAD, "never "),
            INDENT,
            (Style.BOLD, skipped.node),
            f": the scheduler skips it, {wording.lacks(skipped.missing)}",
        )
    more = len(explained.skipped) + explained.more_skipped - SHOWN_GATED
    if more > 0:
        terminal.line(inner, f"and {more} more nodes that the scheduler skips")


def show_gang(gang: GangExplanation, terminal: Terminal) -> None:
    """Write which nodes take the pods of a gang together, and how many are left over."""
    terminal.line(INDENT, (Style.BOLD, "gang"), f" of {gang.minimum} pods that start together ({gang.path})")
    inner = INDENT * 2
    style, word = _PLACEMENTS[gang.placement]
    terminal.line(inner, (style, f"{word:<6}"), INDENT, _GANGS[gang.placement])
    inner += " " * 8
    for nodes in gang.nodes:
        each = " each" if nodes.nodes > 1 else ""
        terminal.line(inner, (Style.BOLD, _names(nodes.names, nodes.nodes)), f": {gang_pods(gang, nodes.pods)}{each}")
    if gang.more:
        terminal.line(inner, f"and {gang.more} more kinds of nodes")
    if left := gang_pods(gang, [task.left for task in gang.tasks]):
        terminal.line(inner, f"left over: {left}")


def gang_pods(gang: GangExplanation, pods: Sequence[int]) -> str:
    """So many pods of each task, for people: `2 × worker, 1 × server`."""
    counted = zip(gang.tasks, pods, strict=False)
    return ", ".join([f"{count:,} × {task.name or 'pod'}" for task, count in counted if count])


def _show_shape(explained: ShapeExplanation, selector: str, terminal: Terminal) -> None:
    inner = INDENT * 2
    style, word = _PLACEMENTS[explained.placement]
    names = _names(explained.names, explained.nodes) + (" (declared)" if explained.declared else "")
    terminal.line(inner, (style, f"{word:<6}"), INDENT, (Style.BOLD, names), ": ", explained.devices)
    selected = explained.selected
    if selected is not None and 0 < selected.nodes < explained.nodes:
        left = f"your {selector} leaves {_names(selected.names, selected.nodes)}"
        terminal.paragraph(inner + " " * 8, (), left)
    for sentence in explained.sentences:
        head = _mark(sentence, found=explained.change is not None)
        terminal.paragraph(inner + " " * 8, (head,), sentence.text)


def _mark(sentence: Sentence, *, found: bool) -> tuple[Style, str]:
    if not sentence.mark:
        return Style.PLAIN, ""
    return Style.GOOD if found else Style.DIM, f"{sentence.mark} "


def _names(names: tuple[str, ...], nodes: int) -> str:
    return and_more(names, len(names), nodes)


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_value(explained: PodExplanation) -> dict[str, Any]:
    """Which nodes of one family take a pod, as JSON."""
    value: dict[str, Any] = {"pod": explained.pod, "family": explained.family}
    if explained.chip:
        value["chip"] = explained.chip
    value |= {
        "placeable": explained.shapes is not None,
        "shapes": [as_value(ShapeExplanation, shape, exclude=_FOR_PEOPLE) for shape in explained.shapes or ()],
        "skipped": [asdict(skipped) for skipped in explained.skipped],
    }
    return value | ({"moreSkipped": explained.more_skipped} if explained.more_skipped else {})


def gang_value(gang: GangExplanation | None) -> Any:
    """Where the pods of a gang lie, as JSON."""
    return as_value(GangExplanation | None, gang)
