"""What the rules say of a pod with a change; no review of a request needs that."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from itertools import chain
from types import MappingProxyType

from webhook.devices.nearest import Change
from webhook.pod.view import PodView
from webhook.review.violations import Found, findings, workload_findings
from webhook.rules.choices import DENY
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.workloads import Workload
from webhook.snapshot import Snapshot


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
