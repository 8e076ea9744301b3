"""What a pod asks of Ascend NPUs, as the scheduler reads it.

Source: volcano `pkg/scheduler/api/devices/util.go` (ExtractResourceRequest), `ascend/hami/device_info.go` (ResourceReqs).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook import names
from webhook.devices.asks import DevicePod
from webhook.devices.config import AscendConfig, Chip
from webhook.devices.families import Family, Role
from webhook.pod.view import REGULAR, Container, PodView


@dataclass(frozen=True, slots=True)
class NpuAsk:
    """What one regular container asks of one kind of NPU.

    Attributes:
        container: who asks.
        chip: for which NPUs.
        number: how many different ones.
        counted: the number is written, so that the ordinary node fit counts it; memory alone asks for one NPU.
        memory: of each, in MiB; None for all of it.
        cores: percent of each in hami-core mode, else AI cores.
        usable: every written quantity could be read, and the count is not 0, with which a walk takes one NPU or none.
    """

    container: Container
    chip: Chip
    number: int
    counted: bool
    memory: int | None
    cores: int
    usable: bool


def npu_asks(pod: DevicePod, config: AscendConfig) -> list[NpuAsk]:
    """The asks that the scheduler serves: of regular containers, with a count or memory; in order."""
    return list(_asks(pod, config))


def is_hami_core(pod: PodView) -> bool:
    """Tell whether NPUs are shared in software, not cut by templates: the annotation must say so to the letter."""
    return pod.annotation(names.VNPU_MODE) == names.MODE_HAMI_CORE


def _asks(pod: DevicePod, config: AscendConfig) -> Iterator[NpuAsk]:
    found: dict[tuple[int, Chip], dict[Role, int | None]] = {}
    containers: dict[int, Container] = {}
    for container, resource, family, role, _, value in pod.amounts:
        if family is Family.ASCEND and container.kind == REGULAR:
            containers[container.index] = container
            found.setdefault((container.index, config.chip_of[resource]), {})[role] = value
    for (index, chip), amounts in found.items():
        if Role.NUMBER in amounts or Role.MEMORY in amounts:
            yield NpuAsk(
                container=containers[index],
                chip=chip,
                number=amounts.get(Role.NUMBER) or 1,
                counted=Role.NUMBER in amounts,
                memory=amounts.get(Role.MEMORY) or None,
                cores=amounts.get(Role.CORES) or 0,
                usable=None not in amounts.values() and amounts.get(Role.NUMBER) != 0,
            )
