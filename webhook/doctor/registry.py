"""All checks, in the order in which they are told: what Volcano is told, what nodes say, then this webhook itself."""

from dataclasses import dataclass

from webhook.doctor.check import Line
from webhook.doctor.checks import (
    ascend,
    certificates,
    configurations,
    device_config,
    device_plugin,
    mig,
    nodes,
    others,
    scheduler,
    service,
    taints,
    versions,
)
from webhook.doctor.facts import Facts
from webhook.doctor.setup import Render, put_together

CHECKS = (
    *versions.CHECKS,
    *scheduler.CHECKS,
    *device_config.CHECKS,
    *device_plugin.CHECKS,
    *ascend.CHECKS,
    *nodes.CHECKS,
    *taints.CHECKS,
    *mig.CHECKS,
    *configurations.CHECKS,
    *certificates.CHECKS,
    *service.CHECKS,
    *others.CHECKS,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A line, and the check that says it."""

    check: str
    line: Line


def examine(facts: Facts, render: Render) -> list[Told]:
    """Make all checks.

    Args:
        facts: what was seen of the cluster.
        render: the webhook configurations for a device config and a policy.
    """
    setup = put_together(facts, render)
    return [Told(check.id, line) for check in CHECKS for line in check.look(setup)]
