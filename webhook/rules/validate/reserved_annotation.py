"""Only the scheduler and the device plugins write assignments.

Reads:    annotations; on UPDATE the old ones and the user; policy trustedUsers
Refuses:  an assignment annotation on a new pod; on UPDATE adding, changing or removing one, unless the user is trusted
Why:      a forged assignment gets another pod's cards, corrupts the scheduler's accounting, or crashes the plugin.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import EVERY_POD, Context, Finding, Level, Validation

ON_CREATE = "the annotation {key} is written by the scheduler and the device plugin alone; remove it"
ON_UPDATE = (
    "user {user} may not add, change or remove the annotation {key}; only the scheduler and the device plugin may "
    "(policy trustedUsers)"
)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find assignments that neither the scheduler nor a plugin wrote."""
    now = pod.view.annotations
    if pod.previous is None:
        for key in now:
            if is_reserved(key):
                yield Finding(wording.annotation_path(key), ON_CREATE.format(key=wording.quoted(key)))
    elif context.user not in context.settings.trusted_users:
        for key in _changed(pod.previous.annotations, now):
            detail = ON_UPDATE.format(user=wording.quoted(context.user), key=wording.quoted(key))
            yield Finding(wording.annotation_path(key), detail)


def is_reserved(key: str) -> bool:
    """Whether only the scheduler and the device plugins write an annotation."""
    if key in names.RESERVED_ANNOTATIONS or key.startswith(names.RESERVED_ASCEND_PREFIX):
        return True
    return key.startswith(names.RESERVED_HAMI_PREFIX) and key.endswith(names.RESERVED_HAMI_SUFFIXES)


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return [key for key in {**before, **now} if is_reserved(key) and before.get(key) != now.get(key)]


RULE = Validation(
    id="reserved-annotation",
    level=Level.DENY,
    summary="an annotation that only the scheduler and the device plugins write",
    check=check,
    families=EVERY_POD,
    fields=ANNOTATIONS,
)
