"""The pod that rules read: what it requests, and what the policy and the fleet make of it, computed once a review."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from webhook import names
from webhook.devices import registry
from webhook.devices.ascend.feasibility import NpuRequest, npu_requests
from webhook.devices.explanation import PlacementRequest
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.queues import DEFAULT, Queue, Queues
from webhook.devices.requests import DevicePod
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
from webhook.devices.vgpu.feasibility import SliceRequest, capped, judge, slice_request
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import Container, PodView
from webhook.rules import wording
from webhook.rules.base import VGPU_ONLY, Context

Value = TypeVar("Value")


class computed_once(cached_property[Value]):  # noqa: N801  # used like a function
    """`cached_property` without the lock that Python 3.11 takes at the first access."""

    def __get__(self, pod: object, owner: type | None = None) -> Value:  # type: ignore[override]
        """Compute the value, and leave it where the next access finds it first."""
        value = pod.__dict__[self.attrname] = self.func(pod)  # type: ignore[index]
        return value


class ChosenQueue(NamedTuple):
    """The queue of a pod or of a Volcano Job, and all queues.

    Attributes:
        name: of the queue, which may not exist.
        path: the field that names it, or that would.
        queues: those of the cluster.
        what: goes to the queue: `pod` or `job`, for messages.
    """

    name: str
    path: str
    queues: Queues
    what: str = "pod"

    @property
    def certain(self) -> bool:
        """Whether the pods go nowhere else: instead of `default` they may get the queue of their namespace."""
        return self.name != DEFAULT

    @property
    def queue(self) -> Queue | None:
        """The queue; None if it does not exist."""
        return self.queues.by_name.get(self.name)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What no node can ever give a pod, with the parts of a sentence about it.

    Attributes:
        family: the family.
        never: its verdict.
        pod: the pod.
    """

    family: str
    never: Never
    pod: "ReviewedPod"

    @property
    def path(self) -> str:
        """The field: that of the only container that requests the resource, or of all."""
        resource = self.never.resource
        if resource == names.VNPU_MODE:
            return wording.annotation_path(resource)
        container = self._container
        return "spec.containers" if container is None else wording.resource_path(container, resource)

    @property
    def who(self) -> str:
        """The only container that requests the resource, or all of them together."""
        container = self._container
        return (
            "the pod's containers together request" if container is None else f"{wording.container(container)} requests"
        )

    @property
    def device(self) -> str:
        """What the family has on a node."""
        return next(family.device for family in registry.FAMILIES if family.id == self.family)

    def left(self, before: str = "") -> str:
        """The part of a sentence that limits it to the nodes that the pod's selector leaves."""
        return wording.left(self.pod.selector_for(self.family), before)

    @property
    def _container(self) -> Container | None:
        if self.never.container is not None:
            return self.never.container
        found = [amount.container for amount in self.pod.amounts if amount.resource == self.never.resource]
        return found[0] if len(found) == 1 else None


class ReviewedPod(DevicePod):
    """A pod under review.

    Attributes:
        context: of its review.
    """

    def __init__(self, view: PodView, context: Context, previous: PodView | None = None) -> None:
        super().__init__(view, context.config, previous)
        self.context = context

    @computed_once
    def constraints(self) -> Constraints:
        """What the annotations demand.

        Where a static rule refuses an annotation, it is read as the author meant it: the one mistake gets one finding,
        and the fleet rules still report at once what else is wrong.
        """
        found = read_constraints(self.view, self.context.settings.target, self.selector_for(Family.VGPU))
        return found if found is UNCONSTRAINED else corrected(found, self.view, self.context.denies)

    @computed_once
    def slice_request(self) -> SliceRequest | None:
        """What the pod needs of the vGPU nodes; None if a static rule refuses one of its quantities."""
        found = slice_request(self.vgpu, self.constraints, self.context.settings.target)
        return None if found is None else capped(found, self.context.denies)

    @property
    def eligible(self) -> Eligible:
        """The vGPU nodes and cards that the constraints leave; none while the fleet is unknown."""
        fleet = self.context.fleet
        return NONE_ELIGIBLE if fleet is None else eligible(self.constraints, fleet.vgpu)

    @property
    def spreads(self) -> bool:
        """Whether no card takes two pods of the same group."""
        spread = self.view.annotation(names.PODGROUP_POLICY) == names.PODGROUP_SPREAD
        return spread and self.context.settings.target.spreads_groups

    @computed_once
    def queue(self) -> ChosenQueue | None:
        """The queue that the pod goes to; None if queues are unknown, or the pod's PodGroup names the queue."""
        queues = self.context.collections.queues
        if queues is None or not self.context.reads_queue:
            return None
        if self.view.scheduler not in self.context.settings.scheduler_names:
            return None
        if names.GROUP_NAME not in self.view.annotations:
            name = self.view.annotation(names.QUEUE_NAME) or DEFAULT
            return ChosenQueue(name, wording.annotation_path(names.QUEUE_NAME), queues)
        of_job = self.view.annotation(names.JOB_QUEUE_NAME) if names.JOB_NAME in self.view.annotations else None
        return ChosenQueue(of_job, wording.annotation_path(names.JOB_QUEUE_NAME), queues) if of_job else None

    @computed_once
    def npus(self) -> list[NpuRequest]:
        """What the pod requests of Ascend NPUs, in the order of its containers."""
        return npu_requests(self, self.context.config.ascend) if Family.ASCEND in self.requested else []

    @computed_once
    def unknown_names(self) -> list[UnknownName]:
        """Requested resources that look like a family's but have no meaning."""
        return unknown_names(self, self.context.config, self.context.fleet)

    @computed_once
    def verdicts(self) -> tuple[tuple[str, Verdict], ...]:
        """The verdict of each requested family, and of each kind of Ascend NPU; empty while the nodes are unknown.

        A node has to satisfy every family that a pod requests; each is judged by its own nodes.
        """
        fleet = self.context.known_fleet
        if fleet is None:
            return ()
        others = () if VGPU_ONLY.issuperset(self.requested) else tuple(self._verdicts_of_others(fleet))
        if Family.VGPU not in self.requested or self.slice_request is None:
            return others
        return (*others, (Family.VGPU, judge(self.slice_request, fleet.vgpu, self.context.budget)))

    @computed_once
    def never(self) -> tuple[tuple[str, Never], ...]:
        """The families that no node can ever satisfy."""
        return tuple([(family, found) for family, found in self.verdicts if isinstance(found, Never)])

    def refusals(self, rule: str) -> list[Refusal]:
        """What no node can ever give, for a reason that the rule reports."""
        return [Refusal(family, never, self) for family, never in self.never if never.reason.rule == rule]

    def selector_for(self, family: str) -> NodeSelector | None:
        """What the pod demands of its node's labels, if any node with devices of the family has them.

        Labels come and go, and the scheduler reports plainly that none matches: a pod that matches no node is judged by
        all.
        """
        selector = self.view.selector
        return selector if selector is None or self.matches(family) else None

    def matches(self, family: str) -> bool:
        """Whether the pod's selector leaves a node with devices of a family; True if that is not known."""
        fleet, selector = self.context.known_fleet, self.view.selector
        if selector is None or fleet is None:
            return True
        shapes = fleet.by_family[family]
        return not shapes or any(shape.node_left(selector, fleet.index) is not None for shape in shapes)

    def placement_request(self, fleet: Fleet, family: str, path: str = "") -> PlacementRequest:
        """What a family judges and explains the pod by; `path` is the pod's place in its object."""
        return PlacementRequest(
            path=path,
            pod=self,
            family=family,
            config=self.context.config,
            target=self.context.settings.target,
            node_index=fleet.index,
            written=self.view.selector,
            nodes=self.selector_for(family),
            denies=self.context.denies,
        )

    def _verdicts_of_others(self, fleet: Fleet) -> Iterator[tuple[str, Verdict]]:
        for family in registry.FAMILIES:
            if family.judge is not None and family.id in self.requested:
                for verdict in family.judge(self.placement_request(fleet, family.id), fleet.parts[family.id]):
                    yield family.id, verdict
