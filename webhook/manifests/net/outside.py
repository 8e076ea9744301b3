"""The rules that no net holds, with the reason. A test finds every rule here or in a net."""

from collections.abc import Mapping

_FLEET = "it depends on the nodes, which an expression cannot read"
_WORKLOAD = "it depends on a whole workload or on other objects, and an expression reads one pod"
_WARNING = "it is a hint, and the net only refuses"
_LATER = "it harms the pod itself, not other tenants: the webhook refuses it when it answers"
_SCHEDULER = "Volcano's scheduler and device plugin fail on it, and an expression could find it: not written yet"

_REASONS: Mapping[str, tuple[str, ...]] = {
    _FLEET: (
        "card-count",
        "no-eligible-card",
        "memory-above-card",
        "split-count",
        "fits-no-node",
        "fits-tightly",
        "gputype-unknown",
        "node-selector-unmatched",
        "ascend-core-invalid",
        "unknown-resource",
        "percentage-unresolved",
    ),
    _WORKLOAD: (
        "gang-never-complete",
        "gang-too-large",
        "gang-fits-tightly",
        "spread-exceeds-cards",
        "queue-annotation-misplaced",
    ),
    _WARNING: ("isolation-env-from", "isolation-env-tuned", "toleration-missing", "gpushare-annotation"),
    _LATER: (
        "quantity-invalid",
        "limits-missing",
        "number-zero",
        "count-missing",
        "cores-range",
        "percentage-range",
        "mode-invalid",
        "gputype-malformed",
        "gputype-shadowed",
        "uuid-unsupported",
        "family-mixed",
        "ascend-memory-oversize",
        "ascend-partial-several",
        "ascend-mode-unread",
    ),
    _SCHEDULER: ("init-container-device", "several-device-containers", "foreign-scheduler", "node-name-set"),
}
OUTSIDE: Mapping[str, str] = {rule: reason for reason, rules in _REASONS.items() for rule in rules}
