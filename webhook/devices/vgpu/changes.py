"""The single changes of a vGPU pod that might help: a word left out, a quantity lowered."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from webhook import names
from webhook.devices.families import Role
from webhook.devices.nearest import MAX_CONTAINERS, Lower, loosened
from webhook.devices.target import Target
from webhook.devices.vgpu.feasibility import Question
from webhook.devices.vgpu.fleet import VgpuShape

# An annotation, and what holds when it is not there.
_WORDS: tuple[tuple[str, dict[str, Any]], ...] = (
    (names.VGPU_MODE, {"mode": None}),
    (names.USE_GPUTYPE, {"use_types": None}),
    (names.NOUSE_GPUTYPE, {"nouse_types": None}),
    (names.USE_GPUUUID, {"use_uuids": frozenset()}),
    (names.NOUSE_GPUUUID, {"nouse_uuids": frozenset()}),
)
_LEAST = {Role.MEMORY: 1, Role.NUMBER: 1, Role.CORES: 0}  # 0 of memory would mean the whole card


def without_words(asked: Question) -> Iterator[tuple[str, Question]]:
    """The question without each annotation, and without what it demands of the node's labels."""
    constraints = asked.constraints
    for annotation, nothing in _WORDS:
        left = replace(constraints, **nothing)
        if left != constraints:
            yield annotation, replace(asked, constraints=left)
    for word, nodes in loosened(constraints.nodes):
        yield word, replace(asked, constraints=replace(constraints, nodes=nodes))


def lowered(asked: Question, shape: VgpuShape, target: Target) -> Iterator[Lower[Question]]:
    """The quantities of the first containers; all of a card's memory is more than the largest card has."""
    largest = max((card.memory for card in shape.cards), default=0)
    for place, need in enumerate(asked.needs[:MAX_CONTAINERS]):
        whole = largest + 1 if need.memory is None else need.memory
        for role, now in ((Role.MEMORY, whole), (Role.NUMBER, need.number), (Role.CORES, need.cores)):

            def question(value: int, place: int = place, role: Role = role) -> Question:
                return with_amount(asked, place, role, value, target)

            yield Lower(asked.asks[place].container, role, now, range(_LEAST[role], now), question)


def with_amount(asked: Question, place: int, role: Role, value: int, target: Target) -> Question:
    """The question with another quantity of one container, which also changes the pod's totals."""
    needs = list(asked.needs)
    needs[place] = replace(needs[place], **{role.value: value})
    totals = dict(asked.totals)
    if role is Role.NUMBER or target.fits_every_name:
        ask = asked.asks[place]
        written = getattr(ask, role) if role in ask.written else 0
        totals[role] = totals.get(role, 0) - (written or 0) + value
    return replace(asked, needs=tuple(needs), totals=totals)
