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


class PodFact(StrEnum):
    """What a rule may need in a pod, besides a role of an amount and an optional field: without it, the rule is not run.

    A pod may have a fact although no rule finds anything; it never lacks one that a finding depends on.
    """

    DIFFERENT = "different amounts in requests and limits"
    FOREIGN = "a resource that is neither of a family nor Kubernetes' own"
    REFUSED = "no node takes the pod, or only one in doubt"
    SEVERAL = "several containers with devices, or several families"
    TIGHT = "an assignment that the scheduler may miss"
    UNCOUNTED = "a device without a count"
    UNUSABLE = "an amount that cannot be used"
    ZERO = "an amount of 0"
