"""Collections of the cluster, besides the nodes, that rules look things up in."""

from typing import NamedTuple

from webhook.volcano.device_classes import DeviceClasses
from webhook.volcano.queues import Queues
from webhook.volcano.quotas import Quotas


class Collections(NamedTuple):
    """Each is None if it is not known; `webhook.settings.table.COLLECTIONS` has their sources."""

    queues: Queues | None = None
    quotas: Quotas | None = None
    classes: DeviceClasses | None = None
