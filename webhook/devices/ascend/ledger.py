"""What live pods hold of the NPUs of a node.

The annotation `hami.io/<word>-devices-allocated` of a pod has an entry `UUID,type,memory,cores:` for each NPU, and `;` behind
every container. The scheduler splits it at `:` only, so it finds no NPU in the entries of the second container and later ones:
pods hold them, and the scheduler does not book them.
Source: volcano `pkg/scheduler/api/devices/device_info.go` (DecodeContainerDevices, EncodePodSingleDevice),
`pkg/scheduler/api/devices/ascend/hami/device_info.go` (NewAscendDevices, addResource).
"""

from collections.abc import Iterable, Mapping, Sequence

from webhook import names
from webhook.devices.ascend.family import assignment_name, npus_by_id
from webhook.devices.ascend.feasibility import ChipRequest, is_shared, served_amounts, word_of
from webhook.devices.config import DeviceConfig
from webhook.devices.explainer import Taken
from webhook.devices.families import Family
from webhook.devices.ledger import MAX_ENTRIES, Accountant, Assigned, BoundPod, NodeLedger, OccupiedNode, shown
from webhook.devices.model import NOTHING, Amounts, Device
from webhook.devices.nodes import Node
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import AnyShape
from webhook.pod.selectors import integer

_INT32 = 2**31 - 1


class AscendAccountant(Accountant[ChipRequest, Device]):
    """Accounts for NPUs."""

    @staticmethod
    def served(pod: DevicePod, config: DeviceConfig) -> Mapping[str, tuple[str, ...]] | None:
        """By kind of NPU, the names of the containers that the scheduler serves, in order."""
        containers: dict[str, tuple[str, ...]] = {}
        for container, chip, _ in served_amounts(pod, config.ascend):
            containers[chip.word] = (*containers.get(chip.word, ()), container.name)
        return containers or None

    def identities(self, shape: AnyShape, node: Node) -> Iterable[tuple[str, Device]]:
        """The UUIDs."""
        word = word_of(shape)
        return npus_by_id(node.annotations[names.NODE_ASCEND_REGISTER_PREFIX + word], word).items()

    def assign(self, pod: BoundPod, ledger: NodeLedger, shape: AnyShape) -> None:
        """The entries of one kind of NPU."""
        word = word_of(shape)
        key = assignment_name(word)
        text = pod.annotations.get(key, "")
        if not text:
            return
        containers: Sequence[str] = (pod.requested.get(Family.ASCEND) or {}).get(word, ())
        pieces = [piece for piece in text.split(":", MAX_ENTRIES)[:MAX_ENTRIES] if "," in piece]
        readable = all(piece.count(",") >= 3 for piece in pieces)  # else the scheduler reads nothing of it
        if not readable or not pieces or text.count(":") > MAX_ENTRIES:
            problem = f"{shown(text)} is no list of `UUID,type,memory,cores:` of at most {MAX_ENTRIES}"
            ledger.unreadable(pod, key, problem)
        segment, seen = -1, set()
        for number, piece in enumerate(pieces):
            fields = piece.lstrip(";").split(",", 4)
            segment += piece.startswith(";") or number == 0
            if len(fields) < 4:
                continue
            known = fields[0] in ledger.by_id
            memory, cores = _number(fields[2]), _number(fields[3])
            if known and (memory is None or cores is None):
                ledger.unreadable(pod, key, f"{shown(piece)} has no plain numbers of memory and cores")
            amounts = Amounts(1, memory or 0, cores or 0)
            counts = readable and not piece.startswith(";") and fields[0] not in seen and ledger.counts(pod)
            if known:
                seen.add(fields[0])
            container = containers[segment] if 0 <= segment < len(containers) else ""
            ledger.assign(pod, fields[0], "NPU", Assigned(amounts, amounts if counts else None, container))

    def assignment(self, taken: Sequence[Taken], node: OccupiedNode) -> dict[str, str]:
        """An entry for each NPU; all are in one segment, since a cycle of the scheduler counts those of every container."""
        cards, word = self.cards_as_judged(node.cards), word_of(node.shape)
        entries = [f"{cards[each.device].id},{word},{each.memory},{each.cores}:" for each in taken]
        return {assignment_name(word): "".join(entries)}

    def free(self, shape: AnyShape, device: Device) -> Amounts:
        """What is not accounted, if parts, memory and cores are left; in a hard split the largest template that it holds."""
        parts, memory, cores = device.used
        most = self.family.capacity(shape, device)
        left = Amounts(most.slices - parts, most.memory - memory, most.cores - cores)
        chip = next((chip for chip in self.family.config.ascend.chips if chip.word == word_of(shape)), None)
        if chip is not None and not is_shared(shape):
            sizes = [size for size in (*chip.templates, chip.allocatable) if size <= left.memory]
            left = left._replace(memory=max(sizes, default=0))
        return left if left.slices > 0 and left.memory > 0 and not (cores and left.cores <= 0) else NOTHING

    def idle_number(self, node: OccupiedNode) -> int | None:
        """Those of the kind."""
        counted = [chip.number_name for chip in self.family.config.ascend.chips if chip.word == word_of(node.shape)]
        return max(node.idle.get(counted[0], 0), 0) if counted else None


def _number(text: str) -> int | None:
    """An amount; None where the scheduler reads 0 or nonsense."""
    number = integer(text)
    return number if number is not None and 0 <= number <= _INT32 else None
