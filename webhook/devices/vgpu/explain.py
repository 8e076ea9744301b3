"""A pod on the vGPU nodes of one shape: on which cards the slices lie, or which card refuses first."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from webhook import names
from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import MAX_CARDS
from webhook.devices.explainer import Explainer, Taken
from webhook.devices.families import Role
from webhook.devices.family import Refusal
from webhook.devices.model import CARD_CORES, MIB
from webhook.devices.nearest import MAX_CONTAINERS, Reducible
from webhook.devices.shapes import FleetPart
from webhook.devices.verdict import Fits, Never, Reason, Verdict
from webhook.devices.vgpu.eligibility import Constraints, eligible, remainders
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.devices.vgpu.fleet import Card, Used, VgpuFleet, VgpuShape
from webhook.devices.vgpu.placement import ORDERS, Order, Slices, greedy
from webhook.devices.vgpu.slices import Need, takes
from webhook.volcano.scheduler import EXCLUSIVE_RULES

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
class Stuck:
    """Where a walk ended.

    Attributes:
        container: the index of the request that found too few cards.
        card: the index of the first card that refused it; None if the node has too few cards to begin with.
        refusals: why each card refused, by card index; None for one that took a slice.
        used: what each card had given away before this container came.
        slices: of the containers before this one.
    """

    container: int
    card: int | None
    refusals: tuple[Reason | None, ...]
    used: tuple[Used, ...]
    slices: Slices


def walk(
    cards: Sequence[Card], needs: Sequence[Need], order: Order, excluded: Sequence[Reason | None]
) -> Slices | Stuck:
    """Serve the containers one after the other, as the scheduler does; nothing is taken back.

    Args:
        cards: of the node, in the scheduler's order.
        needs: one for each container.
        order: in which the cards are tried.
        excluded: why the pod's annotations exclude a card, whatever is free; None if they do not.
    """
    used = [card.used for card in cards]
    left_out = frozenset([index for index, reason in enumerate(excluded) if reason is not None])
    slices: list[tuple[int, ...]] = []
    for container, need in enumerate(needs):
        before = list(used)
        taken = greedy(cards, [need], order, used, left_out)
        if taken is None:
            tried = zip(cards, before, excluded, strict=True)
            settled = need.settled(cards, before)
            refusals = tuple([reason or refusal(card, own, settled) for card, own, reason in tried])
            first = next((index for index in order(before) if refusals[index]), None)
            return Stuck(container, first, refusals, tuple(before), tuple(slices))
        slices += taken
    return tuple(slices)


def refusal(card: Card, used: Used, need: Need) -> Reason | None:
    """Why a card refuses a slice: the first test that fails, in the scheduler's order; None if it takes it."""
    slices, memory, cores = used
    if slices >= card.split:
        return Reason.SPLIT
    if card.memory - memory < need.of(card):
        return Reason.MEMORY
    if cores + need.cores > CARD_CORES:
        return Reason.CORES
    if (slices and need.cores == CARD_CORES) or (cores == CARD_CORES and need.cores == 0):
        return Reason.EXCLUSIVE
    return Reason.MIG_INSTANCE if takes(card, used, need) is None else None


class VgpuExplainer(Explainer[SliceRequest, Card]):
    """Explains slices of cards."""

    def names_devices(self, request: SliceRequest) -> bool:
        """By their UUIDs."""
        return request.constraints.names_uuids

    def is_served(self, request: SliceRequest) -> bool:
        """Whether a container requests a slice."""
        return bool(request.needs)

    def describe(self, refusal: Refusal[SliceRequest, Card]) -> Iterator[tuple[str, str]]:
        """The card that refuses first."""
        fleet = cast("VgpuFleet", refusal.part)
        yield refusal.path, describe_first(refusal.never, refusal.request, fleet, self.family.config)

    def missing(self, _request: SliceRequest, _part: FleetPart[Card]) -> str:
        """No register."""
        return "no node of the fleet registers vGPU cards"

    def alone(self, request: SliceRequest, part: FleetPart[Card], shape: VgpuShape) -> VgpuFleet:
        """The fleet with this shape alone, and those of its cards that the pod names."""
        constraints, at = request.constraints, part.shapes.index(shape)
        slots = part.slots if isinstance(part, VgpuFleet) else {}
        kept = {
            uuid: tuple(replace(slot, shape=0) for slot in slots.get(uuid, ()) if slot.shape == at)
            for uuid in constraints.use_uuids | constraints.refused_uuids
        }
        return VgpuFleet((shape,), part.index, slots=kept)

    def narrow(self, request: SliceRequest, part: FleetPart[Card], verdict: Verdict) -> Never | None:
        """The first test that refuses, also where another order of the containers or cards would fit."""
        return None if isinstance(verdict, Fits) else first_refusal(request, cast("VgpuFleet", part))

    def taken(self, request: SliceRequest, part: FleetPart[Card]) -> tuple[tuple[Taken, ...], str]:
        """The slices where the scheduler puts them, and the policy that does."""
        slices, note = find_slices(request, cast("VgpuFleet", part))
        return tuple(taken_of(request, part.shapes[0], slices)), note

    def before(self, request: SliceRequest, part: FleetPart[Card]) -> tuple[tuple[Taken, ...], Mapping[int, str]]:
        """The slices before the container that found too few cards."""
        shape, stuck = part.shapes[0], find_stuck(request, cast("VgpuFleet", part))
        if stuck is None or request.constraints.mode not in (None, shape.mode):
            return (), {}
        return tuple(taken_of(request, shape, stuck.slices)), card_refusals(request, shape, stuck)

    def removals(self, request: SliceRequest) -> Iterator[tuple[str, SliceRequest]]:
        """The annotations."""
        return removals(request)

    def reducible(self, request: SliceRequest, shape: VgpuShape) -> Iterator[Reducible[SliceRequest]]:
        """The amounts of the first containers."""
        return reducible(request, shape, self.family.config)


def excluded_cards(request: SliceRequest, fleet: VgpuFleet) -> list[tuple[Reason | None, ...]]:
    """Why annotations and rules exclude each card, for each different node of the only shape; at least one."""
    constraints, cards = request.constraints, fleet.shapes[0].devices
    shapes = eligible(constraints, fleet).shapes
    allowed = [each.positions for each in remainders(constraints, fleet, shapes) if each is not None]
    typed = [_exclusion(constraints, card) for card in cards]
    return [
        tuple(why or (None if positions is None or at in positions else Reason.UUID) for at, why in enumerate(typed))
        for positions in allowed or [frozenset[int]()]
    ]


def _exclusion(constraints: Constraints, card: Card) -> Reason | None:
    if not constraints.accepts_type(card.type):
        return Reason.TYPE
    return None if constraints.accepts(card) else Reason.RESERVED


def find_slices(request: SliceRequest, fleet: VgpuFleet) -> tuple[Slices, str]:
    """The first of the scheduler's policies that places every container, if it is not the default one or the one in use."""
    excluded = excluded_cards(request, fleet)
    policy, slices = next(
        (policy, walked)
        for policy in request.policies
        for reasons in excluded
        if not isinstance(walked := walk(fleet.shapes[0].devices, request.needs, ORDERS[policy], reasons), Stuck)
    )
    is_clear = len(request.policies) == 1 or policy == "default"
    return slices, "" if is_clear else f"with SchedulePolicy {policy}; the default walk misses it"


def find_stuck(request: SliceRequest, fleet: VgpuFleet) -> Stuck | None:
    """Where the walk ends on the node with the most cards left; None if it ends nowhere."""
    if not eligible(request.constraints, fleet).shapes:
        return None
    excluded = max(excluded_cards(request, fleet), key=lambda reasons: reasons.count(None))
    walked = walk(fleet.shapes[0].devices, request.needs, ORDERS[request.policies[0]], excluded)
    return walked if isinstance(walked, Stuck) else None


def taken_of(request: SliceRequest, shape: VgpuShape, slices: Sequence[Sequence[int]]) -> Iterator[Taken]:
    """The slices; `slices` has the cards of the first containers, or of all."""
    used = [card.used for card in shape.devices]
    for one, each, cards in zip(request.requests, request.needs, slices, strict=False):
        need = each.settled(shape.devices, used)
        for index in cards:
            card = shape.devices[index]
            used[index] = takes(card, used[index], need) or used[index]
            accounted = card.accounted(need.of(card)) or 0
            label = "whole card" if each.memory is None else ""
            if card.geometries is not None:
                label = "MIG instance"
            yield Taken(one.container, index, accounted * card.factor, need.cores, label)


def first_refusal(request: SliceRequest, fleet: VgpuFleet) -> Never | None:
    """The first test that refuses: mode, labels, then the cards, then the node's totals."""
    constraints, shape = request.constraints, fleet.shapes[0]
    if constraints.mode not in (None, shape.mode):
        return Never(Reason.MODE)
    if not eligible(constraints, fleet).shapes:
        return Never(Reason.NODES)
    stuck = find_stuck(request, fleet)
    if stuck is not None:
        container, need = request.requests[stuck.container].container, request.needs[stuck.container]
        if stuck.card is None or need.number > len(shape.devices):
            return Never(Reason.CARDS, container, requested=need.number, most=len(shape.devices), device=stuck.card)
        return Never(stuck.refusals[stuck.card] or Reason.CARDS, container, device=stuck.card)
    for name, total in request.totals.items():
        offered = shape.offered.get(name, 0)
        if total > offered:
            return Never(Reason.TOTALS, None, name, total, offered)
    return None


def describe_first(never: Never, request: SliceRequest, fleet: VgpuFleet, config: DeviceConfig) -> str:
    """The sentence about what refuses first."""
    who = wording.container(never.container) if never.container is not None else "the pod"
    if never.reason is Reason.MODE:
        return (
            f"the node is in mode {fleet.shapes[0].mode}, the pod requests {wording.quoted(request.constraints.mode)}"
        )
    if never.reason is Reason.TOTALS:
        return f"the containers request {never.resource} {never.requested} in total, the node offers {never.most}"
    if never.reason is Reason.CARDS:
        return f"{who} needs {never.requested} different cards, the node has {never.most}"
    stuck = find_stuck(request, fleet)
    if stuck is None or stuck.card is None:
        return str(never.reason)
    card, need = fleet.shapes[0].devices[stuck.card], request.needs[stuck.container]
    why = card_refusal(never.reason, card, stuck.used[stuck.card], need, (1, wording.unit(config)))
    return f"{who} is refused first by card {stuck.card} ({card.product}): {why}; {_tally(stuck, need.number)}"


def card_refusals(request: SliceRequest, shape: VgpuShape, stuck: Stuck) -> dict[int, str]:
    """Why the cards refuse; the card that was tried first comes first. No more cards than are drawn."""
    need = request.needs[stuck.container]
    order = [] if stuck.card is None else [stuck.card]
    order += [index for index, reason in enumerate(stuck.refusals) if reason is not None]
    return {
        index: f"{reason}: {card_refusal(reason, card, stuck.used[index], need, (card.factor, MIB))}"
        for index in dict.fromkeys(order[: MAX_CARDS + 1])
        if (reason := stuck.refusals[index]) is not None
        for card in (shape.devices[index],)
    }


def removals(request: SliceRequest) -> Iterator[tuple[str, SliceRequest]]:
    """The annotations."""
    for annotation, nothing in _ANNOTATIONS:
        left = request.constraints._replace(**nothing)
        if left != request.constraints:
            yield annotation, replace(request, constraints=left)


def reducible(request: SliceRequest, shape: VgpuShape, config: DeviceConfig) -> Iterator[Reducible[SliceRequest]]:
    """The amounts of the first containers; all of a card's memory is more than the largest card has."""
    largest = max((card.memory for card in shape.devices), default=0)
    for place, need in enumerate(request.needs[:MAX_CONTAINERS]):
        memory = largest + 1 if need.memory is None else need.memory
        for role, now in ((Role.MEMORY, memory), (Role.NUMBER, need.number), (Role.CORES, need.cores)):
            resource = config.vgpu.role_names[role]
            lowered = partial(_with, request, place, role, resource)
            yield Reducible(request.requests[place].container, resource, now, range(_LEAST[role], now), lowered)


def _with(request: SliceRequest, place: int, role: Role, resource: str, value: int) -> SliceRequest:
    """The request with another amount of one container, which also changes the pod's totals."""
    needs, totals = list(request.needs), dict(request.totals)
    changed: dict[str, Any] = {role.value: value}
    needs[place] = replace(needs[place], **changed)
    totals[resource] = totals.get(resource, 0) - request.requests[place].amount(role) + value
    return replace(request, needs=tuple(needs), totals=totals)


def _tally(stuck: Stuck, wanted: int) -> str:
    """How many cards refused, by reason."""
    counts = Counter(reason for reason in stuck.refusals if reason is not None)
    by = f" ({', '.join(f'{reason} {count}' for reason, count in counts.items())})" if len(counts) > 1 else ""
    return f"{counts.total()} of {len(stuck.refusals)} cards refuse{by}, {wanted} needed"


def card_refusal(reason: Reason, card: Card, used: Used, need: Need, unit: tuple[int, str]) -> str:
    """Why a card refuses a slice; `unit` is the factor and the name of the unit in which memory is written."""
    (_, memory, cores), (factor, name) = used, unit
    wanted = f"{need.of(card) * factor} {name}"
    match reason:
        case Reason.TYPE | Reason.UUID:
            return "not one that the pod requests"
        case Reason.RESERVED:
            return f"a pod that matches a rule of {EXCLUSIVE_RULES} as this one does has a slice of it"
        case Reason.SPLIT:
            return f"all {card.split} slices are taken" if card.split else "cut into 0 slices"
        case Reason.MEMORY:
            return f"{wanted} needed, {(card.memory - memory) * factor} free"
        case Reason.CORES:
            return f"{need.cores} % needed, {CARD_CORES - cores} % free"
        case Reason.EXCLUSIVE:
            return "100 % of the cores require a card of their own" if need.cores else "all cores are given away"
        case _:
            return f"none has {wanted}"
