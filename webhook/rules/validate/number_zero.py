"""A count of 0 is no way to ask for nothing.

Reads:    the counts in limits and requests of the regular containers
Refuses:  0
Why:      the scheduler books phantom usage on the first card for it, and the container gets no card.
"""

from collections.abc import Iterator

from webhook.devices.asks import DevicePod, family_resources
from webhook.devices.families import Role
from webhook.pod import quantity
from webhook.rules import wording
from webhook.rules.base import Context, Finding, Level, Validation


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find counts of 0."""
    roles = context.config.roles
    for container in pod.view.containers:
        for resource in dict.fromkeys(family_resources({**container.requests, **container.limits}, roles)):
            if roles[resource][1] is Role.NUMBER and quantity.whole(container.quantity(resource)) == 0:
                yield Finding(
                    wording.resource_path(container, resource),
                    f"{wording.container(container)} asks for {resource} 0, for which the scheduler books a card that "
                    "nobody gets; write 1 or more, or remove every device resource of the container",
                )


RULE = Validation(
    id="number-zero",
    level=Level.DENY,
    summary="a count of 0",
    check=check,
)
