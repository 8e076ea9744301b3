"""Device families: sets of resource names with one meaning."""

from enum import StrEnum


class Family(StrEnum):
    """The family whose devices a resource name requests."""

    VGPU = "vgpu"
    GPUSHARE = "gpushare"
    ASCEND = "ascend"
    MINDCLUSTER = "mindcluster"


class Role(StrEnum):
    """What a resource name of a family counts."""

    NUMBER = "number"
    MEMORY = "memory"
    CORES = "cores"
    PERCENTAGE = "percentage"
