"""The pipeline: a request and a snapshot of all settings give an outcome. Pure, so every door gets the same answer."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.devices.asks import DevicePod
from webhook.devices.config import DeviceConfig
from webhook.devices.fleet import Fleet
from webhook.errors import Malformed
from webhook.outcome import Outcome
from webhook.pod.templates import WORKLOADS, changed_templates
from webhook.pod.view import PodView
from webhook.rules.base import Context, Enforcement, Level, Mutation, Settings
from webhook.rules.levels import Effective, LevelTable
from webhook.rules.registry import EPHEMERAL_RULES, MUTATIONS, UPDATE_RULES
from webhook.runner import Repair, Violations
from webhook.wire.models import Request


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a review depends on besides the request; swapped as a whole when something changes.

    Attributes:
        config, settings, levels: the device config and the policy.
        fleet: None if unknown or stale.
        digests: of config, policy and fleet, so that a decision can be replayed.
        mutations: those that device config and policy want, in order.
    """

    config: DeviceConfig
    settings: Settings
    levels: LevelTable
    fleet: Fleet | None
    digests: Mapping[str, str]
    mutations: tuple[Mutation, ...] = field(init=False)

    def __post_init__(self) -> None:
        wanted = tuple(rule for rule in MUTATIONS if rule.enabled(self.config, self.settings))
        object.__setattr__(self, "mutations", wanted)  # the dataclass is frozen

    def repairs(self, effective: Effective) -> tuple[Mutation, ...]:
        """The mutations that the policy wants in a namespace, in order."""
        off = effective.repairs_off
        return tuple([rule for rule in self.mutations if rule.id not in off]) if off else self.mutations

    def enforcing(self) -> "Snapshot":
        """The same, but enforced in every namespace: what it would refuse, and repair."""
        return replace(self, levels=self.levels.enforcing())


def mutate(request: Request, snapshot: Snapshot) -> Outcome:
    """Repair a new pod. Everything else passes untouched, and so does the pod if the policy does not enforce.

    Raises:
        Malformed: the object does not have a pod's shape.
    """
    effective = snapshot.levels.of(request.namespace)
    if _kind(request) != "pod" or request.operation != "CREATE" or request.sub_resource or effective.exempt:
        return _untouched(request, "mutate")
    raw = _object(request)
    context = context_of(request, snapshot)
    received = PodView(raw)
    repair = Repair(received, context, snapshot.repairs(effective))
    return Outcome(
        id=_decision_id(request, "mutate"),
        mutations=tuple(repair.edits),
        operations=tuple(repair.draft.operations()),
        notices=_notices(repair, effective),
        object=repair.draft.object if effective.enforcement is Enforcement.ENFORCE else raw,
        received=(("", received),),
        enforcement=effective.enforcement,
    )


def validate(request: Request, snapshot: Snapshot) -> Outcome:
    """Judge a pod as it is, or the pods that a workload's templates would give.

    Where the policy does not enforce, nobody repaired a new pod: it is judged as it would be after all repairs.

    Raises:
        Malformed: the object does not have the shape of its kind.
    """
    effective = snapshot.levels.of(request.namespace)
    kind = _kind(request)
    if kind is None or effective.exempt or request.operation not in ("CREATE", "UPDATE"):
        return _untouched(request, "validate")
    if kind == "pod":
        return _validate_pod(request, snapshot, effective)
    if request.sub_resource or snapshot.settings.workloads is Level.OFF:
        return _untouched(request, "validate")
    return _validate_workload(request, snapshot, effective)


def review(request: Request, snapshot: Snapshot) -> Outcome:
    """Both halves, as the API server would call them: mutate, then validate the result."""
    repaired = mutate(request, snapshot)
    if repaired.touched:
        request = replace(request, object=dict(repaired.object))
    judged = validate(request, snapshot)
    if not repaired.touched:
        return judged
    return judged._replace(
        mutations=repaired.mutations,
        operations=repaired.operations,
        notices=repaired.notices,
        object=repaired.object,
    )


def context_of(request: Request, snapshot: Snapshot) -> Context:
    """What the rules may know of a request besides its pod."""
    effective = snapshot.levels.of(request.namespace)
    return Context(
        request.namespace,
        request.operation,
        request.user,
        request.dry_run,
        snapshot.config,
        snapshot.fleet,
        snapshot.settings,
        effective.levels,
        effective.repairs_off,
    )


def _validate_pod(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    rules: frozenset[str] | None = None
    previous = None
    if request.operation == "UPDATE":
        rules = {"": UPDATE_RULES, "ephemeralcontainers": EPHEMERAL_RULES}.get(request.sub_resource)
        if rules is None:
            return _untouched(request, "validate")
        previous = PodView(request.old_object or {})
    elif request.sub_resource:
        return _untouched(request, "validate")
    context = context_of(request, snapshot)
    view = PodView(_object(request))
    if effective.enforcement is Enforcement.ENFORCE or request.operation != "CREATE":
        pod = DevicePod(view, snapshot.config, previous)
    else:
        pod = Repair(view, context, snapshot.repairs(effective)).pod
    active = effective.for_families(pod.asked)
    if rules is not None:
        active = tuple(entry for entry in active if entry[0].id in rules)
    violations = Violations()
    violations.judge(pod, context, active)
    return Outcome(
        id=_decision_id(request, "validate"),
        allowed=not violations.denied or effective.enforcement is not Enforcement.ENFORCE,
        violations=tuple(violations.kept),
        object=view.raw,
        pods=(("", pod),),
        received=(("", view),),
        enforcement=effective.enforcement,
    )


def _validate_workload(request: Request, snapshot: Snapshot, effective: Effective) -> Outcome:
    templates = changed_templates(request.kind, _object(request), request.old_object)
    if not templates:
        return _untouched(request, "validate")
    context = context_of(request, snapshot)._replace(operation="CREATE")
    repairs = snapshot.repairs(effective)
    violations = Violations(None if snapshot.settings.workloads is Level.DENY else Level.WARN)
    pods: list[tuple[str, DevicePod]] = []
    received: list[tuple[str, PodView]] = []
    notices: list[tuple[str, str]] = []
    for template in templates:
        view = PodView(template.pod)
        repair = Repair(view, context, repairs)
        received.append((template.path, view))
        pods.append((template.path, repair.pod))
        notices += _notices(repair, effective, f"{template.path}: ")
        violations.judge(repair.pod, context, effective.for_families(repair.pod.asked), template)
    return Outcome(
        id=_decision_id(request, "validate"),
        allowed=not violations.denied or effective.enforcement is not Enforcement.ENFORCE,
        violations=tuple(violations.kept),
        notices=tuple(notices),
        object=request.object or {},
        pods=tuple(pods),
        received=tuple(received),
        pods_refused=tuple(violations.lowered) if effective.enforcement is Enforcement.ENFORCE else (),
        enforcement=effective.enforcement,
    )


def _notices(repair: Repair, effective: Effective, place: str = "") -> tuple[tuple[str, str], ...]:
    """What the author reads about repairs: changes of the author's own words, or all changes that are not made."""
    if effective.enforcement is not Enforcement.WARN:
        return tuple([(rule, f"{place}{detail}") for rule, detail in repair.notices])
    return tuple([(rule, f"would be repaired: {place}{detail}") for rule, detail in repair.proposals()])


def _kind(request: Request) -> str | None:
    """`pod`, `workload`, or None for what is not this webhook's business."""
    if request.group == "" and request.kind == "Pod":
        return "pod"
    return "workload" if (request.group, request.kind) in WORKLOADS else None


def _object(request: Request) -> dict[str, Any]:
    if request.object is None:
        raise Malformed("request.object", "an object", None)
    return request.object


def _untouched(request: Request, half: str) -> Outcome:
    return Outcome(id=_decision_id(request, half), object=request.object or {}, touched=False)


def _decision_id(request: Request, half: str) -> str:
    """Unique as the request's uid is, yet the same on replay."""
    return hashlib.blake2b(f"{half}/{request.uid}".encode(), digest_size=6).hexdigest()
