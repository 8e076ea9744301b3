"""All checks in the order of their results: Volcano's settings, then the nodes, then this webhook itself."""

from collections.abc import Mapping
from dataclasses import replace

from webhook.questions.doctor.check import Check, Ended
from webhook.questions.doctor.checks import (
    access,
    certificates,
    configurations,
    device_classes,
    device_config,
    device_plugin,
    exceptions,
    fallback,
    limits,
    memory_units,
    nodes,
    others,
    queues,
    scheduler,
    service,
    trusted_users,
    versions,
)
from webhook.questions.doctor.facts import Facts
from webhook.questions.doctor.setup import Setup, put_together
from webhook.results import CheckResult, Status, ok

# By their ids, which are kebab-case and stable.
CHECKS: Mapping[str, Check] = {
    "policy": versions.policy,
    "policy-warnings": versions.policy_warnings,
    "exceptions": exceptions.exceptions,
    "volcano-version": versions.volcano_version,
    "plugin-version": versions.plugin_version,
    "version-pair": versions.version_pair,
    "dra-claims": scheduler.dra_claims,
    "scheduler-config": scheduler.scheduler_config,
    "predicates": scheduler.predicates,
    "deviceshare-switches": scheduler.switches,
    "deviceshare-families": scheduler.families,
    "node-lock": scheduler.node_lock,
    "exclusive-rules": scheduler.exclusive_rules,
    "queues": queues.queues,
    "queue-hierarchy": queues.hierarchy,
    "queue-limits": limits.queue_limits,
    "quota-limits": limits.quota_limits,
    "device-config": device_config.device_config,
    "device-names": device_config.device_names,
    "device-settings": device_config.device_settings,
    "device-classes": device_classes.device_classes,
    "plugin-config": device_plugin.plugin_config,
    "plugin-names": device_plugin.plugin_names,
    "plugin-flags": device_plugin.plugin_flags,
    "plugin-isolation": device_plugin.plugin_isolation,
    "other-plugin": device_plugin.other_plugin,
    "trusted-users": trusted_users.trusted_users,
    "ascend-config": device_config.ascend_config,
    "ascend-templates": device_config.ascend_templates,
    "ascend-registers": nodes.ascend_registers,
    "node-registers": nodes.node_registers,
    "node-resources": nodes.node_resources,
    "device-list-size": memory_units.device_list_size,
    "status-too-large": memory_units.status_too_large,
    "node-labels": nodes.node_labels,
    "node-taints": nodes.node_taints,
    "mig-models": nodes.mig_models,
    "assignments": nodes.assignments,
    "webhook-configurations": configurations.exist,
    "webhook-matches": configurations.match,
    "webhook-settings": configurations.settings,
    "hide-devices": configurations.hiding,
    "fallback-policies": fallback.fallback_policies,
    "ca-bundle": certificates.ca_bundle,
    "serving-certificate": certificates.serving_certificate,
    "webhook-service": service.webhook_service,
    "webhook-endpoints": service.webhook_endpoints,
    "webhook-ready": service.readiness,
    "other-webhooks": others.other_webhooks,
    "volcano-admission": others.volcano_admission,
    "undone-repairs": others.undone_repairs,
    "failed-open": others.failed_open,
    "configuration-writers": access.configuration_writers,
    "secret-readers": access.secret_readers,
    "pod-creators": access.pod_creators,
}

# Without the webhook, `webhook-configurations` says so, and these have nothing to check.
OF_THE_WEBHOOK = frozenset(
    {
        "policy",
        "webhook-matches",
        "webhook-settings",
        "hide-devices",
        "ca-bundle",
        "serving-certificate",
        "webhook-service",
        "webhook-endpoints",
        "webhook-ready",
        "undone-repairs",
    }
)


def examine(facts: Facts) -> list[CheckResult]:
    """Run all checks."""
    setup = put_together(facts)
    return [result for name in CHECKS for result in results_of(name, setup)]


def results_of(name: str, setup: Setup) -> list[CheckResult]:
    """Run one check.

    Returns:
        What is wrong, or that all is well.
    """
    if name in OF_THE_WEBHOOK and not setup.installed:
        return [CheckResult(Status.UNCHECKED, "the webhook is not installed", "see webhook-configurations", name)]
    found: list[CheckResult] = []
    try:
        running = CHECKS[name](setup)
        while True:
            found.append(next(running))
    except StopIteration as finished:
        found = found or [ok(finished.value)]
    except Ended as early:
        found.append(early.result)
    return [replace(result, check=name) for result in found]
