"""Equal devices of a node."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Equal devices of a node: cards, NPUs or chips.

    Attributes:
        type: the model.
        memory: of each, in MiB (of gpushare cards in whatever unit their device plugin counts); None if it is not known.
        split: into how many slices each may be cut; None if it is not cut into slices.
        cores: AI cores of each; None where cores are percents, or unknown.
        count: how many the node has.
    """

    type: str
    memory: int | None = None
    split: int | None = None
    cores: int | None = None
    count: int
