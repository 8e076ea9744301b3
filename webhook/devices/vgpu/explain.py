"""Explains a pod to vGPU nodes: where its slices go, or what refuses it and what would help."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.budget import WORK_LIMIT, SearchBudget
from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import (
    MAX_CARDS,
    MAX_TEXT,
    MIB,
    PERCENT,
    UNUSED,
    WHOLE_CARD,
    DrawnCard,
    DrawnNode,
    DrawnPart,
    Usage,
    draw_node,
    drawn_name,
)
from webhook.devices.explanation import PlacementRequest, PodExplanation, ShapeExplainer, ShapeExplanation
from webhook.devices.families import Role
from webhook.devices.nearest import MAX_CONTAINERS, ContainerName, Reducible
from webhook.devices.shapes import FleetPart
from webhook.devices.verdict import Fits, Reason, Verdict
from webhook.devices.vgpu.eligibility import corrected, eligible, read_constraints, remainders
from webhook.devices.vgpu.feasibility import SliceRequest, capped, judge, only_on, slice_request
from webhook.devices.vgpu.fleet import CARD_CORES, Card, Used, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import ORDERS, Stuck, walk
from webhook.devices.vgpu.slices import Need
from webhook.pod.view import Container
from webhook.texts import shorten

# An annotation, and what holds without it.
_ANNOTATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (names.VGPU_MODE, {"mode": None}),
    (names.USE_GPUTYPE, {"use_types": None}),
    (names.NOUSE_GPUTYPE, {"nouse_types": None}),
    (names.USE_GPUUUID, {"use_uuids": frozenset()}),
    (names.NOUSE_GPUUUID, {"nouse_uuids": frozenset()}),
)
_LEAST = {Role.MEMORY: 1, Role.NUMBER: 1, Role.CORES: 0}  # 0 of memory would mean the whole card


@dataclass(frozen=True, slots=True)
class CardKind:
    """Equal cards of a node: model, memory of each in the register's unit, slices of each, and how many."""

    type: str
    memory: int
    split: int
    count: int


@dataclass(frozen=True, slots=True)
class ContainerCards:
    """The cards on each of which one container gets a slice, by index."""

    container: ContainerName
    cards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VgpuSlices:
    """Where the slices lie, and the SchedulePolicy with which the walk finds these places."""

    policy: str
    containers: tuple[ContainerCards, ...]


@dataclass(frozen=True, slots=True)
class CardRefusal:
    """What refuses first: the reason in a word or two, the card and the container that it is about, and a sentence."""

    reason: str
    card: int | None
    container: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VgpuExplanation(ShapeExplanation):
    """What one shape of vGPU nodes gives."""

    mode: str
    cards: tuple[CardKind, ...]
    slices: VgpuSlices | None = None
    refusal: CardRefusal | None = None


def explain(request: PlacementRequest, fleet: VgpuFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet."""
    view, target = request.pod.view, request.target
    constraints = corrected(read_constraints(view, target), view, request.denies)._replace(nodes=request.members)
    found = slice_request(request.pod.vgpu, constraints, target)
    explainer = None
    if found is not None and found.needs:
        explainer = partial(VgpuExplainer, request, capped(found, request.denies), fleet)
    yield request.explanation(explainer, fleet.shapes, "no node of the fleet registers vGPU cards", fleet.gated)


class VgpuExplainer(ShapeExplainer[VgpuShape, SliceRequest, VgpuSlices]):
    """Explains a pod to one shape."""

    made = VgpuExplanation
    alone: VgpuFleet

    def fleet_alone(self, fleet: FleetPart[VgpuShape]) -> VgpuFleet:
        """The fleet with this shape alone, and those of its cards that the pod names."""
        constraints, at = self.requested.constraints, fleet.shapes.index(self.shape)
        slots = fleet.slots if isinstance(fleet, VgpuFleet) else {}
        kept = {
            uuid: tuple(replace(slot, shape=0) for slot in slots.get(uuid, ()) if slot.shape == at)
            for uuid in constraints.use_uuids | constraints.refused_uuids
        }
        return VgpuFleet((self.shape,), fleet.index, slots=kept)

    def judge(self, requested: SliceRequest, nodes: int | None) -> Verdict:
        """The engine's verdict."""
        steps = self.search.share(WORK_LIMIT)
        budget = SearchBudget(steps)
        verdict = judge(only_on(requested, nodes), self.alone, budget)
        self.search.spend(steps - max(budget.left, 0))
        return verdict

    def slices(self) -> VgpuSlices:
        """The first of the scheduler's policies that places every container."""
        policy, slices = next(
            (policy, found)
            for policy in self.requested.policies
            for excluded in self._excluded
            if not isinstance(found := walk(self.shape.cards, self.requested.needs, ORDERS[policy], excluded), Stuck)
        )
        given = zip(self.requested.requests, slices, strict=True)
        return VgpuSlices(policy, tuple(ContainerCards(request.container, cards) for request, cards in given))

    def removals(self) -> Iterator[tuple[str, SliceRequest]]:
        """The annotations."""
        for annotation, nothing in _ANNOTATIONS:
            left = self.requested.constraints._replace(**nothing)
            if left != self.requested.constraints:
                yield annotation, replace(self.requested, constraints=left)

    def reducible(self) -> Iterator[Reducible[SliceRequest]]:
        """The amounts of the first containers; all of a card's memory is more than the largest card has."""
        largest = max((card.memory for card in self.shape.cards), default=0)
        for place, need in enumerate(self.requested.needs[:MAX_CONTAINERS]):
            memory = largest + 1 if need.memory is None else need.memory
            for role, now in ((Role.MEMORY, memory), (Role.NUMBER, need.number), (Role.CORES, need.cores)):
                container, resource = (
                    self.requested.requests[place].container,
                    self.request.config.vgpu.role_names[role],
                )
                yield Reducible(container, resource, now, range(_LEAST[role], now), partial(self._with, place, role))

    def fields(self) -> dict[str, Any]:
        """The mode and the cards."""
        cards = tuple(CardKind(card.type, card.memory, card.split, count) for card, count in self.shape.kinds)
        return {"mode": self.shape.mode, "cards": cards}

    def devices(self) -> str:
        """The mode and the kinds of cards."""
        kinds = [
            f"{count} × {card.product}, {wording.memory(card.memory, self.request.config)}, {card.split} slices"
            for card, count in self.shape.kinds
        ]
        return f"{self.shape.mode}, {'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}"

    def slice_sentences(self, slices: VgpuSlices) -> Iterator[str]:
        """The cards of each container."""
        other = self._other_policy(slices)
        policy = f" ({other})" if other else ""
        for given in slices.containers:
            cards = f"card{'s' if len(given.cards) > 1 else ''} {', '.join(map(str, sorted(given.cards)))}"
            yield f"{wording.container(given.container)} on {cards}{policy}"

    def refusal(self, verdict: Verdict) -> CardRefusal | None:
        """The first test that refuses: mode, labels, then the cards, then the node's totals."""
        constraints, config = self.requested.constraints, self.request.config
        if isinstance(verdict, Fits):
            return None
        if constraints.mode not in (None, self.shape.mode):
            message = f"the node is in mode {self.shape.mode}, the pod requests {wording.quoted(constraints.mode)}"
            return _refusal(Reason.MODE, message)
        if not eligible(constraints, self.alone).shapes:
            return _refusal(Reason.NODES, self.unselected())
        if self._stuck is not None:
            return self._refusal_by_cards(self._stuck)
        for role, total in self.requested.totals.items():
            offered = self.shape.allocatable.get(role, 0)
            if total > offered:
                name = config.vgpu.role_names[role]
                message = f"the containers request {name} {total} in total, the node offers {offered}"
                return _refusal(Reason.TOTALS, message)
        return None

    def draw(self, slices: VgpuSlices | None, note: str) -> DrawnNode:
        """The slices; if the pod does not fit, those before the container that found too few cards."""
        config = self.request.config
        if slices is not None:
            given = [each.cards for each in slices.containers]
            usage = Usage(parts_of(self.shape, self.requested, given, config), note=self._other_policy(slices))
        elif self._stuck is not None:
            parts = parts_of(self.shape, self.requested, self._stuck.slices, config)
            usage = Usage(parts, refusals_of(self.shape, self.requested, self._stuck, config), note)
        else:
            usage = Usage(note=note)
        return draw_shape(self.shape, config, usage)

    @cached_property
    def _excluded(self) -> list[tuple[Reason | None, ...]]:
        """Why the annotations exclude each card, for each different node of the shape; at least one."""
        constraints, cards = self.requested.constraints, self.shape.cards
        shapes = eligible(constraints, self.alone).shapes
        found = [each.positions for each in remainders(constraints, self.alone, shapes) if each is not None]
        typed = [None if constraints.accepts_type(card.type) else Reason.TYPE for card in cards]
        return [
            tuple(
                why or (None if positions is None or at in positions else Reason.UUID) for at, why in enumerate(typed)
            )
            for positions in found or [frozenset[int]()]
        ]

    @cached_property
    def _stuck(self) -> Stuck | None:
        """Where the walk ends on the node with the most cards left; None if it ends nowhere."""
        if not eligible(self.requested.constraints, self.alone).shapes:
            return None
        excluded = max(self._excluded, key=lambda reasons: reasons.count(None))
        found = walk(self.shape.cards, self.requested.needs, ORDERS[self.requested.policies[0]], excluded)
        return found if isinstance(found, Stuck) else None

    def _with(self, place: int, role: Role, value: int) -> SliceRequest:
        """The request with another amount of one container, which also changes the pod's totals."""
        needs, totals = list(self.requested.needs), dict(self.requested.totals)
        changed: dict[str, Any] = {role.value: value}
        needs[place] = replace(needs[place], **changed)
        totals[role] = totals.get(role, 0) - self.requested.requests[place].amount(role) + value
        return replace(self.requested, needs=tuple(needs), totals=totals)

    def _other_policy(self, slices: VgpuSlices) -> str:
        """The policy that places the containers, if it is not the default one and not known to be in use."""
        known = len(self.requested.policies) == 1
        other = f"with SchedulePolicy {slices.policy}; the default walk misses it"
        return "" if known or slices.policy == "default" else other

    def _refusal_by_cards(self, stuck: Stuck) -> CardRefusal:
        """The number of cards, or the first card that refuses."""
        container, need = self.requested.requests[stuck.container].container, self.requested.needs[stuck.container]
        who, cards = wording.container(container), self.shape.cards
        if stuck.card is None or need.number > len(cards):
            message = f"{who} needs {need.number} different cards, the node has {len(cards)}"
            return _refusal(Reason.CARDS, message, stuck.card, container)
        reason, card = stuck.refusals[stuck.card] or Reason.CARDS, cards[stuck.card]
        why = card_refusal(reason, card, stuck.used[stuck.card], need, (1, wording.unit(self.request.config)))
        message = f"{who} is refused first by card {stuck.card} ({card.product}): {why}; {_tally(stuck, need.number)}"
        return _refusal(reason, message, stuck.card, container)


def _refusal(reason: Reason, message: str, card: int | None = None, container: Container | None = None) -> CardRefusal:
    return CardRefusal(reason.words, card, None if container is None else container.name, f"{reason}: {message}")


def _tally(stuck: Stuck, wanted: int) -> str:
    """How many cards refused, by reason."""
    counts = Counter(reason for reason in stuck.refusals if reason is not None)
    by = f" ({', '.join(f'{reason} {count}' for reason, count in counts.items())})" if len(counts) > 1 else ""
    return f"{counts.total()} of {len(stuck.refusals)} cards refuse{by}, {wanted} needed"


# --- a node as a picture ----------------------------------------------------------------------------------------------


def draw_shape(shape: VgpuShape, config: DeviceConfig, usage: Usage = UNUSED) -> DrawnNode:
    """Cards that are cut into slices; memory in MiB, cores in percent."""

    def bare(index: int) -> DrawnCard:
        card = shape.cards[index]
        memory = card.memory * config.vgpu.memory_factor
        return DrawnCard(f"card {index}", card.product, memory, card.split, CARD_CORES)

    return draw_node(len(shape.cards), bare, (MIB, PERCENT), usage)


def parts_of(
    shape: VgpuShape, requested: SliceRequest, slices: Sequence[Sequence[int]], config: DeviceConfig, pod: str = ""
) -> dict[int, list[DrawnPart]]:
    """The slices on each card, by container, or all in the name of their pod.

    `slices` has the cards of the first containers, or of all.
    """
    found: dict[int, list[DrawnPart]] = {}
    for request, need, cards in zip(requested.requests, requested.needs, slices, strict=False):
        name = shorten(pod, MAX_TEXT) or drawn_name(request.container)
        for index in cards:
            found.setdefault(index, []).append(_part(name, shape.cards[index], need, config))
    return found


def _part(name: str, card: Card, need: Need, config: DeviceConfig) -> DrawnPart:
    booked = card.booked(need.of(card)) or 0
    label = WHOLE_CARD if need.memory is None else ""
    if card.geometries is not None:
        label = "MIG instance"
    return DrawnPart(name, booked * config.vgpu.memory_factor, need.cores, label)


def refusals_of(shape: VgpuShape, requested: SliceRequest, stuck: Stuck, config: DeviceConfig) -> dict[int, str]:
    """Why the cards refuse; the card that was tried first comes first. No more cards than are drawn."""
    need, unit = requested.needs[stuck.container], (config.vgpu.memory_factor, MIB)
    order = [] if stuck.card is None else [stuck.card]
    order += [index for index, reason in enumerate(stuck.refusals) if reason is not None]
    return {
        index: f"{reason}: {card_refusal(reason, shape.cards[index], stuck.used[index], need, unit)}"
        for index in dict.fromkeys(order[: MAX_CARDS + 1])
        if (reason := stuck.refusals[index]) is not None
    }


def card_refusal(reason: Reason, card: Card, used: Used, need: Need, unit: tuple[int, str]) -> str:
    """Why a card refuses a slice; `unit` is the factor and the name of the unit in which memory is written."""
    (slices, memory, cores), (factor, name) = used, unit
    wanted = f"{need.of(card) * factor} {name}"
    match reason:
        case Reason.TYPE | Reason.UUID:
            return "not one that the pod requests"
        case Reason.SPLIT:
            return f"all {slices} slices are taken" if slices else "cut into 0 slices"
        case Reason.MEMORY:
            return f"{wanted} needed, {(card.memory - memory) * factor} free"
        case Reason.CORES:
            return f"{need.cores} % needed, {CARD_CORES - cores} % free"
        case Reason.EXCLUSIVE:
            return "100 % of the cores require a card of their own" if need.cores else "all cores are given away"
        case _:
            return f"none has {wanted}"
