"""What several rules need to know of pod and fleet together, worked out once a review."""

from collections.abc import Iterator
from dataclasses import replace

from webhook import names
from webhook.devices.ascend import feasibility as ascend
from webhook.devices.ascend.feasibility import NpuAsk, is_hami_core, npu_asks
from webhook.devices.config import Chip
from webhook.devices.families import Family, Role
from webhook.devices.fleet import Fleet
from webhook.devices.gpushare import feasibility as gpushare
from webhook.devices.mindcluster import feasibility as mindcluster
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector, read_selector
from webhook.devices.verdict import Cause, Feasibility, Fits, Never, Shortfall, Unknown
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Constraints, clean_words, read_constraints, type_words
from webhook.devices.vgpu.feasibility import Question, judge, question
from webhook.rules.base import Context

MODES = (names.MODE_HAMI_CORE, names.MODE_MIG, names.MODE_MPS)


def constraints(pod: DevicePod, context: Context) -> Constraints:
    """What the annotations demand.

    Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding, and
    the fleet rules still say at once what else is wrong.
    """
    memo = pod.memo
    if "constraints" not in memo:
        found = read_constraints(pod.view, context.settings.target, selector(pod, context, Family.VGPU))
        memo["constraints"] = found if found is UNCONSTRAINED else _corrected(found, pod, context)
    known: Constraints = memo["constraints"]
    return known


def asked(pod: DevicePod, context: Context) -> Question | None:
    """The pod's question to the fleet; None if a static rule has to answer first."""
    found = question(pod.vgpu, constraints(pod, context), context.settings.target)
    if found is None or all([need.cores <= 100 for need in found.needs]) or not context.denies("cores-range"):
        return found
    capped = tuple(replace(need, cores=min(need.cores, 100)) for need in found.needs)
    excess = sum(before.cores - after.cores for before, after in zip(found.needs, capped, strict=True))
    totals = {role: amount - excess if role is Role.CORES else amount for role, amount in found.totals.items()}
    return replace(found, needs=capped, totals=totals)


def verdict(pod: DevicePod, context: Context) -> Feasibility:
    """The fleet's answer, worked out once a review."""
    memo = pod.memo
    if "verdict" not in memo:
        memo["verdict"] = _verdict(pod, context)
    found: Feasibility = memo["verdict"]
    return found


def never(pod: DevicePod, context: Context) -> Cause | None:
    """Why no node can ever take the pod; None if one can, or nothing is known."""
    found = verdict(pod, context)
    return found.cause if isinstance(found, Never) else None


def _verdict(pod: DevicePod, context: Context) -> Feasibility:
    if context.fleet is None or not context.fleet.complete:
        return Unknown("the fleet is unknown")
    wanted = asked(pod, context)
    if wanted is None:
        return Unknown("a quantity cannot be used")
    return judge(wanted, context.fleet.vgpu, context.budget)


def npus(pod: DevicePod, context: Context) -> list[NpuAsk]:
    """What the pod asks of Ascend NPUs, in the order of its containers."""
    memo = pod.memo
    if "npus" not in memo:
        memo["npus"] = npu_asks(pod, context.config.ascend) if pod.asks(Family.ASCEND) else []
    found: list[NpuAsk] = memo["npus"]
    return found


def selector(pod: DevicePod, context: Context, family: Family) -> NodeSelector | None:
    """What the pod demands of its node's labels, if any node with devices of the family has them.

    Labels come and go, and the scheduler says plainly that none matches: a pod that matches no node is judged by all.
    """
    found = written_selector(pod)
    return found if found is None or matches(found, context, family) else None


def written_selector(pod: DevicePod) -> NodeSelector | None:
    """What the pod demands of its node's labels."""
    memo = pod.memo
    if "selector" not in memo:
        memo["selector"] = read_selector(pod.view)
    found: NodeSelector | None = memo["selector"]
    return found


def matches(found: NodeSelector, context: Context, family: Family) -> bool:
    """Tell whether a selector leaves a node with devices of a family; True if that is not known."""
    fleet = context.fleet
    if fleet is None or not fleet.complete:
        return True
    shapes = fleet.by_family[family]
    return not shapes or any(shape.node_left(found, fleet.index) is not None for shape in shapes)


def shortfalls(pod: DevicePod, context: Context) -> list[Shortfall]:
    """What no node can ever give a pod of the other families than vgpu, worked out once a review.

    A node has to satisfy every family that a pod asks for; each is judged by its own nodes.
    """
    memo = pod.memo
    if "shortfalls" not in memo:
        fleet = context.fleet
        known = fleet is not None and fleet.complete
        answers = _answers(pod, context, fleet) if fleet is not None and known else ()
        memo["shortfalls"] = [answer for answer in answers if isinstance(answer, Shortfall)]
    found: list[Shortfall] = memo["shortfalls"]
    return found


def _answers(pod: DevicePod, context: Context, fleet: Fleet) -> Iterator[Fits | Shortfall | Unknown]:
    if pod.asks(Family.GPUSHARE):
        yield gpushare.judge(pod, selector(pod, context, Family.GPUSHARE), fleet.gpushare)
    if pod.asks(Family.MINDCLUSTER):
        yield mindcluster.judge(pod, selector(pod, context, Family.MINDCLUSTER), fleet.mindcluster)
    by_chip: dict[Chip, list[NpuAsk]] = {}
    for ask in npus(pod, context):
        by_chip.setdefault(ask.chip, []).append(ask)
    for asks in by_chip.values():
        yield ascend.judge(
            asks,
            selector(pod, context, Family.ASCEND),
            fleet.ascend,
            hami_core=is_hami_core(pod.view),
            parts_refused=context.denies("ascend-partial-several"),
        )


def _corrected(found: Constraints, pod: DevicePod, context: Context) -> Constraints:
    if found.mode is not None and found.mode not in MODES and context.denies("mode-invalid"):
        meant = near_mode(found.mode)
        found = replace(found, mode=meant)
    if context.denies("gputype-malformed"):
        use, nouse = pod.view.annotation(names.USE_GPUTYPE), pod.view.annotation(names.NOUSE_GPUTYPE)
        found = replace(found, use_types=_meant(use), nouse_types=_meant(nouse))
    return found


def _meant(text: str | None) -> tuple[str, ...] | None:
    words = clean_words(text) if text else []
    return type_words(",".join(words)) if words else None


def near_mode(text: str) -> str | None:
    """The mode that a misspelt word means; None if it is no near miss in case, spaces or dashes."""
    plain = text.strip().lower().replace("_", "-").replace(" ", "-")
    return next((mode for mode in MODES if plain in (mode, mode.replace("-", ""))), None)
