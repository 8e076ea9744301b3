"""The names by which pods ask other systems for a share of a GPU, and what says the same here.

Sources: HAMi `pkg/device/nvidia/device.go`, `pkg/util/types.go`; gpushare-scheduler-extender `pkg/utils/const.go`, and the
documentation of ACK for the label and the share of cores; KAI-Scheduler `pkg/common/constants/constants.go`,
`pkg/binder/plugins/gpusharing/gpu-request/gpu_request_validator.go`.
"""

from enum import StrEnum
from typing import NamedTuple

from webhook import names
from webhook.devices.families import Role


class Place(StrEnum):
    """Where a pod has a name."""

    RESOURCE = "resource"
    ANNOTATION = "annotation"
    LABEL = "label"


class Word(NamedTuple):
    """A name of a dialect.

    Attributes:
        name: as pods write it.
        place: where.
        role: what it is an amount of; None if it is none.
        unit: how many MiB, cards or per cent its 1 is.
        here: the annotation that says the same here; empty if none does, the name itself if Volcano reads it, too.
        values: those that the annotation may have here; empty: any.
        sign: whether nothing else uses the name, so that it shows the dialect.
        note: why nothing says the same.
        blocks: whether a pod cannot be translated without a counterpart.
    """

    name: str
    place: Place
    role: Role | None = None
    unit: int = 1
    here: str = ""
    values: tuple[str, ...] = ()
    sign: bool = True
    note: str = ""
    blocks: bool = False


class Dialect(NamedTuple):
    """The names of one system.

    Attributes:
        id: in the policy.
        title: for people.
        words: its names.
        schedulers: the schedulerNames of its pods.
        chooser: the annotation that names the container which annotations are about; without it, the first.
        sums: whether the memory of a container is that of all its cards together, not of each.
        note: what changes for a pod.
    """

    id: str
    title: str
    words: tuple[Word, ...]
    schedulers: tuple[str, ...] = ()
    chooser: str = ""
    sums: bool = False
    note: str = ""

    @property
    def sizes(self) -> set[str]:
        """The annotations that nothing else uses, and that request memory."""
        sized = (Role.MEMORY, Role.PERCENTAGE)
        return {word.name for word in self.words if word.place is Place.ANNOTATION and word.sign and word.role in sized}

    def sure(self, place: Place) -> list[str]:
        """The names at a place that nothing else uses."""
        return [word.name for word in self.words if word.place is place and word.sign]

    def unsure(self, place: Place) -> list[str]:
        """The amounts at a place whose names other systems use, too."""
        return [word.name for word in self.words if word.place is place and word.role is not None and not word.sign]


_ANY_CARD = "the order in which Volcano tries nodes and cards is the same for all pods"
_QUEUE = f"name a queue of Volcano in the annotation {names.QUEUE_NAME}"
_LIMIT = "what a slice requests is its limit"

_ALL = (
    Dialect(
        "hami",
        "HAMi",
        (
            # NVIDIA's own device plugin has the name, too.
            Word(names.NVIDIA_GPU, Place.RESOURCE, Role.NUMBER, sign=False),
            Word("nvidia.com/gpumem", Place.RESOURCE, Role.MEMORY),
            Word("nvidia.com/gpumem-percentage", Place.RESOURCE, Role.PERCENTAGE),
            Word("nvidia.com/gpucores", Place.RESOURCE, Role.CORES),
            Word("nvidia.com/priority", Place.RESOURCE, note="the slices of a card have no priorities"),
            Word(names.USE_GPUTYPE, Place.ANNOTATION, here=names.USE_GPUTYPE, sign=False),
            Word(names.NOUSE_GPUTYPE, Place.ANNOTATION, here=names.NOUSE_GPUTYPE, sign=False),
            Word("nvidia.com/use-gpuuuid", Place.ANNOTATION, here=names.USE_GPUUUID),
            Word("nvidia.com/nouse-gpuuuid", Place.ANNOTATION, here=names.NOUSE_GPUUUID),
            Word(
                "nvidia.com/vgpu-mode",
                Place.ANNOTATION,
                here=names.VGPU_MODE,
                values=(names.MODE_HAMI_CORE, names.MODE_MIG),
            ),
            Word("nvidia.com/numa-bind", Place.ANNOTATION, note="Volcano chooses no cards by their NUMA node"),
            Word("hami.io/node-scheduler-policy", Place.ANNOTATION, note=_ANY_CARD),
            Word("hami.io/gpu-scheduler-policy", Place.ANNOTATION, note=_ANY_CARD),
            Word("hami.io/device-scoring-weights", Place.ANNOTATION, note=_ANY_CARD),
        ),
        schedulers=("hami-scheduler",),
    ),
    Dialect(
        "aliyun",
        "aliyun",
        (
            Word("aliyun.com/gpu-mem", Place.RESOURCE, Role.MEMORY, unit=1024),
            Word("aliyun.com/gpu-core.percentage", Place.RESOURCE, Role.CORES),
            Word("aliyun.com/gpu-count", Place.LABEL, Role.NUMBER, sign=False),
            Word(
                "aliyun.com/gpu-count",
                Place.RESOURCE,
                note="as a resource it counts the cards of a node; remove it, and request aliyun.com/gpu-mem",
                blocks=True,
            ),
        ),
        sums=True,
    ),
    Dialect(
        "kai",
        "KAI",
        (
            Word("gpu-fraction", Place.ANNOTATION, Role.PERCENTAGE, unit=100),
            Word("gpu-memory", Place.ANNOTATION, Role.MEMORY, sign=False),
            Word("gpu-fraction-num-devices", Place.ANNOTATION, Role.NUMBER),
            Word("gpu-fraction.limit", Place.ANNOTATION, note=_LIMIT),
            Word("gpu-memory.limit", Place.ANNOTATION, note=_LIMIT, sign=False),
            Word("kai.scheduler/queue", Place.LABEL, note=_QUEUE, sign=False),
            Word("runai/queue", Place.LABEL, note=_QUEUE, sign=False),
        ),
        schedulers=("kai-scheduler", "runai-scheduler"),
        chooser="gpu-fraction-container-name",
        note="KAI splits a card by time and limits no memory; here the memory is a limit",
    ),
)
DIALECTS = {dialect.id: dialect for dialect in _ALL}

_WORDS = [word for dialect in _ALL for word in dialect.words]
RESOURCES = frozenset(word.name for word in _WORDS if word.place is Place.RESOURCE)
ANNOTATIONS = frozenset(word.name for word in _WORDS if word.place is Place.ANNOTATION and word.here != word.name)
