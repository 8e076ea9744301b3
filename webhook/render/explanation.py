"""An explanation for the terminal and as JSON."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from webhook.devices import registry
from webhook.devices.explanation import PodExplanation, Sentence, ShapeExplanation
from webhook.render.terminal import INDENT, Style, Terminal
from webhook.rules.reviewed_pod import ReviewedPod

SHOWN_GATED = 3

_PLACEMENTS = {
    "fits": (Style.GOOD, "fits"),
    "tight": (Style.WARNING, "fits tightly"),
    "never": (Style.BAD, "never"),
    "unknown": (Style.WARNING, "unknown"),
}
_FOR_PEOPLE = ("devices", "sentences", "drawing")
_DERIVED = {"shape", *_FOR_PEOPLE}  # not part of the JSON
_LAST = ("placement", "slices", "refusal", "change")


def explain_pods(pods: Iterable[tuple[str, ReviewedPod]]) -> list[PodExplanation]:
    """Explain the pods of an outcome to the nodes of each family that they request devices of."""
    return [
        explained
        for path, pod in pods
        if (fleet := pod.context.fleet) is not None
        for family in registry.FAMILIES
        if pod.requests_family(family.id)
        for explained in family.explain(pod.placement_request(fleet, family.id, path), fleet.parts[family.id])
    ]


# --- for the terminal -----------------------------------------------------------------------------------------------


def show(explained: PodExplanation, terminal: Terminal) -> None:
    """Write which nodes of one family take a pod."""
    about = (f" with {explained.chip}" if explained.chip else "") + (f" for {explained.path}" if explained.path else "")
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
    for node, missing in explained.skipped[:SHOWN_GATED]:
        terminal.line(
            inner,
            (Style.BAD, "never "),
            INDENT,
            (Style.BOLD, node),
            f": the scheduler skips it, its allocatable {missing} is missing or 0",
        )
    if len(explained.skipped) > SHOWN_GATED:
        terminal.line(inner, f"and {len(explained.skipped) - SHOWN_GATED} more nodes that the scheduler skips")


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
    more = nodes - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_value(explained: PodExplanation) -> dict[str, Any]:
    """Which nodes of one family take a pod, as JSON."""
    value: dict[str, Any] = {"pod": explained.path, "family": explained.family}
    if explained.chip:
        value["chip"] = explained.chip
    return value | {
        "placeable": explained.shapes is not None,
        "shapes": [shape_value(shape) for shape in explained.shapes or ()],
        "skipped": [{"node": node, "missing": missing} for node, missing in explained.skipped],
    }


def shape_value(explained: ShapeExplanation, *, for_people: bool = False) -> dict[str, Any]:
    """One shape of an explanation as JSON; for people with whether it is declared, devices, sentences and drawing."""
    kind: Any = type(explained)
    left_out = {"shape"} if for_people else _DERIVED
    (value,) = _adapter(kind).dump_python([explained], mode="json", by_alias=True, exclude={"__all__": left_out})
    declared = {"declared": explained.declared} if for_people else {}
    last = {key: value.pop(key) for key in (*_LAST, *_FOR_PEOPLE) if key in value}
    return {"names": list(explained.names), "nodes": explained.nodes, **declared, **value, **last}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """The adapter of one family's explanations; of a list, since a dataclass alone takes no configuration."""
    return TypeAdapter(list[kind], config=ConfigDict(alias_generator=to_camel, arbitrary_types_allowed=True))
