"""Only the scheduler and the device plugins write assignments.

Refuses:  an annotation that only the scheduler and the device plugins write, on a new pod, or changed by an untrusted user
Why:      a forged assignment gets another pod's cards, corrupts the scheduler's accounting, or crashes the plugin.

Seen on the real device plugin: a forged pod that requests nothing, and that no scheduler ever starts, chose the card and the
limit of the next pod on the node.

The API server copies the annotations of a Binding onto the pod, so an untrusted user's may have none that injects devices.
HAMi writes some names of hami.io/ on its own pods; these are reserved only in a pod that requests Ascend NPUs.
"""

from webhook.devices.requests import DevicePod
from webhook.rules.api import EVERY_POD, Context, Finding, Findings, deny, wording
from webhook.rules.isolation import INJECTED, RESERVED, is_reserved

ON_CREATE = "the annotation {key} is written by the scheduler and the device plugin alone; remove it"
ON_UPDATE = (
    "user {user} may not add, change or remove the annotation {key}; only the scheduler and the device plugin may "
    "(policy trustedUsers)"
)


@deny(
    families=EVERY_POD,
    needs={RESERVED, INJECTED},
    on={"update", "binding"},
    isolates=True,
    reads=("policy.trustedUsers", "request.user"),
)
def check(pod: DevicePod, context: Context) -> Findings:
    """Find assignments that neither the scheduler nor a plugin wrote."""
    now = pod.view.annotations
    if pod.previous is None:
        for key in now:
            if is_reserved(key, pod):
                yield Finding(wording.annotation_path(key), ON_CREATE.format(key=wording.quoted(key)))
    elif context.request.user not in context.cluster.policy.trusted_users:
        before = pod.previous.annotations
        for key in {**before, **now}:
            if before.get(key) == now.get(key) or not is_reserved(key, pod):
                continue
            detail = ON_UPDATE.format(user=wording.quoted(context.request.user), key=wording.quoted(key))
            yield Finding(wording.annotation_path(key), detail)
