"""Limits on devices that limit nothing, or that no pod can keep, in the words of the review when they are written."""

from dataclasses import replace

from webhook.questions.doctor.check import known, need
from webhook.questions.doctor.facts import ObjectKind, name_of, namespace_of, place_of
from webhook.questions.doctor.setup import Setup
from webhook.results import Results
from webhook.rules import limits
from webhook.settings.review import limits_of_quota


def queue_limits(setup: Setup) -> Results:
    """What queues limit of devices is counted, and enough for a pod."""
    known(setup.conf)
    need(setup.facts.gap(ObjectKind.QUEUE) or setup.facts.gap(ObjectKind.NODE))
    for raw in sorted(setup.facts.all(ObjectKind.QUEUE), key=name_of):
        for _, found in limits.of_queue(raw, setup.cluster):
            yield replace(found, message=f"queue {name_of(raw)}: {found.message}")
    return "what queues limit of devices is counted"


def quota_limits(setup: Setup) -> Results:
    """What ResourceQuotas limit of devices is counted, and enough for a pod."""
    need(setup.facts.gap(ObjectKind.NODE))
    for raw in sorted(setup.facts.all(ObjectKind.RESOURCE_QUOTA), key=place_of):
        for _, found in limits_of_quota(raw, setup.policy.of(namespace_of(raw)), setup.cluster):
            yield replace(found, message=f"ResourceQuota {place_of(raw)}: {found.message}")
    need(setup.facts.gap(ObjectKind.RESOURCE_QUOTA))
    return "what ResourceQuotas limit of devices is counted"
