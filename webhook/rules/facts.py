"""What several rules read of one pod, the policy and the fleet together; each fact is computed once a review."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from webhook.devices import registry
from webhook.devices.ascend.feasibility import NpuRequest, npu_requests
from webhook.devices.explanation import PlacementRequest
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector, read_selector
from webhook.devices.unknown import UnknownName, unknown_names
from webhook.devices.verdict import Never, Verdict
from webhook.devices.vgpu.eligibility import (
    NONE_ELIGIBLE,
    UNCONSTRAINED,
    Constraints,
    Eligible,
    corrected,
    eligible,
    read_constraints,
)
from webhook.devices.vgpu.feasibility import Question, capped, judge, question
from webhook.rules.base import VGPU_ONLY, Context

Value = TypeVar("Value")


class _Fact(Generic[Value]):
    """An attribute computed on first access. `functools.cached_property` of Python 3.11 takes a lock for that."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.__doc__ = compute.__doc__
        self._compute = compute
        self._name = compute.__name__

    @overload
    def __get__(self, facts: None, owner: type) -> "_Fact[Value]": ...

    @overload
    def __get__(self, facts: "PodFacts", owner: type) -> Value: ...

    def __get__(self, facts: "PodFacts | None", owner: type) -> "_Fact[Value] | Value":
        if facts is None:
            return self
        value = self._compute(facts)
        setattr(facts, self._name, value)
        return value


class PodFacts:
    """The facts of one pod.

    Attributes:
        view: the pod.
        vgpu: its vgpu requests.
        requested: the families that it requests.
        context: of its review.
        written_selector: what it demands of its node's labels.
    """

    def __init__(self, pod: DevicePod, context: Context) -> None:
        self.view = pod.view
        self.vgpu = pod.vgpu
        self.requested = pod.requested
        self.context = context
        self.written_selector = read_selector(pod.view)
        self._pod = weakref.ref(pod)  # the pod refers to its facts; a cycle would be left to the garbage collector

    @property
    def pod(self) -> DevicePod:
        """The pod with its amounts."""
        pod = self._pod()
        if pod is None:
            raise ReferenceError("facts are read of a pod that is gone")
        return pod

    @_Fact
    def constraints(self) -> Constraints:
        """What the annotations demand.

        Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding,
        and the fleet rules still report at once what else is wrong.
        """
        found = read_constraints(self.view, self.context.settings.target, self.selector(Family.VGPU))
        return found if found is UNCONSTRAINED else corrected(found, self.view, self.context.denies)

    @_Fact
    def question(self) -> Question | None:
        """What the pod needs of the vGPU nodes; None if a static rule refuses one of its quantities."""
        found = question(self.vgpu, self.constraints, self.context.settings.target)
        return None if found is None else capped(found, self.context.denies)

    @property
    def eligible(self) -> Eligible:
        """The vGPU nodes and cards that the constraints leave; none while the fleet is unknown."""
        fleet = self.context.fleet
        return NONE_ELIGIBLE if fleet is None else eligible(self.constraints, fleet.vgpu)

    @_Fact
    def npus(self) -> list[NpuRequest]:
        """What the pod requests of Ascend NPUs, in the order of its containers."""
        return npu_requests(self.pod, self.context.config.ascend) if Family.ASCEND in self.requested else []

    @_Fact
    def unknown_names(self) -> list[UnknownName]:
        """Requested resources that look like a family's but have no meaning."""
        return unknown_names(self.pod, self.context.config, self.context.fleet)

    @_Fact
    def verdicts(self) -> tuple[tuple[str, Verdict], ...]:
        """The verdict of each requested family, and of each kind of Ascend NPU; empty while the nodes are unknown.

        A node has to satisfy every family that a pod requests; each is judged by its own nodes.
        """
        fleet = self.context.fleet
        if fleet is None or not fleet.complete:
            return ()
        others = () if VGPU_ONLY.issuperset(self.requested) else tuple(self._verdicts_of_others(fleet))
        if Family.VGPU not in self.requested or self.question is None:
            return others
        return (*others, (Family.VGPU, judge(self.question, fleet.vgpu, self.context.budget)))

    @_Fact
    def never(self) -> tuple[tuple[str, Never], ...]:
        """The families that no node can ever satisfy."""
        return tuple([(family, found) for family, found in self.verdicts if isinstance(found, Never)])

    def selector(self, family: str) -> NodeSelector | None:
        """What the pod demands of its node's labels, if any node with devices of the family has them.

        Labels come and go, and the scheduler reports plainly that none matches: a pod that matches no node is judged by
        all.
        """
        found = self.written_selector
        return found if found is None or self.matches(family) else None

    def matches(self, family: str) -> bool:
        """Tell whether the pod's selector leaves a node with devices of a family; True if that is not known."""
        fleet, found = self.context.fleet, self.written_selector
        if fleet is None or not fleet.complete:
            return True
        shapes = fleet.by_family[family]
        return not shapes or any(shape.node_left(found, fleet.index) is not None for shape in shapes)

    def _verdicts_of_others(self, fleet: Fleet) -> Iterator[tuple[str, Verdict]]:
        for family in registry.FAMILIES:
            if family.judge is not None and family.id in self.requested:
                request = placement_request(self.pod, self.context, fleet, family.id)
                for verdict in family.judge(request, fleet.parts[family.id]):
                    yield family.id, verdict


def facts_of(pod: DevicePod, context: Context) -> PodFacts:
    """The facts of a pod; those of its first review."""
    facts: PodFacts | None = pod.facts
    if facts is None:
        facts = pod.facts = PodFacts(pod, context)
    return facts


def refusals(pod: DevicePod, context: Context, rule: str) -> Sequence[tuple[str, Never]]:
    """The families that no node can ever satisfy, for a reason that the rule reports."""
    found = facts_of(pod, context).never
    return [(family, never) for family, never in found if never.reason.rule == rule] if found else ()


def placement_request(pod: DevicePod, context: Context, fleet: Fleet, family: str, path: str = "") -> PlacementRequest:
    """What a family judges and explains a pod by; `path` is where the pod stands in its object."""
    facts = facts_of(pod, context)
    return PlacementRequest(
        path=path,
        pod=pod,
        family=family,
        config=context.config,
        target=context.settings.target,
        node_index=fleet.index,
        written=facts.written_selector,
        nodes=facts.selector(family),
        denies=context.denies,
    )
