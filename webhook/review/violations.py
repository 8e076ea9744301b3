"""Runs the validations, collects what they find, and what follows from it, or from there being nothing to review."""

import hashlib
from collections.abc import Iterable, Iterator

from webhook import names
from webhook.lenient import obj
from webhook.outcome import MAX_FINDINGS, Outcome, PodReview, Violation
from webhook.pod.templates import Template
from webhook.policy.levels import Active, Effective
from webhook.policy.schema import NO_EXCEPTIONS, Exceptions, PolicyException, exception_name, exceptions_for
from webhook.rules.base import Validation
from webhook.rules.choices import DENY, ENFORCE, Level
from webhook.rules.context import Finding
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.rules.workloads import Workload
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

Found = tuple[str, Level, Finding]  # by which rule, and the rule's level


def findings(pod: ReviewedPod, active: Active) -> Iterator[Found]:
    """Run the validations on one pod."""
    context = pod.context
    for rule, level in active:
        count = 0
        for finding in rule.check(pod, context):
            doubtful = level is DENY and (finding.doubtful or _is_unsure(rule, pod))
            own = Level.WARN if doubtful else level
            if finding.ceiling is not DENY:
                own = own.at_most(finding.ceiling)
            yield rule.id, own, finding
            count += own is level
            if count == MAX_FINDINGS:
                break  # these have the level of the rule: more of them cannot change the verdict


def _is_unsure(rule: Validation, pod: ReviewedPod) -> bool:
    """Whether what a rule finds depends on nodes that are unknown, or on devices that a DeviceClass serves."""
    if rule.fleet and not pod.cluster.knows_nodes:
        return True
    served = pod.names.served_elsewhere
    return bool(served) and rule.yields_to(served, pod.requested)


def workload_findings(workload: Workload, effective: Effective, *, running: bool) -> Iterator[Found]:
    """Run the validations on a workload as a whole; pods that run already count, so an update is not refused."""
    for rule, level, check in effective.for_workloads:
        for finding in check(workload, workload.context):
            doubtful = level is DENY and (running or finding.doubtful)
            yield rule, Level.WARN if doubtful else level, finding


class Violations:
    """Collects findings. Keeps at most 100 and the first denial.

    Attributes:
        kept: the findings.
        denied: whether one of them denies.
        lowered: the rules whose denials the ceiling lowered, in order.
        excepted: the rules with findings that an exception lowered, each with the exception.
    """

    __slots__ = ("_ceiling", "_exceptions", "denied", "excepted", "kept", "lowered")

    def __init__(self, ceiling: Level | None = None, exceptions: Exceptions = NO_EXCEPTIONS) -> None:
        self.kept: list[Violation] = []
        self.denied = False
        self.lowered: dict[str, None] = {}
        self.excepted: dict[str, PolicyException] = {}
        self._ceiling = ceiling  # denials become this
        self._exceptions = exceptions

    def add(self, found: Iterable[Found], template: Template | None = None) -> None:
        """Add the findings of one pod."""
        for rule, level, finding in found:
            self._add(rule, level, finding, template)

    def _add(self, rule: str, level: Level, finding: Finding, template: Template | None) -> None:
        if rule in self._exceptions and level is not Level.AUDIT:
            level = Level.AUDIT
            self.excepted[rule] = self._exceptions[rule]
        ceiling = self._ceiling if template is None or template.whole else Level.WARN
        if level is DENY and ceiling is not None:
            level = ceiling
            self.lowered[rule] = None
        first_denial = level is DENY and not self.denied
        self.denied = self.denied or first_denial
        if len(self.kept) < MAX_FINDINGS or first_denial:
            path, message = finding.path, finding.detail
            if template is not None:
                path, message = template.field(path), f"{template.path}: {message}"
            self.kept.append(Violation(rule, level, path, message))

    def outcome(
        self,
        request: Request,
        snapshot: Snapshot,
        effective: Effective,
        pods: tuple[PodReview, ...] = (),
        notices: tuple[tuple[str, str], ...] = (),
    ) -> Outcome:
        """What follows from the findings."""
        enforced = effective.enforcement is ENFORCE
        return Outcome(
            id=decision_id(request, "validate"),
            allowed=not self.denied or not enforced,
            violations=tuple(self.kept),
            notices=notices,
            object=request.object or {},
            pods=pods,
            lowered=tuple(self.lowered) if enforced else (),
            enforcement=effective.enforcement,
            help_url=snapshot.policy.help_url,
            exceptions=tuple(self.excepted.items()),
        )


def exceptions_of(request: Request, effective: Effective) -> Exceptions:
    """The exceptions that may hold for a pod, or for the pods of a workload."""
    if request.day is None or not effective.exceptions:
        return NO_EXCEPTIONS
    name = exception_name(obj(request.object, "metadata"), request.name, is_pod=request.is_pod or request.is_binding)
    return exceptions_for(name, request.day, effective.exceptions)


def not_reviewed(request: Request, endpoint: str) -> Outcome:
    """The outcome of a request that is not reviewed."""
    notices = ((names.PROBE_MAP, "the webhook answers"),) if _is_probe(request) else ()
    return Outcome(id=decision_id(request, endpoint), notices=notices, object=request.object or {}, reviewed=False)


def _is_probe(request: Request) -> bool:
    """Whether this is a dry run to find out whether the API server calls the webhook."""
    return request.kind == "ConfigMap" and request.name == names.PROBE_MAP and request.dry_run


def decision_id(request: Request, endpoint: str) -> str:
    """Unique as the request's uid is, yet the same on replay."""
    return hashlib.blake2b(f"{endpoint}/{request.uid}".encode(), digest_size=6).hexdigest()
