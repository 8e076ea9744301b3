"""Every device family, in the order in which pages and explanations list them."""

from collections.abc import Mapping

from webhook.devices.ascend.family import AscendFamily
from webhook.devices.config import DeviceConfig
from webhook.devices.family import AnyFamily
from webhook.devices.gpushare.family import GpushareFamily
from webhook.devices.mindcluster.family import MindclusterFamily
from webhook.devices.vgpu.family import VgpuFamily
from webhook.volcano.target import Target

FAMILIES: tuple[type[AnyFamily], ...] = (VgpuFamily, GpushareFamily, AscendFamily, MindclusterFamily)

Families = Mapping[str, AnyFamily]


def bind(config: DeviceConfig, target: Target) -> Families:
    """The families by their ids, under a device config and a version of the scheduler."""
    return {family.id: family(config, target) for family in FAMILIES}
