"""Mode, gputype or UUID leave no node enough cards.

Reads:    the annotations, the counts of the regular containers; the fleet
Refuses:  a pod whose words no node satisfies
Why:      the scheduler skips every card that a word excludes, and the pod waits for ever.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Cause
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, eligible
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import constraints, never
from webhook.rules.shortfalls import told

_WORDS = (names.VGPU_MODE, names.USE_GPUTYPE, names.NOUSE_GPUTYPE, names.USE_GPUUUID, names.NOUSE_GPUUUID)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name the words that leave too little, and what there is."""
    yield from told(pod, context, Cause.NO_ELIGIBLE_CARD)
    if never(pod, context) is not Cause.NO_ELIGIBLE_CARD or context.fleet is None:
        return
    fleet = context.fleet.vgpu
    if not fleet.shapes:
        yield Finding(pod.vgpu[0].container.where, _no_cards(fleet))
        return
    mode = constraints(pod, context).mode
    modes = sorted({shape.mode for shape in fleet.shapes})
    if mode is not None and mode not in modes:
        yield Finding(
            wording.annotation_path(names.VGPU_MODE),
            f"{names.VGPU_MODE} is {wording.quoted(pod.view.annotation(names.VGPU_MODE))}, but no node is in that mode; write "
            f"{' or '.join(modes)}, or remove the annotation",
        )
        return
    found = eligible(constraints(pod, context), fleet)
    nodes = constraints(pod, context).nodes
    if not found.shapes:
        yield Finding(
            wording.annotation_path(names.VGPU_MODE),
            f"{names.VGPU_MODE} is {wording.quoted(mode)}, but no node{wording.left(nodes)} is in that mode; correct one of "
            "both",
        )
        return
    words = _words(pod, context)
    most = max((sum(card.split > 0 for card in candidate.cards) for candidate in found.candidates), default=0)
    ask = max(pod.vgpu, key=lambda ask: ask.number or 1)
    number = ask.number or 1
    cards = f"{number} card{'s' if number > 1 else ''}"
    by = " and ".join(f"{key} {wording.quoted(pod.view.annotation(key))}" for key in words) or _not_by_words(fleet)
    yield Finding(
        wording.annotation_path(words[-1]) if words else ask.container.where,
        f"{wording.container(ask.container)} asks for {cards} allowed by {by}, but no node"
        f"{wording.left(nodes)} has {f'more than {most}' if most else 'one'}; the fleet has {wording.card_types(fleet.shapes)}",
    )


def _words(pod: DevicePod, context: Context) -> list[str]:
    """The annotations that the scheduler reads and that may be to blame."""
    ignored = set() if context.settings.target.reads_uuids else {names.USE_GPUUUID, names.NOUSE_GPUUUID}
    if constraints(pod, context).use_types is not None:
        ignored.add(names.NOUSE_GPUTYPE)
    return [key for key in _WORDS if key in pod.view.annotations and key not in ignored]


def _not_by_words(fleet: VgpuFleet) -> str:
    """What leaves no card where the pod's words are not to blame."""
    nvidia = any(UNCONSTRAINED.accepts_type(card.type) for shape in fleet.shapes for card, _ in shape.kinds)
    return "their split count" if nvidia else "their type (Volcano takes NVIDIA cards only)"


def _no_cards(fleet: VgpuFleet) -> str:
    if not fleet.gated:
        return "no node of the fleet registers vGPU cards; is the device plugin running?"
    node, missing = fleet.gated[0]
    return (
        f"no node offers vGPU cards; node {wording.quoted(node)} registers some, but the scheduler skips it while its "
        f"allocatable {missing} is missing or 0"
    )


RULE = Validation(
    id="no-eligible-card",
    level=Level.DENY,
    summary="mode, gputype or uuid leave no node enough cards; no node has such devices at all",
    check=check,
    fleet=True,
)
