"""Limits on devices that limit nothing, or that no pod can keep, in the words of the review when they are written."""

from dataclasses import replace

from webhook.devices.fleet import build_fleet
from webhook.questions.doctor.check import known, need
from webhook.questions.doctor.checks.queues import read_queues
from webhook.questions.doctor.facts import ObjectKind, name_of, namespace_of, place_of
from webhook.questions.doctor.setup import Setup
from webhook.results import Results
from webhook.rules import limits
from webhook.rules.context import Collections, KnownCluster
from webhook.settings.review import limits_of_quota
from webhook.settings.snapshot import read_nodes
from webhook.settings.table import DEVICE_CLASSES
from webhook.volcano.device_classes import DeviceClasses
from webhook.volcano.queues import Queues
from webhook.volcano.target import Target


def queue_limits(setup: Setup) -> Results:
    """What queues limit of devices is counted, and enough for a pod."""
    every, conf = read_queues(setup), known(setup.conf).conf
    cluster = _cluster(setup, replace(setup.target, scheduler=conf), every)
    for raw in sorted(setup.facts.all(ObjectKind.QUEUE), key=name_of):
        for _, found in limits.of_queue(raw, cluster):
            yield replace(found, message=f"queue {name_of(raw)}: {found.message}")
    return "what queues limit of devices is counted"


def quota_limits(setup: Setup) -> Results:
    """What ResourceQuotas limit of devices is counted, and enough for a pod."""
    cluster = _cluster(setup, setup.target, None)
    for raw in sorted(setup.facts.all(ObjectKind.RESOURCE_QUOTA), key=place_of):
        for _, found in limits_of_quota(raw, setup.policy.of(namespace_of(raw)), cluster):
            yield replace(found, message=f"ResourceQuota {place_of(raw)}: {found.message}")
    need(setup.facts.gap(ObjectKind.RESOURCE_QUOTA))
    return "what ResourceQuotas limit of devices is counted"


def _cluster(setup: Setup, target: Target, queues: Queues | None) -> KnownCluster:
    """What limits are compared with, or the check ends."""
    need(setup.facts.gap(ObjectKind.NODE))
    fleet = build_fleet(read_nodes(setup.facts.all(ObjectKind.NODE), setup.config), setup.config, target)
    classes = DeviceClasses(DEVICE_CLASSES.kept(setup.facts.all(ObjectKind.DEVICE_CLASS)))
    return KnownCluster(
        config=setup.config,
        policy=setup.policy,
        target=target,
        fleet=fleet,
        collections=Collections(queues, classes=classes),
    )
