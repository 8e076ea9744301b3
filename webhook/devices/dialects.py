"""The names by which pods ask other systems for a share of a GPU, and what says the same here.

Sources: HAMi `pkg/device/nvidia/device.go`, `pkg/util/types.go`; gpushare-scheduler-extender `pkg/utils/const.go`, and the
documentation of ACK for the label and the share of cores; Huawei CCE, user manual, "GPU Virtualization" (cce_10_0644,
cce_10_0965); tkestack/gpu-manager `README.md`, and the documentation of TKE for qGPU; KAI-Scheduler
`pkg/common/constants/constants.go`, `pkg/binder/plugins/gpusharing/gpu-request/gpu_request_validator.go`, and its
documentation of NvFractions.
"""

from collections.abc import Collection
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from webhook import names
from webhook.devices.families import Role


class Place(StrEnum):
    """Where a pod has a name."""

    RESOURCE = "resource"
    ANNOTATION = "annotation"
    LABEL = "label"
    CONTAINER_ANNOTATION = "container annotation"  # an annotation of the pod, with the name of a container in it


class Word(NamedTuple):
    """A name of a dialect.

    Attributes:
        name: as pods write it; `{}` stands for the name of a container.
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
    unit: int | Fraction = 1
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
        sums: the amounts of a container that are those of all its cards together, not of each.
        cores_are_cards: whether 100 of its cores are a whole card, and more are several.
        note: what changes for a pod.
    """

    id: str
    title: str
    words: tuple[Word, ...]
    schedulers: tuple[str, ...] = ()
    chooser: str = ""
    sums: frozenset[Role] = frozenset()
    cores_are_cards: bool = False
    note: str = ""

    @property
    def sizes(self) -> set[str]:
        """The annotations that request memory."""
        sized = (Role.MEMORY, Role.PERCENTAGE)
        return {word.name for word in self.words if word.place is Place.ANNOTATION and word.role in sized}

    @property
    def resources(self) -> set[str]:
        """The resources that nothing else uses."""
        return {word.name for word in self.words if word.place is Place.RESOURCE and word.sign}


_ANY_CARD = "the order in which Volcano tries nodes and cards is the same for all pods"
_QUEUE = f"name a queue of Volcano in the annotation {names.QUEUE_NAME}"
_BYTE = Fraction(1, 2**20)
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
        sums=frozenset({Role.MEMORY}),
    ),
    Dialect(
        "cce",
        "Huawei CCE",
        (
            Word(names.CCE_MEMORY, Place.RESOURCE, Role.MEMORY, unit=128),
            Word(names.CCE_CORES, Place.RESOURCE, Role.CORES),
            Word(names.CCE_NUMBER, Place.LABEL, Role.NUMBER, sign=False),
        ),
        sums=frozenset({Role.MEMORY, Role.CORES}),
    ),
    Dialect(
        "tencent",
        "Tencent",
        (
            Word("tencent.com/vcuda-core", Place.RESOURCE, Role.CORES),
            Word("tencent.com/vcuda-memory", Place.RESOURCE, Role.MEMORY, unit=256),
            Word("tke.cloud.tencent.com/qgpu-core", Place.RESOURCE, Role.CORES),
            Word("tke.cloud.tencent.com/qgpu-memory", Place.RESOURCE, Role.MEMORY, unit=1024),
            Word(
                "tencent.com/vcuda-core-limit", Place.ANNOTATION, note="a slice cannot use more cores than it requests"
            ),
        ),
        cores_are_cards=True,
    ),
    Dialect(
        "kai",
        "KAI",
        (
            Word("gpu-fraction", Place.ANNOTATION, Role.PERCENTAGE, unit=100),
            Word("gpu-memory", Place.ANNOTATION, Role.MEMORY, sign=False),
            Word("gpu-fraction-num-devices", Place.ANNOTATION, Role.NUMBER),
            # NvFractions, from 0.18 on; the limit, which is read last, wins.
            Word("nvidia.com/container.{}.gpu-memory.request", Place.CONTAINER_ANNOTATION, Role.MEMORY, unit=_BYTE),
            Word("nvidia.com/container.{}.gpu-memory.limit", Place.CONTAINER_ANNOTATION, Role.MEMORY, unit=_BYTE),
            Word("gpu-fraction.limit", Place.ANNOTATION, note=_LIMIT),
            Word("gpu-memory.limit", Place.ANNOTATION, note=_LIMIT, sign=False),
            Word("kai.scheduler/queue", Place.LABEL, note=_QUEUE, sign=False),
            Word("runai/queue", Place.LABEL, note=_QUEUE, sign=False),
        ),
        schedulers=("kai-scheduler", "runai-scheduler"),
        chooser="gpu-fraction-container-name",
        note="here the memory is a limit; KAI limits it with NvFractions only",
    ),
)
DIALECTS = {dialect.id: dialect for dialect in _ALL}

_WORDS = [word for dialect in _ALL for word in dialect.words]
TITLES = " or ".join(", ".join(dialect.title for dialect in _ALL).rsplit(", ", 1))
RESOURCES = frozenset(word.name for word in _WORDS if word.place is Place.RESOURCE)
# The names of amounts, each with the first system that has it.
AMOUNTS = {
    word.name: (dialect, word.role, word)
    for dialect in reversed(_ALL)
    for word in dialect.words
    if word.role is not None
}
ANNOTATIONS = frozenset(word.name for word in _WORDS if word.place is Place.ANNOTATION and word.here != word.name)
PREFIXES = tuple(word.name.partition("{")[0] for word in _WORDS if word.place is Place.CONTAINER_ANNOTATION)
_NAMES = {dialect.id: frozenset(word.name for word in dialect.words) for dialect in _ALL}
_PREFIXED = {dialect.id for dialect in _ALL for word in dialect.words if word.place is Place.CONTAINER_ANNOTATION}


def dialects_with(found: Collection[str]) -> list[Dialect]:
    """The dialects that have one of some names of a pod."""
    prefixed = any([name.startswith(PREFIXES) for name in found])
    return [
        dialect
        for dialect in _ALL
        if not _NAMES[dialect.id].isdisjoint(found) or (prefixed and dialect.id in _PREFIXED)
    ]
