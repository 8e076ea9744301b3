"""A slice lies on one card, so it cannot have more memory than a card.

Reads:    the memory of the regular containers; the fleet's eligible cards, MIG instances and NPUs
Refuses:  more than any of them has
Why:      the scheduler clamps nothing: it skips every card, and the pod waits for ever.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.families import Family
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.feasibility import Question, memory_suffices
from webhook.devices.vgpu.fleet import Card
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import PodFacts, facts_of, refusals
from webhook.rules.shortfalls import Shortfall


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name each container whose memory no card has."""
    for family, never in refusals(pod, context, RULE.id):
        facts = facts_of(pod, context)
        if family != Family.VGPU:
            short = Shortfall(family, never, pod, context)
            one = ", all of it on one card" if never.container is None else ""
            yield Finding(
                short.path,
                f"{short.who} for {never.resource} {never.requested}{one}, but the largest {short.device}"
                f"{short.left('on the nodes ')} (node {never.node}) has {never.most}; write {never.most} or less",
            )
        elif facts.question is not None and facts.eligible.cards:
            yield from _slices(facts, facts.question)


def _slices(facts: PodFacts, question: Question) -> Iterator[Finding]:
    cards, context = facts.eligible.cards, facts.context
    best = max(cards, key=lambda card: card.capacity)
    name = context.config.vgpu.memory_name
    for ask, need in zip(question.asks, question.needs, strict=True):
        if not any(memory_suffices(card, need) for card in cards):
            who = wording.container(ask.container)
            wish = f"asks for {name} {need.memory}" if need.memory else f"gives no {name} and so asks for a whole card"
            written = ask.container.quantity(name)
            meant = wording.meant_mebibytes(written, context.config.vgpu.memory_factor)
            hint = f" (for {written} write {meant})" if meant else ""
            yield Finding(
                wording.resource_path(ask.container, name),
                f"{who} {wish}, but {_limit(best, context)}{hint}",
            )


def _limit(best: Card, context: Context) -> str:
    amount = wording.memory(best.capacity, context.config)
    if best.capacity <= 0:
        return f"{best.product} has no MIG instance; check knownMigGeometries, or ask for {names.MODE_HAMI_CORE}"
    card = best.product
    part = f"the largest MIG instance of {card}" if best.geometries is not None else f"the largest card, {card},"
    return f"{part} has {amount}; write {best.capacity} or less"


RULE = Validation(
    id="memory-above-card",
    level=Level.DENY,
    summary="more memory than any eligible card, MIG instance or NPU has",
    check=check,
    fleet=True,
)
