"""The devices that the scheduler assigned to pods: whether they exist, suffice, and belong to pods that request them."""

from collections.abc import Iterator

from webhook.devices.fleet import build_fleet
from webhook.devices.ledger import LedgerFinding, LedgerRule
from webhook.devices.nodes import read_node
from webhook.devices.occupancy import occupancy
from webhook.doctor.check import Check, CheckResult, broken, known, need, ok, warning
from webhook.doctor.facts import ObjectKind, listed
from webhook.doctor.setup import Setup
from webhook.texts import counted

# Because of these, pods fail, or read each other's memory, or the scheduler stops.
_BROKEN = (LedgerRule.UNASSIGNED, LedgerRule.INSTANCE_SHARED, LedgerRule.UNREADABLE)


def assignments(setup: Setup) -> Iterator[CheckResult]:
    """Nothing is wrong with what live pods hold of the devices."""
    pods = known(setup.facts.bound_pods)
    need(setup.facts.gap(ObjectKind.NODE) if not setup.facts.all(ObjectKind.NODE) else None)
    read = [read_node(raw, setup.config) for raw in setup.facts.all(ObjectKind.NODE)]
    nodes = [node for node in read if node is not None]
    fleet = build_fleet(nodes, setup.config, setup.target)
    found: dict[LedgerRule, list[LedgerFinding]] = {}
    for finding in occupancy(nodes, pods, fleet, setup.config, setup.target).findings:
        found.setdefault(finding.rule, []).append(finding)
    for rule, some in sorted(found.items()):
        first = some[0]
        places = listed([one.pod or one.node for one in some])
        result = broken if rule in _BROKEN else warning
        yield result(f"{rule}: {places}: {first.message}", first.remedy)
    if not found:
        yield ok(f"the devices of {counted(len(pods), 'pod')} exist and suffice")


CHECKS = (Check("assignments", assignments),)
