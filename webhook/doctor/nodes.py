"""Nodes by what they register."""

from webhook import names
from webhook.doctor.facts import Facts, Kind
from webhook.doctor.reading import Object, name_of, table, text


def registering(facts: Facts) -> list[Object]:
    """The nodes that register vGPU cards, whether the scheduler can read it or not."""
    return [node for node in facts.all(Kind.NODE) if register(node)]


def register(node: Object) -> str:
    """The annotation that registers vGPU cards; empty without."""
    return text(node, "metadata", "annotations", names.NODE_VGPU_REGISTER)


def npu_registers(node: Object) -> dict[str, str]:
    """The annotations that register NPUs, by the chip's common word."""
    prefix = names.NODE_ASCEND_REGISTER_PREFIX
    annotations = table(node, "metadata", "annotations")
    return {
        key.removeprefix(prefix): value
        for key, value in annotations.items()
        if key.startswith(prefix) and isinstance(value, str) and value
    }


def vgpu_names(facts: Facts) -> list[str]:
    """The names of the nodes that register vGPU cards."""
    return [name_of(node) for node in registering(facts)]


def ascend_names(facts: Facts) -> list[str]:
    """The names of the nodes that register NPUs."""
    return [name_of(node) for node in facts.all(Kind.NODE) if npu_registers(node)]
