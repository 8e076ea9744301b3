"""Limits on devices that limit nothing, or that no pod can keep: of a ResourceQuota, and of a Queue.

Kubernetes counts `requests.` of extended resources and no other form. A queue counts plain names. Both count what a pod
requests as it is written, so a pod that requests no memory, and gets whole cards, counts as no memory.
Sources: Kubernetes `pkg/quota/v1/evaluator/core/pods.go`; volcano `pkg/scheduler/plugins/capacity/capacity.go`.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from webhook.devices import wording
from webhook.devices.dialects import AMOUNTS
from webhook.devices.families import Role
from webhook.lenient import obj
from webhook.pod import quantity
from webhook.results import CheckResult, warning
from webhook.rules.context import KnownCluster
from webhook.rules.unjudged import meant_by
from webhook.volcano.queues import ROOT, read_queue
from webhook.volcano.quotas import PREFIX

COUNTED = "requests."  # what Kubernetes counts of an extended resource
MAX_LIMITS = 100  # of one object

LEAST_BYTES = 2**30  # of a limit on memory: more than a million cards have, in MiB
_SMALL = 100  # memory of which the smallest card has more than so many times as much


Found = Iterator[tuple[str, CheckResult]]  # each with the path of its field


def of_quota(raw: Mapping[str, Any], cluster: KnownCluster, *, compared: bool) -> Found:
    """What a ResourceQuota does not limit.

    Args:
        raw: the object.
        cluster: what it is compared with.
        compared: whether pods are refused, or warned of, because of `limits.` on card memory.
    """
    hard = obj(raw, "spec", "hard")
    plain: dict[str, Any] = {}
    memory = cluster.config.vgpu.memory_name
    for key, amount in islice(_of_devices(hard, cluster), MAX_LIMITS):
        resource = plain_name(key)
        counted = key.startswith(COUNTED)
        if counted:
            plain[resource] = amount
        if not (counted and quantity.whole(amount) == 0) and (problem := _unknown(resource, key, COUNTED, cluster)):
            yield f"spec.hard[{key}]", problem
        elif resource == cluster.config.vgpu.percentage_name:
            yield f"spec.hard[{key}]", _percentage(key, COUNTED, cluster)
        elif not counted and not (compared and key == f"{PREFIX}{memory}"):
            advice = f"write {COUNTED}{resource}"
            if key == f"{PREFIX}{memory}":
                advice += ", or set the rule quota-memory to warn, which compares each pod with it"
            why = f"{key} limits nothing: of {resource}, Kubernetes counts {COUNTED} only"
            yield f"spec.hard[{key}]", warning(why, advice)
    for problem in _memory(plain, COUNTED, cluster):
        yield f"spec.hard[{COUNTED}{memory}]", problem


def of_queue(raw: Mapping[str, Any], cluster: KnownCluster) -> Found:
    """What a Queue does not limit, and what its parents do not let it have."""
    spec, conf = obj(raw, "spec"), cluster.target.scheduler
    capability = obj(spec, "capability")
    parts = {"capability": capability, "deserved": obj(spec, "deserved")}
    parts["guarantee.resource"] = obj(spec, "guarantee", "resource")
    named = False
    for part, amounts in parts.items():
        for key, amount in islice(_of_devices(amounts, cluster), MAX_LIMITS):
            path, resource = f"spec.{part}[{key}]", plain_name(key)
            named |= part == "capability"
            if key != resource:
                advice = f"write {resource}"
                yield path, warning(f"{key} limits nothing: a queue counts resources by their plain names", advice)
            elif resource == cluster.config.vgpu.percentage_name:
                yield path, _percentage(key, "", cluster)
            elif quantity.whole(amount) != 0 and (problem := _unknown(resource, key, "", cluster)):
                yield path, problem
    if named and conf is not None and not conf.limits_queues:
        advice = "add `- name: capacity` or `- name: proportion` to a tier of the scheduler's configuration"
        yield "spec.capability", warning("no plugin of the scheduler counts what the pods of a queue request", advice)
    for problem in _memory(capability, "", cluster):
        yield f"spec.capability[{cluster.config.vgpu.memory_name}]", problem
    yield from _above_parents(raw, cluster)


def _above_parents(raw: Mapping[str, Any], cluster: KnownCluster) -> Found:
    queue, queues, conf = read_queue(raw), cluster.collections.queues, cluster.target.scheduler
    if queue is None or queues is None or conf is None or not conf.nests_queues or queue.name == ROOT:
        return
    for resource, amount in queue.capability.items():
        limit = queues.limit(queue.parent or ROOT, resource, cluster.target)
        if resource in cluster.config.roles and limit is not None and amount > limit.amount:
            more = f"{resource} {amount} is more than its parent {wording.quoted(limit.queue)} allows, {limit.amount}"
            advice = f"write at most {limit.amount}, or allow the parent more"
            yield f"spec.capability[{resource}]", warning(f"{more}: its pods never get more than that", advice)


def names_devices(amounts: Mapping[str, Any], cluster: KnownCluster) -> bool:
    """Whether something in a list of amounts has a name like a device's."""
    return any(True for _ in _of_devices(amounts, cluster))


def _of_devices(amounts: Mapping[str, Any], cluster: KnownCluster) -> Iterator[tuple[str, Any]]:
    resources = cluster.config.resources
    for key, amount in amounts.items():
        resource = plain_name(key)
        if resource in resources or resources.looks_like_device(resource):
            yield key, amount


def plain_name(key: str) -> str:
    """The name of a resource in a key of a limit: without `requests.` or `limits.`."""
    return key.removeprefix(COUNTED).removeprefix(PREFIX)


def _unknown(resource: str, key: str, prefix: str, cluster: KnownCluster) -> CheckResult | None:
    """What to write for the name of a resource that no pod can get; None if some node may offer it."""
    config, fleet = cluster.config, cluster.known_fleet
    offered = fleet.other_names if fleet is not None else ()
    if resource in config.roles or resource in offered or resource in cluster.collections.served:
        return None
    said = f"{wording.unquoted(key)} limits nothing: "
    if resource in AMOUNTS:
        dialect, role, _ = AMOUNTS[resource]
        if resource in dialect.resources:
            same = f"write {prefix}{config.vgpu.role_names[role]}"
            advice = _instead_of_percentages(prefix, cluster) if role is Role.PERCENTAGE else same
            return warning(f"{said}Volcano does not read {dialect.title}'s {resource}", advice)
    family = config.resources.looks_like_family(resource)
    if not family and not cluster.knows_offers:
        return None
    vgpu = config.vgpu
    usual = ", ".join(f"{prefix}{name}" for name in (vgpu.number_name, vgpu.memory_name, vgpu.cores_name))
    why = "no device resource has this name" if family else f"no node offers {resource}"
    return warning(f"{said}{why}", meant_by(resource, fleet, config) or f"of vGPUs, write {usual}")


def _percentage(key: str, prefix: str, cluster: KnownCluster) -> CheckResult:
    why = f"{key} limits nothing: percentages become memory before they are counted"
    return warning(why, _instead_of_percentages(prefix, cluster))


def _instead_of_percentages(prefix: str, cluster: KnownCluster) -> str:
    vgpu = cluster.config.vgpu
    return f"limit {prefix}{vgpu.memory_name} and {prefix}{vgpu.number_name}"


def _memory(amounts: Mapping[str, Any], prefix: str, cluster: KnownCluster) -> Iterator[CheckResult]:
    """What is doubtful about a limit on card memory."""
    vgpu, fleet = cluster.config.vgpu, cluster.known_fleet
    limit = quantity.whole(amounts.get(vgpu.memory_name))
    if limit is None:
        return
    key, unit = f"{prefix}{vgpu.memory_name}", wording.unit_of(vgpu.memory_factor)
    if limit >= LEAST_BYTES:
        written = wording.quoted(amounts[vgpu.memory_name])
        yield warning(
            f"{key} is {written}, which limits nothing: it counts {unit}, not bytes",
            f"write {limit // 2**20 // vgpu.memory_factor}",
        )
    if vgpu.number_name not in amounts:
        yield warning(
            f"{key} does not limit pods that take whole cards: one that requests no memory counts as 0",
            f"limit {prefix}{vgpu.number_name}, too",
        )
    cards = [device for shape in fleet.vgpu.shapes for device, _ in shape.kinds] if fleet is not None else []
    smallest = min([card.capacity for card in cards], default=0)
    if 0 < limit * _SMALL < smallest:
        yield warning(
            f"{key} is {wording.memory(limit, cluster.config)} for all pods together, less than one needs: the smallest "
            f"card has {smallest}",
            f"write the amount in {unit}: 16 GiB are {16384 // vgpu.memory_factor}",
        )
