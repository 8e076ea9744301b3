"""A slice lies on one card, so it cannot have more memory than a card.

Reads:    the memory of the regular containers; the fleet's eligible cards, MIG instances and NPUs
Refuses:  more than any of them has
Why:      the scheduler clamps nothing: it skips every card, and the pod waits for ever.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Cause
from webhook.devices.vgpu.eligibility import eligible
from webhook.devices.vgpu.feasibility import memory_suffices
from webhook.devices.vgpu.fleet import Card
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import asked, constraints, never
from webhook.rules.shortfalls import told


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Name each container whose memory no card has."""
    yield from told(pod, context, Cause.MEMORY_ABOVE_CARD)
    if never(pod, context) is not Cause.MEMORY_ABOVE_CARD or context.fleet is None:
        return
    question = asked(pod, context)
    cards = eligible(constraints(pod, context), context.fleet.vgpu).cards
    if question is None or not cards:
        return
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
