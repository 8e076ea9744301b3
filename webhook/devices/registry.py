"""Every device family, in the order in which pages and explanations list them."""

from webhook.devices.ascend.family import FAMILY as ASCEND
from webhook.devices.family import DeviceFamily
from webhook.devices.gpushare.family import FAMILY as GPUSHARE
from webhook.devices.mindcluster.family import FAMILY as MINDCLUSTER
from webhook.devices.vgpu.family import FAMILY as VGPU

FAMILIES: tuple[DeviceFamily, ...] = (VGPU, GPUSHARE, ASCEND, MINDCLUSTER)
