"""No node with such devices has the labels that the pod demands.

Reads:    nodeSelector and required node affinity; the labels of the fleet's nodes
Refuses:  a selector that leaves no node with the devices that the pod asks for
Why:      the pod waits until somebody labels a node; the scheduler says so, but only in an event, hence a warning.
"""

from collections.abc import Iterator

from webhook.devices.requests import DevicePod
from webhook.rules.base import Context, Finding, Level, Validation
from webhook.rules.facts import facts_of


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find the family of which no node is left."""
    facts = facts_of(pod, context)
    selector = facts.written_selector
    if selector is None:
        return
    for family in pod.requested:
        if not facts.matches(family):
            yield Finding(
                "spec.nodeSelector" if selector.labels else "spec.affinity.nodeAffinity",
                f"no node with {family} devices has the labels that your {selector.words} demands; correct it, or label a node",
            )
            return


RULE = Validation(
    id="node-selector-unmatched",
    level=Level.WARN,
    summary="a nodeSelector or required node affinity that leaves no node with such devices",
    check=check,
    fields=frozenset({"nodeSelector", "affinity"}),
    fleet=True,
)
