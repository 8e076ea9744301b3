"""What the rules say of a pod with a change; no review of a request needs that."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from webhook.devices.nearest import Change
from webhook.devices.requests import MAX_STATUS_UNITS
from webhook.devices.vgpu.feasibility import SliceRequest, may_take
from webhook.pod.view import PodView
from webhook.review.violations import Found, findings, workload_findings
from webhook.rules.choices import DENY
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.vgpu_memory import VgpuMemory
from webhook.rules.workloads import Workload
from webhook.snapshot import Snapshot


def status_takes_less(memory: VgpuMemory, request: Any, nodes: int | None) -> bool:
    """Whether the status has room for the units of a changed request on some nodes, and of one for less memory.

    Args:
        memory: of the pod.
        request: what the pod would request of a family.
        nodes: those that it may get, as bits; None for all.
    """
    if not isinstance(request, SliceRequest):
        return True
    units = [need.memory or 0 for need in request.needs]
    excess, largest = sum(units) - MAX_STATUS_UNITS, max(units, default=0)
    if excess <= 0:
        return True
    place = units.index(largest)
    least = replace(request.needs[place], memory=max(largest - excess + 1, 1))
    needs = (*request.needs[:place], least, *request.needs[place + 1 :])
    writing = memory.writing_on(request.constraints._replace(nodes=nodes))
    return not may_take(replace(request, needs=needs), writing, memory.trials)


def admission(
    pod: ReviewedPod,
    snapshot: Snapshot,
    templates: Mapping[str, ReviewedPod] = MappingProxyType({}),
    alike: Collection[str] = (),
) -> Callable[[Change], bool]:
    """Whether a pod with a change is refused by no rule that does not refuse it without.

    Args:
        pod: the pod.
        snapshot: the settings.
        templates: of a workload, the pods of its templates by their paths: it is judged as a whole, too.
        alike: the paths of those that get the change.
    """
    request = pod.context.request
    effective = snapshot.policy.of(request.namespace)
    context = pod.context._replace(effective=effective)

    @cache
    def refused(change: Change | None) -> set[str]:
        def changed(each: ReviewedPod) -> ReviewedPod:
            return ReviewedPod(PodView(each.view.raw if change is None else change.of(each.view.raw)), context)

        one = changed(pod)
        found: Iterable[Found] = findings(one, effective.for_pod(one))
        if templates:
            pods = {path: changed(each) if path in alike else each for path, each in templates.items()}
            workload = Workload(request.group, request.kind, request.object or {}, pods, context)
            found = chain(found, workload_findings(workload, effective, running=False))
        return {rule for rule, level, _ in found if level is DENY}

    return lambda change: effective.exempt or refused(change) <= refused(None)
