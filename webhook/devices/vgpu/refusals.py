"""Why no node of the fleet can give a pod its vGPUs, in sentences."""

from collections.abc import Iterator, Sequence

from webhook import names
from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.family import Refusal
from webhook.devices.model import CARD_CORES
from webhook.devices.requests import MAX_STATUS_UNITS
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.eligibility import UNCONSTRAINED, Eligible, eligible
from webhook.devices.vgpu.feasibility import SliceRequest, memory_suffices, offers
from webhook.devices.vgpu.fleet import Card, VgpuFleet, VgpuShape
from webhook.devices.vgpu.slices import Need
from webhook.texts import and_more, counted
from webhook.volcano.target import Target

_WORDS = (names.VGPU_MODE, names.USE_GPUTYPE, names.NOUSE_GPUTYPE, names.USE_GPUUUID, names.NOUSE_GPUUUID)

Sentences = Iterator[tuple[str, str]]  # field paths, each with a sentence
SliceRefusal = Refusal[SliceRequest, Card]


def describe(refusal: SliceRefusal, fleet: VgpuFleet, config: DeviceConfig, target: Target) -> Sentences:
    """The containers, and what the best node has."""
    left = eligible(refusal.request.constraints, fleet)
    match refusal.never.reason:
        case Reason.NO_CARD:
            yield _no_card(refusal, fleet, left, config, target)
        case Reason.CARDS:
            yield from _cards(refusal, left, config)
        case Reason.MEMORY:
            yield from _memory(refusal, left, fleet, config, target)
        case Reason.SPLIT:
            yield _split(refusal, left)
        case _:
            need, *others = refusal.request.needs
            why = "" if others else _smallest(refusal, need, fleet, config, target)
            why = why or f"{_why(refusal.request, left, config)}; request less, or make several pods"
            yield "spec.containers", f"no node{refusal.left()} can take the pod even when it is empty: {why}"


def _cards(refusal: SliceRefusal, left: Eligible, config: DeviceConfig) -> Sentences:
    mode, name = refusal.request.constraints.mode, config.vgpu.number_name
    largest, name_of_largest = max(left.shapes, key=lambda pair: len(pair[0].devices))
    most = len(largest.devices)
    node = f"the largest {mode} node" if mode else "the largest node"
    for request in refusal.pod.slices:
        if request.number and request.number > most:
            wanted = f"{wording.container(request.container)} requests {request.number} vGPUs"
            has = f"{node}{refusal.left()} ({name_of_largest}) has {counted(most, 'card')}"
            fewer = f"request {f'{most} or fewer' if most > 1 else most}"
            yield wording.resource_path(request.container, name), f"{wanted}, but {has}; {fewer}"


def _split(refusal: SliceRefusal, left: Eligible) -> tuple[str, str]:
    wanted = sum(need.number for need in refusal.request.needs)
    best = max(left.candidates, key=lambda one: sum(card.split for card in one.cards))
    slices = sum(card.split for card in best.cards)
    has = f"the best node{refusal.left()} ({best.node}) has {slices} on {counted(len(best.cards), 'card')}"
    sentence = (
        f"the pod's containers together request {wanted} slices, but {has}, and a container takes one slice of a card"
    )
    return "spec.containers", f"{sentence}; request fewer, or make several pods"


def _memory(refusal: SliceRefusal, left: Eligible, fleet: VgpuFleet, config: DeviceConfig, target: Target) -> Sentences:
    if not left.cards:
        return
    best, name = max(left.cards, key=lambda card: card.capacity), config.vgpu.memory_name
    for request, need in zip(refusal.request.requests, refusal.request.needs, strict=True):
        if not any(memory_suffices(card, need) for card in left.cards):
            who = wording.container(request.container)
            what = f"requests {name} {need.memory}" if need.memory else f"gives no {name} and so requests a whole card"
            most, _ = left.largest(need.number) or (best.capacity, None)
            limit = _smallest(refusal, need, fleet, config, target) if most < best.capacity else ""
            if not limit:
                most, room = _most(best.capacity, refusal, need, fleet, target)
                limit = f"{_limit(best, config)}{room}; write {most} or less" if most > 0 else _limit(best, config)
            yield wording.resource_path(request.container, name), f"{who} {what}, but {limit}"


def _limit(best: Card, config: DeviceConfig) -> str:
    amount = wording.memory(best.capacity, config)
    if best.capacity <= 0:
        return f"{best.product} has no MIG instance; check knownMigGeometries, or request {names.MODE_HAMI_CORE}"
    card = best.product
    part = f"the largest MIG instance of {card}" if best.geometries is not None else f"the largest card, {card},"
    return f"{part} has {amount}"


def _smallest(refusal: SliceRefusal, need: Need, fleet: VgpuFleet, config: DeviceConfig, target: Target) -> str:
    """The smallest of the cards that a container needs, if it is too small for a slice, and what fits; else empty."""
    memory, node = eligible(refusal.request.constraints, fleet).largest(need.number) or (0, None)
    if node is None or memory <= 0 or (need.memory is not None and memory >= need.memory) or need.first:
        return ""
    most, room = _most(memory, refusal, need, fleet, target)
    return (
        f"of the {counted(need.number, 'card')} that it needs on one node, at best the smallest ({node.node}) has "
        f"{wording.memory(memory, config)} of memory{room}; request at most {most}"
    )


def _most(memory: int, refusal: SliceRefusal, need: Need, fleet: VgpuFleet, target: Target) -> tuple[int, str]:
    """What to request at most if cards have so much memory, and why less: kubelets that may get the pod write each unit."""
    others = [each for each in refusal.request.needs if each is not need]
    room = MAX_STATUS_UNITS - sum([each.memory or 0 for each in others])
    if memory <= room or room <= 0:
        return memory, ""
    constraints = refusal.request.constraints
    if not target.lists_units:
        nodes = fleet.listing if constraints.nodes is None else fleet.listing & constraints.nodes
        constraints = constraints._replace(nodes=nodes)
    left = [one for one in eligible(constraints, fleet).candidates if target.lists_units or not one.shape.declared]
    if all([(one.slice_memory(need.number) or 0) < memory for one in left]):
        return memory, ""
    return room, f", and the status of a pod has room for {room} units"


def _why(request: SliceRequest, left: Eligible, config: DeviceConfig) -> str:
    """The total that is too large, if one is."""
    shapes = [candidate.shape for candidate in left.candidates]
    if not any(offers(shape, request.totals) for shape in shapes):
        for name in config.vgpu.role_names.values():
            most = max(shape.offered.get(name, 0) for shape in shapes)
            total = request.totals.get(name, 0)
            if total > most:
                return f"its containers request {name} {total} together, but no node offers more than {most}"
    if len(request.needs) == 1 and request.needs[0].first:
        name = config.vgpu.memory_name
        return (
            f"a container without {name} takes of each card the memory of the first card that Volcano before 1.14 looks at, "
            f"and too few cards of any node have that much; write {name}"
        )
    memory = sum((need.memory or 0) * need.number for need in request.needs)
    most_memory = max(sum(card.memory for card in candidate.cards) for candidate in left.candidates)
    if memory > most_memory:
        wanted = wording.memory(memory, config)
        return f"its slices have {wanted} of memory together, but no node's cards have more than {most_memory}"
    cores = sum(need.cores * need.number for need in request.needs)
    most_cores = CARD_CORES * max(len(candidate.cards) for candidate in left.candidates)
    if cores > most_cores:
        return f"its slices have {cores} cores together, but no node's cards have more than {most_cores}"
    return "its containers do not fit onto the cards of one node together (memory, cores, and cards taken whole by 100 cores)"


def _no_card(
    refusal: SliceRefusal, fleet: VgpuFleet, eligible_left: Eligible, config: DeviceConfig, target: Target
) -> tuple[str, str]:
    """The annotations that leave too few cards, and the cards of the fleet."""
    pod, mode, left = refusal.pod, refusal.request.constraints.mode, refusal.left()
    if not fleet.shapes:
        return pod.slices[0].container.where, _no_cards(fleet)
    modes = sorted({shape.mode for shape in fleet.shapes})
    path = wording.annotation_path(names.VGPU_MODE)
    if mode is not None and mode not in modes:
        written = wording.quoted(pod.view.annotation(names.VGPU_MODE))
        advice = f"write {' or '.join(modes)}, or remove the annotation"
        models = [config.vgpu.geometries_of(card.type) for shape in fleet.shapes for card, _ in shape.kinds]
        if mode == names.MODE_MIG and not any(models):
            advice += (
                ". A node with mig counts as hami-core while the device config has no knownMigGeometries for its card"
            )
        return path, f"{names.VGPU_MODE} is {written}, but no node is in that mode; {advice}"
    if not eligible_left.shapes:
        is_so = f"{names.VGPU_MODE} is {wording.quoted(mode)}, but no node{left} is in that mode"
        return path, f"{is_so}; correct one of both"
    words = _words(refusal, target)
    most = max((sum(card.split > 0 for card in candidate.cards) for candidate in eligible_left.candidates), default=0)
    request = max(pod.slices, key=lambda request: request.number or 1)
    cards = counted(request.number or 1, "card")
    by = " and ".join(f"{key} {wording.quoted(pod.view.annotation(key))}" for key in words) or _not_by_words(fleet)
    path = wording.annotation_path(words[-1]) if words else request.container.where
    no_node = f"no node{left} has {f'more than {most}' if most else 'one'}"
    wanted = f"{wording.container(request.container)} requests {cards} allowed by {by}"
    return path, f"{wanted}, but {no_node}; the fleet has {card_types(fleet.shapes)}"


def _words(refusal: SliceRefusal, target: Target) -> list[str]:
    """The annotations that the scheduler reads and that may be to blame."""
    ignored = set() if target.reads_uuids else {names.USE_GPUUUID, names.NOUSE_GPUUUID}
    if refusal.request.constraints.use_types is not None:
        ignored.add(names.NOUSE_GPUTYPE)
    return [key for key in _WORDS if key in refusal.pod.view.annotations and key not in ignored]


def _not_by_words(fleet: VgpuFleet) -> str:
    """What leaves no card if the pod's annotations do not."""
    nvidia = any(UNCONSTRAINED.accepts_type(card.type) for shape in fleet.shapes for card, _ in shape.kinds)
    return "their split count" if nvidia else "their type (Volcano takes NVIDIA cards only)"


def _no_cards(fleet: VgpuFleet) -> str:
    if not fleet.gated:
        return "no node of the fleet registers vGPU cards; is the device plugin running?"
    node, missing = fleet.gated[0]
    return (
        f"no node offers vGPU cards; node {wording.quoted(node)} registers some, but the scheduler sees none of them while "
        f"{wording.lacks(missing)}"
    )


def card_types(shapes: Sequence[VgpuShape]) -> str:
    """The different card types of some shapes."""
    types = sorted({card.product for shape in shapes for card, _ in shape.kinds})
    return and_more([wording.unquoted(name) for name in types], 6) or "no cards"
