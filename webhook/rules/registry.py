"""Every rule, in order. Adding one is a file, a line here and a case file in tests/rules/cases."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from webhook.pod.fields import optional_fields, paths_of
from webhook.rules.base import Mutation, Validation

# The order matters: each sees what the ones before it wrote.
_MUTATIONS = (
    "translate-dialect",
    "limits-from-requests",
    "default-number",
    "default-cores",
    "percentage-to-memory",
    "lower-memory",
    "default-memory",
    "ascend-memory-template",
    "scheduler-name",
    "toleration",
    "hide-devices",
)

# The order is that of the messages: static rules first, then those that depend on the fleet.
_VALIDATIONS = (
    "quantity-invalid",
    "limits-missing",
    "requests-differ",
    "number-zero",
    "count-missing",
    "cores-range",
    "percentage-range",
    "percentage-unresolved",
    "mode-invalid",
    "gputype-malformed",
    "gputype-shadowed",
    "uuid-unsupported",
    "family-mixed",
    "init-container-device",
    "several-device-containers",
    "status-too-large",
    "foreign-scheduler",
    "scheduling-group-ignored",
    "node-name-set",
    "toleration-missing",
    "privileged-device",
    "isolation-env",
    "isolation-env-from",
    "isolation-env-tuned",
    "isolation-mount",
    "host-access",
    "visible-devices",
    "reserved-annotation",
    "gpushare-annotation",
    "annotation-misplaced",
    "annotation-unknown",
    "resource-as-annotation",
    "device-misplaced",
    "foreign-dialect",
    "memory-tiny",
    "cores-tiny",
    "memory-whole",
    "parallelism-mismatch",
    "gpus-counted-by-name",
    "ascend-memory-oversize",
    "ascend-partial-several",
    "ascend-core-invalid",
    "ascend-mode-unread",
    "outside-limits",
    "unknown-resource",
    "resource-not-offered",
    "card-count",
    "no-eligible-card",
    "memory-above-card",
    "split-count",
    "fits-no-node",
    "fits-tightly",
    "bound-without-cards",
    "mig-instance-larger",
    "mig-mode-cores",
    "gputype-unknown",
    "node-selector-unmatched",
    "gang-never-complete",
    "gang-too-large",
    "group-too-large",
    "rollout-needs-room",
    "gang-fits-tightly",
    "spread-exceeds-cards",
    "queue-annotation-misplaced",
    "queue-missing",
    "queue-closed",
    "queue-not-leaf",
    "queue-capability",
    "quota-memory",
)


def _rules(package: str, function: str, ids: Iterable[str]) -> tuple[Any, ...]:
    modules = [import_module(f"webhook.rules.{package}.{rule.replace('-', '_')}") for rule in ids]
    return tuple([getattr(module, function) for module in modules])


MUTATIONS: tuple[Mutation, ...] = _rules("mutate", "propose", _MUTATIONS)
VALIDATIONS: tuple[Validation, ...] = _rules("validate", "check", _VALIDATIONS)

RULES: tuple[Mutation | Validation, ...] = (*MUTATIONS, *VALIDATIONS)

OPTIONAL_FIELDS = optional_fields({path for rule in VALIDATIONS for path in paths_of(rule.needs)})

WORKLOAD_RULES = frozenset(rule.id for rule in VALIDATIONS if not rule.reads_pods)
FLEET_RULES = frozenset(rule.id for rule in VALIDATIONS if rule.fleet)

DEFAULT_LEVELS = {rule.id: rule.level for rule in VALIDATIONS}
