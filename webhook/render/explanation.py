"""An explanation in words and as JSON."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import Shape
from webhook.render.drawing import drawing_value
from webhook.render.families import ascend, gpushare, mindcluster, vgpu
from webhook.render.families.asked import PodAsked
from webhook.render.families.told import PodExplanation, Told
from webhook.render.terminal import INDENT, Style, Terminal
from webhook.rules.base import Context

SHOWN_GATED = 3

_EXPLAINERS: Mapping[Family, Callable[[PodAsked], Iterator[PodExplanation]]] = {
    Family.VGPU: vgpu.explain_pod,
    Family.GPUSHARE: gpushare.explain_pod,
    Family.ASCEND: ascend.explain_pod,
    Family.MINDCLUSTER: mindcluster.explain_pod,
}

_WORDS = {
    "fits": (Style.GOOD, "fits"),
    "tight": (Style.WARNING, "fits tightly"),
    "never": (Style.BAD, "never"),
    "unknown": (Style.WARNING, "unknown"),
}


def explain_pods(pods: tuple[tuple[str, DevicePod], ...], context: Context) -> list[PodExplanation]:
    """Explain the pods of an outcome to the nodes of each family that they ask for."""
    fleet = context.fleet
    if fleet is None:
        return []
    return [
        told
        for path, pod in pods
        for family, explain_pod in _EXPLAINERS.items()
        if pod.asks(family)
        for told in explain_pod(PodAsked(path, pod, context, fleet, family))
    ]


# --- in words -------------------------------------------------------------------------------------------------------


def show(explained: PodExplanation, terminal: Terminal) -> None:
    """Write what the nodes of one family say to a pod."""
    about = (f" with {explained.chip}" if explained.chip else "") + (f" for {explained.path}" if explained.path else "")
    terminal.line(INDENT, (Style.BOLD, f"{explained.family} nodes"), about)
    inner = INDENT * 2
    if explained.told is None:
        terminal.line(inner, "nothing to place: put the quantities right first")
        return
    if explained.ignored:
        terminal.line(inner, f"your {explained.ignored} leaves none of them; told as if it were not there")
    for told in explained.told:
        _show_shape(told, explained, terminal)
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


def _show_shape(told: Told, explained: PodExplanation, terminal: Terminal) -> None:
    inner = INDENT * 2
    style, word = _WORDS[told.placement]
    terminal.line(inner, (style, f"{word:<6}"), INDENT, (Style.BOLD, _nodes(told.shape)), ": ", told.devices)
    selected = explained.selected(told.shape)
    if selected is not None and 0 < selected.nodes < told.shape.nodes:
        more = selected.nodes - len(selected.names)
        names = ", ".join(selected.names) + (f" and {more} more" if more else "")
        terminal.paragraph(inner + " " * 8, (), f"your {selected.words} leaves {names}")
    for head, sentence in told.sentences:
        terminal.paragraph(inner + " " * 8, (head,), sentence)


def _nodes(shape: Shape) -> str:
    more = shape.nodes - len(shape.names)
    names = ", ".join(shape.names) + (f" and {more} more" if more > 0 else "")
    return names + (" (declared)" if shape.declared else "")


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_value(explained: PodExplanation) -> dict[str, Any]:
    """What the nodes of one family say to a pod as JSON."""
    value: dict[str, Any] = {"pod": explained.path, "family": explained.family}
    if explained.chip:
        value["chip"] = explained.chip
    return value | {
        "placeable": explained.told is not None,
        "shapes": [_shape_value(told, explained) for told in explained.told or ()],
        "skipped": [{"node": node, "missing": missing} for node, missing in explained.skipped],
    }


def to_drawn_value(explained: PodExplanation) -> dict[str, Any]:
    """The same with a drawing of each shape, for who shows pictures."""
    value = to_value(explained)
    for shape, told in zip(value["shapes"], explained.told or (), strict=True):
        shape["drawing"] = drawing_value(told.drawing)
    return value


def _shape_value(told: Told, explained: PodExplanation) -> dict[str, Any]:
    selected = explained.selected(told.shape)
    return {
        "names": list(told.shape.names),
        "nodes": told.shape.nodes,
        "selected": None if selected is None else {"names": list(selected.names), "nodes": selected.nodes},
        **told.facts,
        "placement": told.placement,
        "slices": told.slices,
        "refusal": told.refusal,
        "change": told.change,
    }
