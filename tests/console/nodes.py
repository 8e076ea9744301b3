"""Nodes for tests of pages."""

from webhook import names
from webhook.devices.nodes import Node

GATES = {names.VGPU_NUMBER: 10, names.VGPU_MEMORY: 16_000, names.VGPU_CORES: 100}


def vgpu_node(name, *cards, offered=None):
    register = "".join(
        f"GPU-{name}-{at},{split},{memory},{kind},true,hami-core:" for at, (split, memory, kind) in enumerate(cards)
    )
    offers = GATES if offered is None else offered
    return Node(name, {}, {names.NODE_VGPU_REGISTER: register}, offers, offers)
