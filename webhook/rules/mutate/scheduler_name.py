"""No schedulerName, or the default one: it becomes Volcano's.

Reads:    spec.schedulerName; policy schedulerName
Writes:   spec.schedulerName
Why:      only Volcano's scheduler assigns cards; under another the pod fails with UnexpectedAdmissionError.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.pod.patch import Edit
from webhook.rules.base import Mutation
from webhook.rules.context import Context


def propose(pod: DevicePod, context: Context) -> Iterator[Edit]:
    """Name the scheduler, unless the author named another."""
    wanted = context.settings.scheduler_name
    if pod.view.scheduler in ("", names.DEFAULT_SCHEDULER) and wanted != pod.view.scheduler:
        yield Edit(("spec", "schedulerName"), wanted)


RULE = Mutation(
    id="scheduler-name",
    summary="an absent schedulerName or `default-scheduler` becomes `volcano` (policy `schedulerName`)",
    propose=propose,
    unread=True,
)
