"""What vGPU nodes say to a pod, in words."""

from collections.abc import Iterator

from webhook.devices.config import DeviceConfig
from webhook.devices.families import Role
from webhook.devices.nearest import Change
from webhook.devices.vgpu.explain import Explanation, Refusal
from webhook.devices.vgpu.feasibility import Question
from webhook.devices.vgpu.fleet import VgpuShape
from webhook.devices.vgpu.placement import Placement, Reason, Stuck
from webhook.devices.vgpu.slices import CARD_CORES
from webhook.render.families.told import Sentence
from webhook.render.families.words import PLAIN, advice, unselected
from webhook.rules import wording


def sentences(answer: Explanation, question: Question, config: DeviceConfig) -> Iterator[Sentence]:
    """Where the slices go; or what refuses, and what would help."""
    if answer.slices is not None:
        policy = (
            "" if answer.policy == "default" else f" (with SchedulePolicy {answer.policy}; the default walk misses it)"
        )
        for ask, cards in zip(question.asks, answer.slices, strict=True):
            yield PLAIN, f"{wording.container(ask.container)} on {_cards_named(cards)}{policy}"
        return
    if answer.refusal is not None:
        yield PLAIN, refusal_sentence(answer.refusal, answer.shape, question, config)
    if answer.placement is Placement.TIGHT:
        yield (
            PLAIN,
            "another order of containers or cards would fit; the scheduler does not try it on an empty node",
        )
    if answer.change is not None:
        yield advice(f"{_change(answer.change, question, config)} it fits", searched=True)
    elif answer.placement is not Placement.UNKNOWN:
        yield advice("", searched=answer.searched)


def _cards_named(cards: tuple[int, ...]) -> str:
    return f"card{'s' if len(cards) > 1 else ''} {', '.join(map(str, sorted(cards)))}"


def refusal_sentence(refusal: Refusal, shape: VgpuShape, question: Question, config: DeviceConfig) -> str:
    """What refused first."""
    if refusal.reason is Reason.MODE:
        return f"mode: the node is in mode {shape.mode}, the pod wants {wording.quoted(question.constraints.mode)}"
    if refusal.reason is Reason.NODES:
        return f"{refusal.reason}: {unselected(question.constraints.nodes)}"
    if refusal.role is not None:
        total, offered = question.totals[refusal.role], shape.allocatable.get(refusal.role, 0)
        name = config.vgpu.role_names[refusal.role]
        return f"{refusal.reason}: the containers ask for {name} {total} in total, the node offers {offered}"
    stuck = refusal.stuck
    if stuck is None:
        return f"{refusal.reason}"
    who, need = wording.container(question.asks[stuck.container].container), question.needs[stuck.container]
    if refusal.reason is Reason.NUMBER or stuck.card is None:
        return f"{refusal.reason}: {who} wants {need.number} different cards, the node has {len(shape.cards)}"
    card = f"card {stuck.card} ({wording.card_type(shape.cards[stuck.card])})"
    why = _by_card(refusal.reason, stuck, shape, question, config)
    return f"{refusal.reason}: {who} is refused first by {card}{why}; {_tally(stuck, need.number)}"


def _by_card(reason: Reason, stuck: Stuck, shape: VgpuShape, question: Question, config: DeviceConfig) -> str:
    """What the first card says."""
    at = stuck.card or 0
    card, need = shape.cards[at], question.needs[stuck.container]
    slices, memory, cores = stuck.used[at]
    match reason:
        case Reason.TYPE:
            return ""
        case Reason.UUID:
            return ", whose UUID is not wanted"
        case Reason.SPLIT:
            return f", whose {slices} slices are taken" if slices else ", which is cut into 0 slices"
        case Reason.MEMORY:
            return f": {wording.memory(need.of(card), config)} wanted, {card.memory - memory} free"
        case Reason.CORES:
            return f": {need.cores} cores wanted, {CARD_CORES - cores} free"
        case Reason.EXCLUSIVE:
            return ": 100 cores want a card alone" if need.cores else ": all its 100 cores are given away"
        case _:
            return f": no MIG instance of it has {wording.memory(need.of(card), config)}"


def _tally(stuck: Stuck, wanted: int) -> str:
    """How many cards refused, by reason."""
    counts: dict[Reason, int] = {}
    for reason in stuck.refusals:
        if reason is not None:
            counts[reason] = counts.get(reason, 0) + 1
    refused = sum(counts.values())
    by = f" ({', '.join(f'{reason} {count}' for reason, count in counts.items())})" if len(counts) > 1 else ""
    return f"{refused} of {len(stuck.refusals)} cards refuse{by}, {wanted} wanted"


def _change(change: Change, question: Question, config: DeviceConfig) -> str:
    role, value = change.role, change.value
    if role is None or change.container is None:
        return f"without {change.word}"
    where = f" in {wording.container(change.container)}" if len(question.asks) > 1 else ""
    if role is Role.NUMBER:
        return f"with {value} vGPU{'s' if value > 1 else ''}{' or fewer' if value > 1 else ''}{where}"
    if role is Role.CORES and value == 0:
        return f"without {config.vgpu.cores_name}{where}"
    if role is Role.CORES:
        return f"with {value} cores or fewer{where}"
    return f"with {config.vgpu.memory_name} {value} or less{where}"
