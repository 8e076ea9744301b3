"""Which objects the webhook reviews when they are created, and why it does not review the others."""

from webhook import names
from webhook.pod.templates import WORKLOADS, holds_pods
from webhook.review import Snapshot
from webhook.rules.base import Level
from webhook.wire.models import Request

_POD = ("", "Pod")


def is_reviewed_kind(request: Request) -> bool:
    """Tell whether the object is a pod, or a workload whose pod templates the webhook can find."""
    kind = request.group, request.kind
    return kind == _POD or kind in WORKLOADS


def why_not_reviewed(request: Request, snapshot: Snapshot, *, sent: bool = False) -> str:
    """Why the webhook does not review an object that has pods.

    Args:
        request: that would create the object.
        snapshot: the policy counts.
        sent: an API server sent the request, so no webhook configuration exempts its namespace.

    Returns:
        What is exempt or unknown, and what that means; empty if the object is reviewed, or has no pods.
    """
    group, kind, namespace = request.group, request.kind, request.namespace
    known = is_reviewed_kind(request)
    if not known and not holds_pods(request.object or request.old_object or {}):
        return ""
    if namespace in names.EXEMPT_NAMESPACES and not sent:
        return f"namespace {namespace} is exempt: the webhook configurations leave it out"
    if snapshot.levels.of(namespace).exempt:
        return f"namespace {namespace} is exempt: the policy exempts it under `namespaces`"
    if not known:
        owner = f" of {group}" if group else ""
        return f"unknown kind {kind}{owner}: only its pods are reviewed, when they are created; to try one, write it as a Pod"
    if (group, kind) != _POD and snapshot.settings.workloads is Level.OFF:
        return "the policy turns workloads off: only their pods are reviewed, when they are created"
    return ""
