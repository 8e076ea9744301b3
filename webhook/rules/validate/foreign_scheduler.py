"""Only Volcano's scheduler assigns cards.

Reads:    spec.schedulerName, after all mutations; policy schedulerNames
Refuses:  a scheduler that the policy does not list
Why:      another scheduler writes no assignment, and the pod fails with UnexpectedAdmissionError.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find another scheduler."""
    allowed = context.settings.scheduler_names
    scheduler = pod.view.scheduler or names.DEFAULT_SCHEDULER
    if scheduler not in allowed:
        advice = "name it" if "scheduler-name" in context.repairs_off else "name it, or leave schedulerName out"
        yield Finding(
            "spec.schedulerName",
            f"schedulerName is {wording.quoted(scheduler)}, but only {' or '.join(map(wording.quoted, allowed))} assigns "
            f"devices; {advice}",
        )


RULE = Validation(
    id="foreign-scheduler",
    level=Level.DENY,
    summary="a schedulerName outside policy `schedulerNames`",
    check=check,
)
