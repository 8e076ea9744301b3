"""The policy's declared nodes as shapes of the fleet."""

from collections.abc import Iterable

from webhook import names
from webhook.devices.ascend.fleet import AscendShape, Npu
from webhook.devices.config import DeviceConfig
from webhook.devices.fleet import Declared
from webhook.devices.gpushare.fleet import GpushareShape
from webhook.devices.vgpu.cards import Card
from webhook.devices.vgpu.fleet import VgpuShape, declared_shape
from webhook.policy_schema import DeclaredNodes

MAX_CARDS = 1024  # of one entry
_ANY_CORES = 2**31 - 1  # the file does not say how many AI cores an NPU has, so they refuse nothing


def declared_shapes(entries: Iterable[DeclaredNodes], config: DeviceConfig) -> Declared:
    """The shapes of nodes that may be scaled up from zero."""
    known = tuple(entries)
    return Declared(
        vgpu=tuple(_vgpu(entry, config) for entry in known if entry.family == "vgpu"),
        gpushare=tuple(_gpushare(entry) for entry in known if entry.family == "gpushare"),
        ascend=tuple(shape for entry in known if entry.family == "ascend" for shape in _ascend(entry, config)),
    )


def _vgpu(entry: DeclaredNodes, config: DeviceConfig) -> VgpuShape:
    vgpu = config.vgpu
    cards: list[Card] = []
    for kind in entry.cards:
        card_type = kind.type if "NVIDIA" in kind.type else f"NVIDIA-{kind.type}"
        geometries = (vgpu.geometries_of(card_type) or ()) if entry.mode == names.MODE_MIG else None
        card = Card(card_type, kind.memory, kind.split, geometries, vgpu.memory_factor)
        cards += [card] * min(kind.count, MAX_CARDS)
    return declared_shape(entry.name, entry.mode, entry.nodes, cards)


def _gpushare(entry: DeclaredNodes) -> GpushareShape:
    number = sum(min(kind.count, MAX_CARDS) for kind in entry.cards)
    memory = sum(min(kind.count, MAX_CARDS) * kind.memory for kind in entry.cards)
    return GpushareShape(
        names=(entry.name,),
        nodes=entry.nodes,
        declared=True,
        cards=number,
        memory=memory // number,
        offered_number=number,
        offered_memory=memory,
    )


def _ascend(entry: DeclaredNodes, config: DeviceConfig) -> Iterable[AscendShape]:
    """One shape for each chip: the scheduler looks at each kind of NPU by itself."""
    for word in dict.fromkeys(kind.type for kind in entry.cards):
        kinds = [kind for kind in entry.cards if kind.type == word]
        npus = tuple((Npu(kind.split, kind.memory, _ANY_CORES), min(kind.count, MAX_CARDS)) for kind in kinds)
        yield AscendShape(
            names=(entry.name,),
            nodes=entry.nodes,
            declared=True,
            word=word,
            kinds=npus,
            hami_core=config.ascend.hami_core,
            offered=sum(npu.split * number for npu, number in npus),
        )
