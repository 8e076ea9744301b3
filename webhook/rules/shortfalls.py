"""What the fleet rules say of the families other than vgpu: one sentence for what no node can give."""

from collections.abc import Iterable, Iterator

from webhook import names
from webhook.devices import registry
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Cause, Shortfall
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context, Finding
from webhook.rules.facts import selector, shortfalls


def told(pod: DevicePod, context: Context, cause: Cause) -> Iterable[Finding]:
    """The findings of one rule."""
    return () if VGPU_ONLY.issuperset(pod.asked) else _told(pod, context, cause)


def _told(pod: DevicePod, context: Context, cause: Cause) -> Iterator[Finding]:
    for shortfall in shortfalls(pod, context):
        if shortfall.cause is cause:
            yield Finding(_path(shortfall, pod), _SENTENCES[cause](shortfall, pod, context))


def _path(shortfall: Shortfall, pod: DevicePod) -> str:
    if shortfall.resource == names.VNPU_MODE:
        return wording.annotation_path(names.VNPU_MODE)
    if shortfall.container is not None:
        return wording.resource_path(shortfall.container, shortfall.resource)
    askers = [amount.container for amount in pod.amounts if amount.resource == shortfall.resource]
    return wording.resource_path(askers[0], shortfall.resource) if len(askers) == 1 else "spec.containers"


def _who(shortfall: Shortfall, pod: DevicePod) -> str:
    """Who asks for too much: the only container that asks, or all of them together."""
    askers = [amount.container for amount in pod.amounts if amount.resource == shortfall.resource]
    if shortfall.container is not None or len(askers) == 1:
        return f"{wording.container(shortfall.container or askers[0])} asks"
    return "the pod's containers together ask"


def _node(shortfall: Shortfall, pod: DevicePod, context: Context) -> str:
    return f"the largest node{_left(shortfall, pod, context)} ({shortfall.node})"


def _left(shortfall: Shortfall, pod: DevicePod, context: Context, before: str = "") -> str:
    return wording.left(selector(pod, context, _family(shortfall, context)), before)


def _family(shortfall: Shortfall, context: Context) -> str:
    return Family.ASCEND if shortfall.resource == names.VNPU_MODE else context.config.roles[shortfall.resource][0]


def _no_eligible_card(shortfall: Shortfall, pod: DevicePod, context: Context) -> str:
    left = _left(shortfall, pod, context)
    if shortfall.resource == names.VNPU_MODE:
        return (
            f"{names.VNPU_MODE} is {names.MODE_HAMI_CORE}, but no node{left} with such NPUs shares them in software; remove "
            "the annotation"
        )
    return f"{_who(shortfall, pod)} for {shortfall.resource}, but no node{left} offers it{_instead(shortfall, context)}"


def _instead(shortfall: Shortfall, context: Context) -> str:
    """What the fleet has of the family."""
    fleet, family = context.fleet, _family(shortfall, context)
    if fleet is None or family != Family.ASCEND:
        return " with a healthy card" if family == Family.GPUSHARE else ""
    for node, missing in fleet.ascend.gated:
        if missing == shortfall.resource:
            return f"; node {node} registers some, but its allocatable is missing or 0"
    words = ", ".join(fleet.ascend.shapes)
    return f"; the fleet has {words}" if words else "; the fleet has no Ascend NPUs"


def _card_count(shortfall: Shortfall, pod: DevicePod, context: Context) -> str:
    has = f"{shortfall.most} {_devices(shortfall, context)}{'s' if shortfall.most != 1 else ''}"
    return (
        f"{_who(shortfall, pod)} for {shortfall.resource} {shortfall.asked}, but {_node(shortfall, pod, context)} has {has}; "
        f"ask for {shortfall.most}{' or fewer' if shortfall.most > 1 else ''}"
    )


def _memory_above_card(shortfall: Shortfall, pod: DevicePod, context: Context) -> str:
    one = ", all of it on one card" if shortfall.container is None else ""
    return (
        f"{_who(shortfall, pod)} for {shortfall.resource} {shortfall.asked}{one}, but the largest "
        f"{_devices(shortfall, context)}{_left(shortfall, pod, context, 'on the nodes ')} (node {shortfall.node}) has "
        f"{shortfall.most}; write {shortfall.most} or less"
    )


def _split_count(shortfall: Shortfall, pod: DevicePod, context: Context) -> str:
    return (
        f"{_who(shortfall, pod)} for {shortfall.resource} {shortfall.asked}, but {_node(shortfall, pod, context)} has "
        f"{shortfall.most} NPUs and containers never share one; ask for fewer, or make several pods"
    )


def _fits_no_node(shortfall: Shortfall, pod: DevicePod, context: Context) -> str:
    left = _left(shortfall, pod, context)
    if shortfall.asked > shortfall.most:
        return (
            f"{_who(shortfall, pod)} for {shortfall.resource} {shortfall.asked}, but no node{left} offers more than "
            f"{shortfall.most}; ask for {shortfall.most} or less"
        )
    return (
        f"no node{left} can take the pod even when it is empty: what its containers ask for does not fit onto one node; "
        "ask for less, or make several pods"
    )


def _devices(shortfall: Shortfall, context: Context) -> str:
    family = _family(shortfall, context)
    return next(each.device for each in registry.FAMILIES if each.id == family)


_SENTENCES = {
    Cause.NO_ELIGIBLE_CARD: _no_eligible_card,
    Cause.CARD_COUNT: _card_count,
    Cause.MEMORY_ABOVE_CARD: _memory_above_card,
    Cause.SPLIT_COUNT: _split_count,
    Cause.FITS_NO_NODE: _fits_no_node,
}
