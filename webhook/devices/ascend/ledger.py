"""What live pods hold of the Ascend NPUs of a node, of one kind of chip.

The annotation `hami.io/<word>-devices-allocated` has an entry `UUID,type,memory,cores:` for each NPU, and `;` behind every
container. The scheduler splits it at `:` only, so it finds no NPU in the entries of the second container and later ones: they
are promised and not booked.
Source: volcano `pkg/scheduler/api/devices/device_info.go` (DecodeContainerDevices, EncodePodSingleDevice),
`pkg/scheduler/api/devices/ascend/hami/device_info.go` (addResource).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import cast

from webhook import names
from webhook.devices.ascend.feasibility import HAMI_CORES, by_chip
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu, NpuUsed, npus_by_id
from webhook.devices.config import AscendConfig, DeviceConfig
from webhook.devices.families import Family
from webhook.devices.ledger import (
    MAX_ENTRIES,
    NOTHING,
    Assigned,
    BoundPod,
    CardAmounts,
    Ledger,
    NodeLedger,
    OccupiedCard,
    OccupiedNode,
    shown,
)
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import FleetPart, Grouping
from webhook.pod.selectors import integer
from webhook.volcano.target import Target

_INT32 = 2**31 - 1


def annotation(word: str) -> str:
    """The pod annotation of one kind of chip."""
    return f"{names.HAMI_PREFIX}{word}{names.HAMI_ALLOCATED_SUFFIX}"


def requested(pod: DevicePod, config: DeviceConfig) -> Mapping[str, tuple[str, ...]] | None:
    """By chip, the names of the containers that the scheduler serves, in order."""
    found = by_chip(pod, config.ascend)
    return {chip.word: tuple(one.container.name for one in requests) for chip, requests in found.items()} or None


def assignments(config: AscendConfig) -> list[str]:
    """The pod annotations of all chips."""
    return [annotation(chip.word) for chip in config.chips]


def occupy(
    shape: AscendShape, node: Node, pods: Sequence[BoundPod], _config: DeviceConfig, target: Target
) -> NodeLedger:
    """The NPUs of a node, with what live pods hold of them."""
    npus = npus_by_id(node.annotations[names.NODE_ASCEND_REGISTER_PREFIX + shape.word])
    cards = {
        name: OccupiedCard(
            name,
            shape.word,
            max(npu.memory, 0),
            max(npu.split, 0),
            HAMI_CORES if shape.hami_core else max(npu.cores, 0),
        )
        for name, npu in npus.items()
    }
    ledger = NodeLedger(node.name, tuple(cards.values()), target)
    key = annotation(shape.word)
    for pod in pods:
        text = pod.annotations.get(key, "")
        if text:
            _add(ledger, cards, pod, text, shape.word)
    for name, card in cards.items():
        card.free = _free(card)
        card.state = npus[name]
    return ledger


def _add(ledger: NodeLedger, cards: Mapping[str, OccupiedCard], pod: BoundPod, text: str, word: str) -> None:
    key = annotation(word)
    containers: Sequence[str] = (pod.requested.get(Family.ASCEND) or {}).get(word, ())
    pieces = [piece for piece in text.split(":", MAX_ENTRIES)[:MAX_ENTRIES] if "," in piece]
    readable = all(piece.count(",") >= 3 for piece in pieces)  # else the scheduler reads nothing of it
    if not readable or not pieces or text.count(":") > MAX_ENTRIES:
        ledger.unreadable(pod, key, f"{shown(text)} is no list of `UUID,type,memory,cores:` of at most {MAX_ENTRIES}")
    segment, seen = -1, set()
    for number, piece in enumerate(pieces):
        fields = piece.lstrip(";").split(",", 4)
        segment += piece.startswith(";") or number == 0
        card = cards.get(fields[0])
        if card is None or len(fields) < 4:
            if len(fields) >= 4:
                ledger.missing(pod, fields[0], "NPU")
            continue
        memory, cores = _number(fields[2]), _number(fields[3])
        if memory is None or cores is None:
            ledger.unreadable(pod, key, f"{shown(piece)} has no plain numbers of memory and cores")
        amounts = CardAmounts(1, memory or 0, cores or 0)
        counts = readable and not piece.startswith(";") and fields[0] not in seen and ledger.counts(pod)
        seen.add(fields[0])
        container = containers[segment] if 0 <= segment < len(containers) else ""
        ledger.hold(card, pod, Assigned(amounts, amounts if counts else None, container))


def _number(text: str) -> int | None:
    """An amount; None where the scheduler reads 0 or nonsense."""
    number = integer(text)
    return number if number is not None and 0 <= number <= _INT32 else None


def _free(card: OccupiedCard) -> CardAmounts:
    left = CardAmounts(
        (card.split or 0) - card.booked.slices,
        (card.memory or 0) - card.booked.memory,
        (card.cores or 0) - card.booked.cores,
    )
    return left if left.slices > 0 and left.memory > 0 else NOTHING


def remaining(part: AscendFleet, nodes: Iterable[OccupiedNode], config: DeviceConfig) -> AscendFleet:
    """What live pods leave of some nodes: NPUs that are used alike are one kind."""
    numbers = {chip.word: chip.number_name for chip in config.ascend.chips}
    found = Grouping()
    for node in nodes:
        shape = cast("AscendShape", node.shape)
        states: Counter[tuple[Npu, NpuUsed]] = Counter(
            (card.state, (card.booked.slices, card.booked.memory, card.booked.cores)) for card in node.cards
        )
        kinds = sorted(states.items())
        found.add(
            node.number,
            node.name,
            word=shape.word,
            kinds=tuple((npu, count) for (npu, _), count in kinds),
            hami_core=shape.hami_core,
            offered=max(node.idle.get(numbers[shape.word], 0), 0),
            used=tuple(used for (_, used), _ in kinds),
        )
    return FleetPart(tuple(sorted(found.shapes(AscendShape), key=attrgetter("word"))), part.index)


LEDGER = Ledger(assignments=assignments, node=names.HAMI_NODE, requested=requested, occupy=occupy, remaining=remaining)
