"""The rules and repairs that the fallback policies leave out, with the reason. A test finds all others in them."""

from collections.abc import Mapping

from webhook.rules.registry import VALIDATIONS

_FLEET = "it depends on the nodes, which an expression cannot read"
_WORKLOAD = "it depends on a whole workload or on other objects, and an expression reads one pod"
_SUM = "it adds up what the containers of a pod request, and such a pod harms no other"
_HARMLESS = "it only warns its author, and the pod harms no other"
_FIELD = "API servers before 1.36 do not know the field, and refuse an expression that reads it"
_API_SERVER = "the API server refuses such a pod itself, before it evaluates admission policies"

_REASONS: Mapping[str, tuple[str, ...]] = {
    _FLEET: (*(rule.id for rule in VALIDATIONS if rule.fleet), "ascend-core-invalid", "outside-limits"),
    _WORKLOAD: (
        "gang-never-complete",
        "queue-annotation-misplaced",
        "queue-missing",
        "queue-not-leaf",
        "queue-closed",
        "queue-capability",
        "quota-memory",
    ),
    _SUM: ("status-too-large",),
    _HARMLESS: (
        "annotation-misplaced",
        "annotation-unknown",
        "resource-as-annotation",
        "memory-tiny",
        "foreign-dialect",
    ),
    _FIELD: ("scheduling-group-ignored",),
    _API_SERVER: ("limits-missing", "requests-differ"),
}
OUTSIDE: Mapping[str, str] = {rule: reason for reason, rules in _REASONS.items() for rule in rules}

_WARNS = "it changes what the author wrote and warns of it, and a MutatingAdmissionPolicy cannot warn"
NOT_IN_FALLBACK: Mapping[str, str] = {
    "percentage-to-memory": _FLEET,
    "memory-above-card": _FLEET,
    "ascend-memory-template": _WARNS,
    "hide-devices": _WARNS,
    "translate-dialect": _WARNS,
}
REPAIRS = frozenset(
    {
        "limits-from-requests",
        "default-number",
        "default-memory",
        "default-cores",
        "scheduler-name",
        "toleration",
    }
)  # the repairs of the fallback policies
