"""What several rules need to know of pod and fleet together, worked out once a review."""

from dataclasses import replace

from webhook import names
from webhook.devices.asks import DevicePod
from webhook.devices.vgpu.constraints import UNCONSTRAINED, Constraints, clean_words, read_constraints, type_words
from webhook.devices.vgpu.feasibility import Cause, Feasibility, Never, Question, Unknown, judge, question
from webhook.rules.base import Context

MODES = (names.MODE_HAMI_CORE, names.MODE_MIG, names.MODE_MPS)


def constraints(pod: DevicePod, context: Context) -> Constraints:
    """What the annotations demand.

    Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding, and
    the fleet rules still say at once what else is wrong.
    """
    memo = pod.memo
    if "constraints" not in memo:
        found = read_constraints(pod.view, context.settings.target)
        memo["constraints"] = found if found is UNCONSTRAINED else _corrected(found, pod, context)
    known: Constraints = memo["constraints"]
    return known


def asked(pod: DevicePod, context: Context) -> Question | None:
    """The pod's question to the fleet; None if a static rule has to answer first."""
    found = question(pod.vgpu, constraints(pod, context), context.settings.target)
    if found is None or all([need.cores <= 100 for need in found.needs]) or not context.denies("cores-range"):
        return found
    return replace(found, needs=tuple(replace(need, cores=min(need.cores, 100)) for need in found.needs))


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
    return judge(wanted, context.fleet)


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
