"""Mode, gputype or UUID leave no node enough cards.

Reads:    the annotations, the counts of the regular containers; the fleet
Refuses:  a pod whose annotations no node satisfies
Why:      the scheduler skips every card that an annotation excludes, and the pod stays pending.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.families import Family
from webhook.devices.vgpu.eligibility import UNCONSTRAINED
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import Refusal, ReviewedPod
from webhook.rules.settings import Level
from webhook.texts import counted

_WORDS = (names.VGPU_MODE, names.USE_GPUTYPE, names.NOUSE_GPUTYPE, names.USE_GPUUUID, names.NOUSE_GPUUUID)


def check(pod: ReviewedPod, context: Context) -> Iterator[Finding]:
    """Name the annotations that leave too few cards, and the cards of the fleet."""
    for refused in pod.refusals(RULE.id):
        if refused.family != Family.VGPU:
            yield Finding(refused.path, _no_device(refused))
        elif context.fleet is not None:
            yield _no_card(pod, context.fleet.vgpu)


def _no_device(refused: Refusal) -> str:
    resource, left = refused.never.resource, refused.left()
    if resource == names.VNPU_MODE:
        return (
            f"{names.VNPU_MODE} is {names.MODE_HAMI_CORE}, but no node{left} with such NPUs shares them in software; remove "
            "the annotation"
        )
    return f"{refused.who} {resource}, but no node{left} offers it{_instead(refused)}"


def _instead(refused: Refusal) -> str:
    """What the fleet has of the family."""
    fleet, family = refused.pod.context.fleet, refused.family
    if fleet is None or family != Family.ASCEND:
        return " with a healthy card" if family == Family.GPUSHARE else ""
    for node, missing in fleet.ascend.gated:
        if missing == refused.never.resource:
            return f"; node {node} registers some, but its allocatable is missing"
    chips = ", ".join(dict.fromkeys(shape.word for shape in fleet.ascend.shapes))
    return f"; the fleet has {chips}" if chips else "; the fleet has no Ascend NPUs"


def _no_card(pod: ReviewedPod, fleet: VgpuFleet) -> Finding:
    constraints, found = pod.constraints, pod.eligible
    if not fleet.shapes:
        return Finding(pod.vgpu[0].container.where, _no_cards(fleet))
    mode, nodes = constraints.mode, pod.selector_for(Family.VGPU)
    modes = sorted({shape.mode for shape in fleet.shapes})
    if mode is not None and mode not in modes:
        return Finding(
            wording.annotation_path(names.VGPU_MODE),
            f"{names.VGPU_MODE} is {wording.quoted(pod.view.annotation(names.VGPU_MODE))}, but no node is in that mode; "
            f"write {' or '.join(modes)}, or remove the annotation",
        )
    if not found.shapes:
        return Finding(
            wording.annotation_path(names.VGPU_MODE),
            f"{names.VGPU_MODE} is {wording.quoted(mode)}, but no node{wording.left(nodes)} is in that mode; correct one of "
            "both",
        )
    words = _words(pod)
    most = max((sum(card.split > 0 for card in candidate.cards) for candidate in found.candidates), default=0)
    request = max(pod.vgpu, key=lambda request: request.number or 1)
    cards = counted(request.number or 1, "card")
    by = " and ".join(f"{key} {wording.quoted(pod.view.annotation(key))}" for key in words) or _not_by_words(fleet)
    return Finding(
        wording.annotation_path(words[-1]) if words else request.container.where,
        f"{wording.container(request.container)} requests {cards} allowed by {by}, but no node"
        f"{wording.left(nodes)} has {f'more than {most}' if most else 'one'}; the fleet has {wording.card_types(fleet.shapes)}",
    )


def _words(pod: ReviewedPod) -> list[str]:
    """The annotations that the scheduler reads and that may be to blame."""
    ignored = set() if pod.context.settings.target.reads_uuids else {names.USE_GPUUUID, names.NOUSE_GPUUUID}
    if pod.constraints.use_types is not None:
        ignored.add(names.NOUSE_GPUTYPE)
    return [key for key in _WORDS if key in pod.view.annotations and key not in ignored]


def _not_by_words(fleet: VgpuFleet) -> str:
    """What leaves no card if the pod's annotations do not."""
    nvidia = any(UNCONSTRAINED.accepts_type(card.type) for shape in fleet.shapes for card, _ in shape.kinds)
    return "their split count" if nvidia else "their type (Volcano takes NVIDIA cards only)"


def _no_cards(fleet: VgpuFleet) -> str:
    if not fleet.gated:
        return "no node of the fleet registers vGPU cards; is the device plugin running?"
    node, missing = fleet.gated[0]
    return (
        f"no node offers vGPU cards; node {wording.quoted(node)} registers some, but the scheduler skips it while its "
        f"allocatable {missing} is missing"
    )


RULE = Validation(
    id="no-eligible-card",
    level=Level.DENY,
    summary="mode, gputype or uuid leave no node enough cards; no node has such devices at all",
    check=check,
    fleet=True,
    verdict=True,
)
