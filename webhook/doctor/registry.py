"""All checks in the order of their results: Volcano's settings, then the nodes, then this webhook itself."""

from collections.abc import Iterator
from dataclasses import replace

from webhook.doctor.check import Check, CheckResult, NotRead, unchecked
from webhook.doctor.checks import (
    access,
    ascend,
    assignments,
    certificates,
    configurations,
    device_config,
    device_plugin,
    net,
    nodes,
    others,
    queues,
    scheduler,
    service,
    versions,
)
from webhook.doctor.facts import Facts
from webhook.doctor.setup import Render, Setup, put_together

CHECKS = (
    *versions.CHECKS,
    *scheduler.CHECKS,
    *queues.CHECKS,
    *device_config.CHECKS,
    *device_plugin.CHECKS,
    *ascend.CHECKS,
    *nodes.CHECKS,
    *assignments.CHECKS,
    *configurations.CHECKS,
    *net.CHECKS,
    *certificates.CHECKS,
    *service.CHECKS,
    *others.CHECKS,
    *access.CHECKS,
)


def examine(facts: Facts, render: Render) -> list[CheckResult]:
    """Run all checks.

    Args:
        facts: what was read from the cluster.
        render: makes the webhook configurations for a device config and a policy.
    """
    setup = put_together(facts, render)
    return [replace(result, check=check.id) for check in CHECKS for result in _results(check, setup)]


def _results(check: Check, setup: Setup) -> Iterator[CheckResult]:
    try:
        yield from check.run(setup)
    except NotRead as missing:
        yield unchecked(missing.unread)
