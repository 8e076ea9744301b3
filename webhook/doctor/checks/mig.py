"""MIG geometries against the cards that are registered."""

from collections.abc import Iterator

from webhook import names
from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.facts import Kind, Unread
from webhook.doctor.nodes import register, registering
from webhook.doctor.reading import listed, name_of
from webhook.doctor.setup import Setup


def mig_models(setup: Setup) -> Iterator[Line]:
    """Each card in mode mig has geometries, and each model of the geometries has a card."""
    gap = setup.facts.gap(Kind.NODE)
    found = registering(setup.facts)
    if not found and gap:
        yield unchecked(gap)
        return
    if isinstance(setup.device_config, Unread):
        yield unchecked(setup.device_config)
        return
    vgpu = setup.config.vgpu
    cards = [
        (name_of(node), fields[3], fields[5] == names.MODE_MIG)
        for node in found
        for entry in register(node).split(":")
        if len(fields := entry.split(",")) >= 6
    ]
    types = {card_type for _, card_type, _ in cards}
    unknown = {card_type for _, card_type, mig in cards if mig and vgpu.geometries_of(card_type) is None}
    for card_type in sorted(unknown):
        nodes = list(dict.fromkeys(name for name, other, mig in cards if mig and other == card_type))
        yield broken(
            f"{listed(nodes)}: {card_type} is in mode mig, but no model of knownMigGeometries is a part of that name: the "
            "scheduler takes it for hami-core",
            "add the model with its geometries to the device config, then restart the scheduler",
        )
    yield from _idle(setup, types, unknown, any(mig for _, _, mig in cards))


def _idle(setup: Setup, types: set[str], unknown: set[str], in_use: bool) -> Iterator[Line]:
    """Models without a card: a mistake where a card has no model, else usual, since the shipped config lists many."""
    models = [model for entry in setup.config.vgpu.mig_models for model in entry.models]
    idle = [model for model in dict.fromkeys(models) if not any(model in card_type for card_type in types)]
    told = f"no registered card has {listed(idle)} in its type, as knownMigGeometries has it" if idle else ""
    if unknown and idle:
        yield warning(told, f"compare with what is registered: {listed(sorted(types))}")
    elif not unknown:
        yield ok(
            "; ".join(
                filter(None, ["every card in mode mig has geometries" if in_use else "no card is in mode mig", told])
            )
        )


CHECKS = (Check("mig-models", mig_models),)
