"""Shapes of nodes as operations tell them, of whatever family."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated

from pydantic import Field

from webhook import names
from webhook.console.api.operation import Answer
from webhook.devices.ascend.drawing import draw as draw_ascend
from webhook.devices.ascend.fleet import AscendShape
from webhook.devices.config import DeviceConfig
from webhook.devices.drawing import DrawnNode
from webhook.devices.families import Family, Role
from webhook.devices.gpushare.drawing import draw as draw_gpushare
from webhook.devices.gpushare.fleet import GpushareShape
from webhook.devices.mindcluster.drawing import draw as draw_mindcluster
from webhook.devices.mindcluster.fleet import MindclusterShape
from webhook.devices.shapes import Shape
from webhook.devices.vgpu.drawing import draw_shape as draw_vgpu
from webhook.devices.vgpu.fleet import VgpuShape
from webhook.texts import shorten

MAX_KINDS = 64  # of devices on one node that are told
MAX_NAME = 253  # characters of a node's name; a file may hold longer ones
TEMPLATES = "templates"  # how NPUs are shared that are not shared in software


class Devices(Answer):
    """Equal devices of a node: cards, NPUs or chips.

    Attributes:
        type: the model.
        memory: of each, in MiB (of gpushare cards in whatever unit their device plugin counts); None if nobody knows it.
        split: into how many slices each may be cut; None if it is not cut into slices.
        cores: AI cores of each; None where cores are percents, or unknown.
        count: how many the node has.
    """

    type: str
    memory: int | None = None
    split: int | None = None
    cores: int | None = None
    count: int


class FleetShape(Answer):
    """Nodes that placement cannot tell apart.

    Attributes:
        names: some of them, the first ones of the fleet.
        nodes: how many there are.
        declared: they stand in the policy, and may not exist yet.
        mode: how their devices are shared; empty if there is one way only.
        devices: what each node has, the first 64 kinds.
        more_devices: how many kinds are not told.
        count: how many devices each node has.
        memory: of all devices of one node together; None if nobody knows it.
        slices: of all devices of one node together; None if they are not cut into slices.
        offered: what each node offers in total, by resource name.
        drawing: for the page; not part of the JSON, and None where there are too many.
    """

    names: tuple[str, ...]
    nodes: int
    declared: bool
    mode: str
    devices: tuple[Devices, ...]
    more_devices: int
    count: int
    memory: int | None
    slices: int | None
    offered: Mapping[str, int]

    drawing: Annotated[DrawnNode | None, Field(exclude=True)] = None


def devices_of(shape: Shape, config: DeviceConfig) -> list[Devices]:
    """All kinds of devices of a shape."""
    match shape:
        case VgpuShape():
            factor = config.vgpu.memory_factor
            return [
                Devices(
                    type=shorten(card.product, MAX_NAME),
                    memory=card.memory * factor,
                    split=card.split,
                    count=count,
                )
                for card, count in shape.kinds
            ]
        case GpushareShape():
            return [Devices(type="healthy cards", memory=shape.memory, count=shape.cards)] if shape.cards else []
        case AscendShape():
            return [
                Devices(
                    type=shorten(shape.word, MAX_NAME),
                    memory=max(npu.memory, 0),
                    split=max(npu.split, 0),
                    cores=None if shape.declared else max(npu.cores, 0),
                    count=count,
                )
                for npu, count in shape.kinds
            ]
        case MindclusterShape():
            return [Devices(type="Ascend 310P", cores=shape.chip_cores, count=shape.devices)]
        case _:
            raise TypeError(f"{type(shape).__name__} has no devices that are known")


def offered_by(shape: Shape, config: DeviceConfig) -> dict[str, int]:
    """What a node of a shape offers, by resource name."""
    match shape:
        case VgpuShape():
            called = config.vgpu.role_names
            return {called[role]: amount for role, amount in shape.allocatable.items() if role is not Role.PERCENTAGE}
        case GpushareShape():
            return {names.GPUSHARE_NUMBER: shape.offered_number, names.GPUSHARE_MEMORY: shape.offered_memory}
        case AscendShape():
            chip = next((chip.number_name for chip in config.ascend.chips if chip.word == shape.word), shape.word)
            return {chip: shape.offered}
        case MindclusterShape():
            return {names.NPU_CORE: shape.cores}
        case _:
            return {}


def fleet_shape(
    shape: Shape, some: Iterable[str], nodes: int, config: DeviceConfig, drawing: DrawnNode | None
) -> FleetShape:
    """A shape, or as many of its nodes as are asked for.

    Args:
        shape: the shape.
        some: names of its nodes.
        nodes: how many are asked for.
        config: for units and names.
        drawing: a picture of it.
    """
    devices = devices_of(shape, config)
    return FleetShape(
        names=tuple(shorten(name, MAX_NAME) for name in some),
        nodes=nodes,
        declared=shape.declared,
        mode=_mode(shape),
        devices=tuple(islice(devices, MAX_KINDS)),
        more_devices=max(len(devices) - MAX_KINDS, 0),
        count=shape.devices,
        memory=added((each.memory, each.count) for each in devices),
        slices=added((each.split, each.count) for each in devices),
        offered=offered_by(shape, config),
        drawing=drawing,
    )


def added(amounts: Iterable[tuple[int | None, int]]) -> int | None:
    """The sum of amounts, each so many times; None if none of them is known."""
    known = [amount * count for amount, count in amounts if amount is not None]
    return sum(known) if known else None


def unit(family: Family) -> str:
    """What the memory of a family is counted in; empty if nobody knows."""
    return "" if family in (Family.GPUSHARE, Family.MINDCLUSTER) else "MiB"


def _mode(shape: Shape) -> str:
    match shape:
        case VgpuShape():
            return shape.mode
        case AscendShape():
            return names.MODE_HAMI_CORE if shape.hami_core else TEMPLATES
        case _:
            return ""


def draw(shape: Shape, config: DeviceConfig) -> DrawnNode:
    """An empty node of a shape."""
    match shape:
        case VgpuShape():
            return draw_vgpu(shape, config)
        case GpushareShape():
            return draw_gpushare(shape)
        case AscendShape():
            return draw_ascend(shape)
        case MindclusterShape():
            return draw_mindcluster(shape)
        case _:
            raise TypeError(f"{type(shape).__name__} has no drawing")
