"""The names by which pods ask other systems for a share of a GPU, and what says the same here.

The source of each system's names, and when it was read, stand with the system.
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
    VARIABLE = "environment variable"


class Word(NamedTuple):
    """A name of a dialect.

    Attributes:
        name: as pods write it; `{}` stands for the name of a container.
        place: where.
        role: what it counts; None if it is no amount.
        also: what else it counts; None if nothing.
        unit: how many MiB, cards or per cent its 1 is.
        here: the annotation that says the same here; empty if none does, the name itself if Volcano reads it, too.
        values: those that the annotation may have here; empty: any.
        sign: whether nothing else uses the resource or annotation, so that it shows the dialect.
        note: why nothing says the same; of an amount, what its author should look at.
        blocks: whether a pod cannot be translated without a counterpart.
    """

    name: str
    place: Place
    role: Role | None = None
    also: Role | None = None
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
        source: where the names were read, and when.
        words: its names.
        prefixes: what only its names begin with. A name below them that is none of its words is not understood.
        schedulers: the schedulerNames of its pods.
        chooser: the annotation that names the container which annotations are about; without it, the first.
        sums: the roles whose amount is for all cards of a container together, not for each card.
        cores_are_cards: whether 100 of its cores are a whole card, and more are several.
        note: what changes for a pod.
    """

    id: str
    title: str
    source: str
    words: tuple[Word, ...]
    prefixes: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    chooser: str = ""
    sums: frozenset[Role] = frozenset()
    cores_are_cards: bool = False
    note: str = ""

    def sizes(self, place: Place) -> list[str]:
        """The annotations of this place that request memory."""
        sized = (Role.MEMORY, Role.PERCENTAGE)
        return sorted({word.name for word in self.words if word.place is place and word.role in sized})

    @property
    def resources(self) -> set[str]:
        """The resources that nothing else uses."""
        return {word.name for word in self.words if word.place is Place.RESOURCE and word.sign}


_RESOURCE, _ANNOTATION, _LABEL = Place.RESOURCE, Place.ANNOTATION, Place.LABEL
_MODES = (names.MODE_HAMI_CORE, names.MODE_MIG)
_CORES = "a slice cannot use more cores than it requests"
_ANY_CARD = "the order in which Volcano tries nodes and cards is the same for all pods"
_QUEUE = f"name a queue of Volcano in the annotation {names.QUEUE_NAME}"
_BYTE = Fraction(1, 2**20)
_LIMIT = "what a slice requests is its limit"
_WRITTEN = "the scheduler of that system writes it; remove it"
_TOPOLOGY = "Volcano chooses no cards by how they are connected"
_GROUP = "Volcano's controllers make the PodGroup of a pod"
_OWN_GROUP = "make a PodGroup of scheduling.volcano.sh, and name it in the annotation scheduling.k8s.io/group-name"


def _noted(place: Place, why: str, *written: str, sign: bool = True) -> tuple[Word, ...]:
    """Names that nothing here says the same as, for one reason."""
    return tuple(Word(name, place, note=why, sign=sign) for name in written)


_ALL = (
    Dialect(
        "hami",
        "HAMi",
        "`pkg/device/nvidia/device.go`, `pkg/util/types.go` and `docs/` of HAMi (4707fb02, 2.10, August 2026)",
        (
            # NVIDIA's own device plugin has the name, too.
            Word(names.NVIDIA_GPU, _RESOURCE, Role.NUMBER, sign=False),
            Word("nvidia.com/gpumem", _RESOURCE, Role.MEMORY),
            Word("nvidia.com/gpumem-percentage", _RESOURCE, Role.PERCENTAGE),
            Word("nvidia.com/gpucores", _RESOURCE, Role.CORES),
            Word("nvidia.com/priority", _RESOURCE, note="the slices of a card have no priorities"),
            Word(names.USE_GPUTYPE, _ANNOTATION, here=names.USE_GPUTYPE, sign=False),
            Word(names.NOUSE_GPUTYPE, _ANNOTATION, here=names.NOUSE_GPUTYPE, sign=False),
            Word("nvidia.com/use-gpuuuid", _ANNOTATION, here=names.USE_GPUUUID),
            Word("nvidia.com/nouse-gpuuuid", _ANNOTATION, here=names.NOUSE_GPUUUID),
            Word("nvidia.com/vgpu-mode", _ANNOTATION, here=names.VGPU_MODE, values=_MODES),
            Word("nvidia.com/numa-bind", _ANNOTATION, note="Volcano chooses no cards by their NUMA node"),
            Word("hami.io/node-scheduler-policy", _ANNOTATION, note=_ANY_CARD),
            Word("hami.io/gpu-scheduler-policy", _ANNOTATION, note=_ANY_CARD),
            Word("hami.io/device-scoring-weights", _ANNOTATION, note=_ANY_CARD),
            # Volcano writes some of them, too, where it assigns NPUs.
            *_noted(
                _ANNOTATION,
                _WRITTEN,
                *("hami.io/vgpu-node", "hami.io/vgpu-time", "hami.io/bind-phase", "hami.io/bind-time"),
                *("hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate"),
                sign=False,
            ),
            Word("scheduling.x-k8s.io/pod-group", _LABEL, note=_OWN_GROUP),
            Word("hami.io/webhook", _LABEL, note="only HAMi's own webhook reads it"),
        ),
        prefixes=("hami.io/",),
        schedulers=("hami-scheduler",),
    ),
    Dialect(
        "aliyun",
        "aliyun",
        "`pkg/utils/const.go` of gpushare-scheduler-extender (c0b6141, 2023), `device-plugin-ds.yaml` of its device plugin "
        "(45fb8b8, 2022), and ACK's documentation of cGPU (March 2026)",
        (
            Word(
                "aliyun.com/gpu-mem",
                _RESOURCE,
                Role.MEMORY,
                unit=1024,
                note="read as GiB; if its device plugin runs with --memory-unit=MiB, write the amount unchanged",
            ),
            Word("aliyun.com/gpu-core.percentage", _RESOURCE, Role.CORES),
            Word("aliyun.com/gpu-count", _LABEL, Role.NUMBER),
            Word(
                "aliyun.com/gpu-count",
                _RESOURCE,
                note="as a resource it counts the cards of a node; remove it, and request aliyun.com/gpu-mem",
                blocks=True,
            ),
            Word("CGPU_DISABLE", Place.VARIABLE, note="nothing reads it, and the memory of a slice is a limit"),
        ),
        prefixes=("aliyun.com/gpu",),
        sums=frozenset({Role.MEMORY}),
    ),
    Dialect(
        "cce",
        "Huawei CCE",
        'the user manual of CCE, "GPU Virtualization" (cce_10_0644; cce_10_0965, of its Volcano 1.16.10; November 2025)',
        (
            Word(names.CCE_MEMORY, _RESOURCE, Role.MEMORY, unit=128),
            Word(names.CCE_CORES, _RESOURCE, Role.CORES),
            Word(names.CCE_NUMBER, _LABEL, Role.NUMBER),
        ),
        sums=frozenset({Role.MEMORY, Role.CORES}),
    ),
    Dialect(
        "tencent",
        "Tencent",
        "`README.md` of tkestack/gpu-manager, and TKE's documentation of qGPU (November 2026)",
        (
            Word("tencent.com/vcuda-core", _RESOURCE, Role.CORES),
            Word("tencent.com/vcuda-memory", _RESOURCE, Role.MEMORY, unit=256),
            Word("tke.cloud.tencent.com/qgpu-core", _RESOURCE, Role.CORES),
            Word("tke.cloud.tencent.com/qgpu-memory", _RESOURCE, Role.MEMORY, unit=1024),
            Word("tencent.com/vcuda-core-limit", _ANNOTATION, note=_CORES),
            Word(
                "tke.cloud.tencent.com/qgpu-core-greedy",
                _RESOURCE,
                note="no slice here takes only the cores that others leave; remove it, or write the cores of the slice",
                blocks=True,
            ),
            Word(
                "tke.cloud.tencent.com/app-class",
                _ANNOTATION,
                note="the slices of a card are no online and offline ones",
            ),
        ),
        prefixes=("tencent.com/vcuda-", "tke.cloud.tencent.com/qgpu-"),
        cores_are_cards=True,
    ),
    Dialect(
        "kai",
        "KAI",
        "`pkg/common/constants/constants.go` and `pkg/binder/plugins/gpusharing/gpu-request/gpu_request_validator.go` of "
        "KAI-Scheduler, and its documentation of NvFractions and of device affinity (0.18 to 0.20, November 2026)",
        (
            Word("gpu-fraction", _ANNOTATION, Role.PERCENTAGE, unit=100),
            Word("gpu-memory", _ANNOTATION, Role.MEMORY, sign=False),
            Word("gpu-fraction-num-devices", _ANNOTATION, Role.NUMBER),
            # NvFractions, from 0.18 on; the limit, which is read last, wins.
            Word("nvidia.com/container.{}.gpu-memory.request", Place.CONTAINER_ANNOTATION, Role.MEMORY, unit=_BYTE),
            Word("nvidia.com/container.{}.gpu-memory.limit", Place.CONTAINER_ANNOTATION, Role.MEMORY, unit=_BYTE),
            Word(
                "nvidia.com/container.{}.gpu-compute.mode",
                Place.CONTAINER_ANNOTATION,
                note="the device plugin shares a card in one way; vgpu-cores limits the time of a slice",
            ),
            Word("gpu-fraction.limit", _ANNOTATION, note=_LIMIT),
            Word("gpu-memory.limit", _ANNOTATION, note=_LIMIT, sign=False),
            Word(
                names.NVIDIA_GPU,
                _RESOURCE,
                note="KAI refuses a share beside a whole card; remove one of the two",
                sign=False,
                blocks=True,
            ),
            Word(
                "kai.scheduler/gpu-device-affinity",
                _ANNOTATION,
                note="Volcano chooses no cards by the pods that are on them",
            ),
            Word(
                "kai.scheduler/gpu-device-anti-affinity",
                _ANNOTATION,
                note="Volcano keeps no pods off the cards of others; remove it, and request vgpu-cores: 100 for a card alone",
                blocks=True,
            ),
            *_noted(
                _ANNOTATION,
                _TOPOLOGY,
                "kai.scheduler/topology",
                "kai.scheduler/topology-required-placement",
                "kai.scheduler/topology-preferred-placement",
            ),
            *_noted(
                _ANNOTATION,
                _GROUP,
                "pod-group-name",
                "kai.scheduler/skip-podgrouper",
                "kai.scheduler/ignore-workload-api",
                "kai.scheduler/top-owner-metadata",
                sign=False,
            ),
            *_noted(
                _ANNOTATION,
                _WRITTEN,
                "received-resource-type",
                "runai/shared-gpu-configmap",
                "kai.scheduler/last-start-timestamp",
                "kai.scheduler/stale-podgroup-timestamp",
                sign=False,
            ),
            Word("kai.scheduler/queue", _LABEL, note=_QUEUE),
            Word("runai/queue", _LABEL, note=_QUEUE),
            Word("kai.scheduler/subgroup-name", _LABEL, note=_GROUP),
            *_noted(
                _LABEL,
                "Volcano has no pools of nodes; write a nodeSelector",
                "kai.scheduler/node-pool",
                "runai/node-pool",
            ),
            Word("runai-gpu-group", _LABEL, note=_WRITTEN),
        ),
        prefixes=("kai.scheduler/", "nvidia.com/container.", "gpu-fraction"),
        schedulers=("kai-scheduler", "runai-scheduler"),
        chooser="gpu-fraction-container-name",
        note="here the memory is a limit; KAI limits it with NvFractions only",
    ),
    Dialect(
        "koordinator",
        "Koordinator",
        "`apis/extension/device_share.go` of Koordinator, and its proposal 20230803 of the GPU Share API (1.7, November 2026)",
        (
            Word("koordinator.sh/gpu.shared", _RESOURCE, Role.NUMBER),
            Word("koordinator.sh/gpu-memory", _RESOURCE, Role.MEMORY, unit=_BYTE),
            Word("koordinator.sh/gpu-memory-ratio", _RESOURCE, Role.PERCENTAGE),
            Word("koordinator.sh/gpu-core", _RESOURCE, Role.CORES),
            Word(
                "koordinator.sh/gpu", _RESOURCE, Role.PERCENTAGE, Role.CORES, note="counted in per cent: 100 are a card"
            ),
            Word(
                "koordinator.sh/gpu-isolation-provider",
                _LABEL,
                note="Volcano's device plugin isolates each slice with HAMi-core",
            ),
            *_noted(
                _ANNOTATION,
                _OWN_GROUP,
                "gang.scheduling.koordinator.sh/name",
                "gang.scheduling.koordinator.sh/min-available",
                sign=False,
            ),
            Word("pod-group.scheduling.sigs.k8s.io", _LABEL, note=_OWN_GROUP),
            Word("quota.scheduling.koordinator.sh/name", _LABEL, note=_QUEUE),
            *_noted(
                _ANNOTATION,
                _TOPOLOGY,
                "scheduling.koordinator.sh/device-allocate-hint",
                "scheduling.koordinator.sh/device-joint-allocate",
                "scheduling.koordinator.sh/gpu-partition-spec",
                "scheduling.koordinator.sh/numa-topology-spec",
                sign=False,
            ),
            Word("scheduling.koordinator.sh/device-allocated", _ANNOTATION, note=_WRITTEN, sign=False),
        ),
        prefixes=("koordinator.sh/gpu", "scheduling.koordinator.sh/"),
        schedulers=("koord-scheduler",),
        sums=frozenset({Role.MEMORY, Role.PERCENTAGE, Role.CORES}),
    ),
    Dialect(
        "vgpu-manager",
        "vgpu-manager",
        "`pkg/util/consts.go` and `README.md` of coldzerofear/vgpu-manager (November 2026)",
        (
            Word("nvidia.com/vgpu-number", _RESOURCE, Role.NUMBER),
            Word("nvidia.com/vgpu-memory", _RESOURCE, Role.MEMORY),
            Word("nvidia.com/vgpu-cores", _RESOURCE, Role.CORES),
            Word("nvidia.com/include-gpu-type", _ANNOTATION, here=names.USE_GPUTYPE),
            Word("nvidia.com/exclude-gpu-type", _ANNOTATION, here=names.NOUSE_GPUTYPE),
            Word("nvidia.com/include-gpu-uuid", _ANNOTATION, here=names.USE_GPUUUID),
            Word("nvidia.com/exclude-gpu-uuid", _ANNOTATION, here=names.NOUSE_GPUUUID),
            *_noted(
                _ANNOTATION,
                _ANY_CARD,
                "nvidia.com/node-scheduler-policy",
                "nvidia.com/device-scheduler-policy",
                "nvidia.com/memory-scheduler-policy",
            ),
            *_noted(_ANNOTATION, _TOPOLOGY, "nvidia.com/device-topology-mode", "nvidia.com/cross-pod-topology"),
            Word("nvidia.com/vgpu-compute-policy", _ANNOTATION, note=_CORES),
            Word(
                "nvidia.com/vgpu-access-mode",
                _ANNOTATION,
                note="a slice is one of a card of the pod's node; remove it",
                blocks=True,
            ),
        ),
        schedulers=("vgpu-scheduler",),
    ),
)
DIALECTS = {dialect.id: dialect for dialect in _ALL}

_WORDS = [word for dialect in _ALL for word in dialect.words]
RESOURCES = frozenset(word.name for word in _WORDS if word.place is Place.RESOURCE)
# The names of amounts, each with the first system that has it.
AMOUNTS = {word.name: (one, word.role, word) for one in reversed(_ALL) for word in one.words if word.role is not None}
ANNOTATIONS = frozenset(
    word.name
    for word in _WORDS
    if word.place is Place.ANNOTATION and word.here != word.name and (word.sign or word.role)
)
PREFIXES = tuple({word.name.partition("{")[0]: 0 for word in _WORDS if word.place is Place.CONTAINER_ANNOTATION})
KNOWN = frozenset(word.name for word in _WORDS)
_NAMES = {
    one.id: frozenset(word.name for word in one.words if word.role or word.sign or word.place is not Place.RESOURCE)
    for one in _ALL
}
# The ids of the dialects with names that begin so.
PREFIXED = {dialect.id for dialect in _ALL for word in dialect.words if word.place is Place.CONTAINER_ANNOTATION}


def dialects_with(used: Collection[str]) -> list[Dialect]:
    """The dialects that have one of some names of a pod, or all names below a prefix of it."""
    below = {dialect.id for dialect in _ALL for name in used if name.startswith(dialect.prefixes)}
    return [one for one in _ALL if one.id in below or not _NAMES[one.id].isdisjoint(used)]


def vendor_of(resource: str) -> str:
    """Whose cards a resource is for, if they are no vGPUs; else empty."""
    return next((title for prefix, title in names.OTHER_VENDORS.items() if resource.startswith(prefix)), "")
