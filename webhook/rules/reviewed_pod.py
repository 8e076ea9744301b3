"""The pod that rules read, with its subjects, each of which is made when it is first read.

A subject is a value, or keeps parts of the pod and not the pod itself: Python frees the pod at once, without its collector.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, cast

from webhook import names
from webhook.devices import wording
from webhook.devices.ascend.feasibility import NpuRequest, npu_requests
from webhook.devices.families import Family, PodFact
from webhook.devices.family import Refusal
from webhook.devices.fleet import UNREFUSED, Doubt, FleetPlacement, RefusedRequest, WholeRequest
from webhook.devices.requests import DevicePod
from webhook.devices.unknown import UnknownName, unknown_names
from webhook.devices.verdict import Reason
from webhook.devices.vgpu.eligibility import NONE_ELIGIBLE, Constraints, Eligible, eligible
from webhook.devices.vgpu.family import VgpuFamily
from webhook.devices.vgpu.feasibility import SliceRequest
from webhook.devices.vgpu.fleet import UnseenNodes
from webhook.pod import quantity
from webhook.pod.fields import FieldGroup, OptionalFields, annotations, labels
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import KUBERNETES_GROUPS
from webhook.rules.context import Context, Finding
from webhook.rules.vgpu_memory import VgpuMemory
from webhook.volcano.queues import ChosenQueue, queue_of_pod

MAX_OTHERS = 3  # resources of other device plugins in a sentence

# What every rule reads: the devices that a pod requests, and what chooses their nodes and cards.
REQUEST = FieldGroup(
    "the devices and nodes that the pod requests",
    annotations(*names.CHOOSING_ANNOTATIONS)
    | labels(*names.MINDCLUSTER_LABELS)
    | {"containers[*].resources", "containers[*].restartPolicy", "spec.nodeSelector", "spec.affinity"},
)


Value = TypeVar("Value")


class computed_once(cached_property[Value]):  # noqa: N801  # used like a function
    """`cached_property` without the lock that Python 3.11 takes at the first access."""

    def __get__(self, owner: object, kind: type | None = None) -> Value:  # type: ignore[override]
        """Compute the value, and leave it where the next access finds it first."""
        value = owner.__dict__[self.attrname] = self.func(owner)  # type: ignore[index]
        return value


class RequestedNames:
    """The names of the resources that a pod requests."""

    def __init__(self, pod: DevicePod, context: Context) -> None:
        self._view, self._requested, self._amounts, self._foreign = pod.view, pod.requested, pod.amounts, pod.foreign
        self._context = context

    @property
    def all_known(self) -> bool:
        """Whether the device config, Kubernetes or some node names every resource; False while nodes are unknown."""
        fleet = self._context.cluster.known_fleet
        return fleet is not None and self._foreign <= fleet.named

    @computed_once
    def unknown(self) -> list[UnknownName]:
        """Those that look like a family's, but that nothing serves."""
        if self.all_known or not self._foreign:
            return []
        cluster = self._context.cluster
        return unknown_names(self._view, cluster.config, cluster.fleet, cluster.collections.served)

    @computed_once
    def others(self) -> Mapping[str, int]:
        """The resources of other device plugins that some node lists, each with these nodes, as bits."""
        cluster = self._context.cluster
        fleet = cluster.known_fleet
        if fleet is None or self._foreign.isdisjoint(fleet.other_names):
            return {}
        listed = fleet.other_names
        requested: dict[str, int] = {}
        for container in self._view.every_container():
            for part in (container.limits, container.requests):
                requested |= {name: listed[name] for name in part if name in listed and quantity.whole(part[name]) != 0}
        if not requested or not cluster.knows_offers:
            return {}
        served = cluster.collections.served
        others = {name: nodes for name, nodes in requested.items() if name not in served}
        if Family.VGPU in self._requested and not fleet.vgpu.native and self._context.denies("family-mixed"):
            others.pop(names.NVIDIA_GPU, None)  # refused already
        return others

    @computed_once
    def served_elsewhere(self) -> frozenset[str]:
        """The requested families whose devices a DeviceClass serves, or may serve: the nodes alone do not decide about them.

        While some DeviceClasses cannot be read, one of them may serve a family whose devices no node has.
        """
        cluster = self._context.cluster
        classes, fleet = cluster.collections.classes, cluster.known_fleet
        if classes is None:
            return frozenset()
        served = {amount.family for amount in self._amounts if amount.resource in classes.by_resource}
        if fleet is not None and not classes.complete:
            served |= {family for family in self._requested if not fleet.by_family[family]}
        return frozenset(served)


class ReviewedPod(DevicePod):
    """A pod under review.

    Attributes:
        context: the context of its review.
        cluster: the cluster in this context.
    """

    def __init__(self, view: PodView, context: Context, previous: PodView | None = None) -> None:
        self.context = context
        self.cluster = context.cluster
        super().__init__(view, self.cluster.config, previous)

    # --- subjects ----------------------------------------------------------------------------------------------------

    @computed_once
    def queue(self) -> ChosenQueue | None:
        """The queue that the pod goes to; None if queues are unknown, or the pod's PodGroup names the queue."""
        queues = self.cluster.collections.queues
        if queues is None or self.context.request.group not in KUBERNETES_GROUPS:
            return None  # other controllers make their PodGroups themselves
        ours = self.view.scheduler in self.cluster.policy.scheduler_names
        return queue_of_pod(self.view, queues) if ours else None

    @computed_once
    def names(self) -> RequestedNames:
        """The names of the resources that the pod requests."""
        return RequestedNames(self, self.context)

    @computed_once
    def memory(self) -> VgpuMemory:
        """Its vGPU memory: what a percentage is, and which other amounts there is room for."""
        return VgpuMemory(self.slices, self.constraints, self.eligible, self.context)

    @computed_once
    def placement(self) -> FleetPlacement:
        """Where the scheduler cannot place the pod although the nodes are empty."""
        fleet, requested = self.cluster.known_fleet, self.requested
        if fleet is None:
            return UNREFUSED
        if len(requested) > 1:
            requested = {family: requested[family] for family in self.cluster.families if family in requested}
        elsewhere = self.names.served_elsewhere
        requests = {family: self.requests_for(family) for family in requested if family not in elsewhere}
        others = self.names.others if self.foreign else {}
        return WholeRequest(self, requests, others, self.context.denies, self.context.budget).placed_on(fleet)

    def facts(self, optional: OptionalFields) -> frozenset[str]:
        """The facts that decide which rules run; of a new pod also whether the nodes take it."""
        facts = super().facts(optional)
        if self.previous is not None or not self.requested:
            return facts
        never, doubts, tight = self.placement
        if never or doubts:
            facts |= {PodFact.REFUSED}
        return facts | {PodFact.TIGHT} if tight else facts

    def refusals(self, rule: str) -> Iterator[Finding]:
        """What a rule reports of what no node can give; else warnings of what only nodes in doubt can give."""
        never, doubts, _ = self.placement
        for refused in never:
            if refused.never.reason.rule == rule:
                for path, sentence in self.describe(refused):
                    yield Finding(path, sentence)
        for doubt in () if never else doubts:
            if doubt.never.reason.rule == rule:
                yield warn_of(doubt)

    def describe(self, refused: RefusedRequest) -> Iterator[tuple[str, str]]:
        """Fields, each with a sentence about what no node can give: the family's words."""
        family, request, never = refused
        fleet = self.cluster.known_fleet
        if never.reason is Reason.APART:
            of_families = [amount.resource for amount in self.amounts if amount.value]
            others, offered = [*islice(self.names.others, MAX_OTHERS)], fleet.offered if fleet is not None else {}
            requested = " and ".join(dict.fromkeys([*of_families, *others]))
            nodes = [f"node {wording.quoted(offered[name])} offers {name}" for name in others if name in offered]
            where = f" ({', '.join(nodes)})" if nodes else ""
            no_room = f"no node has room for the {requested} of the pod together, even empty"
            yield "spec.containers", f"{no_room}; make a pod for each kind of device{where}"
        elif fleet is not None:
            selector = None if self.members_for(family) is None else self.view.selector
            refusal = Refusal(never=never, request=request, pod=self, part=fleet.parts[family], selector=selector)
            yield from self.cluster.families[family].describe(refusal)

    # --- what it requests --------------------------------------------------------------------------------------------

    @computed_once
    def _requests(self) -> dict[str, Sequence[Any]]:
        """By the ids of the families, as `requests_for` has read them."""
        return {}

    def requests_for(self, family: str) -> Sequence[Any]:
        """What the scheduler would serve of a family, each kind of device by itself."""
        requests = self._requests.get(family)
        if requests is None:
            read = self.cluster.families[family].requests
            requests = self._requests[family] = read(self, self.members_for(family), self.context.denies)
        return requests

    @computed_once
    def slice_request(self) -> SliceRequest | None:
        """What the pod needs of the vGPU nodes; None if a static rule refuses one of its quantities."""
        requests: Sequence[SliceRequest] = self.requests_for(Family.VGPU)
        return requests[0] if requests else None

    @computed_once
    def npus(self) -> list[NpuRequest]:
        """What the pod requests of Ascend NPUs, in the order of its containers."""
        if Family.ASCEND not in self.requested:
            return []
        return npu_requests(self, self.cluster.config.ascend, self.cluster.target)

    @property
    def spreads(self) -> bool:
        """Whether no card takes two pods of the same group."""
        spread = self.view.annotation(names.PODGROUP_POLICY) == names.PODGROUP_SPREAD
        return spread and self.cluster.target.spreads_groups

    # --- its nodes and cards -----------------------------------------------------------------------------------------

    def members_for(self, family: str) -> int | None:
        """The nodes that its selector leaves to a family, as bits; None for all."""
        selector = self.view.selector
        if selector is None or self.cluster.fleet is None:
            return None
        return self.cluster.fleet.nodes_for(family, selector)

    def matches(self, family: str) -> bool:
        """Whether the pod's selector leaves a node with devices of a family; True if that is not known."""
        fleet, selector = self.cluster.known_fleet, self.view.selector
        if selector is None or fleet is None:
            return True
        part = fleet.parts[family]
        return not part.shapes or bool(part.selected(fleet.index.selected(selector)))

    @computed_once
    def constraints(self) -> Constraints:
        """What the annotations demand of the cards, beside what the selector demands of the nodes."""
        requests: Sequence[SliceRequest] = self._requests.get(Family.VGPU, ())
        if requests:
            return requests[0].constraints  # read already
        family = cast("VgpuFamily", self.cluster.families[Family.VGPU])
        return family.constraints(self, self.members_for(Family.VGPU), self.context.denies)

    @property
    def eligible(self) -> Eligible:
        """The vGPU nodes and cards that the constraints leave; none while the fleet is unknown."""
        fleet = self.cluster.fleet
        return NONE_ELIGIBLE if fleet is None else eligible(self.constraints, fleet.vgpu)

    @computed_once
    def unseen_nodes(self) -> tuple[tuple[UnseenNodes, int], ...]:
        """The nodes that may take the pod without giving it cards, each kind with those that its selector leaves, as bits."""
        fleet = self.cluster.known_fleet
        unseen = fleet.vgpu.unseen if fleet is not None else ()
        request = self.slice_request if unseen and len(self.requested) == 1 else None
        if fleet is None or request is None or not request.needs:
            return ()
        left = fleet.index.selected(self.view.selector) if self.view.selector is not None else -1
        return tuple([(one, one.members & left) for one in unseen if one.members & left and one.take(request.totals)])


def warn_of(doubt: Doubt) -> Finding:
    """A warning: the node may be back soon."""
    ends = "" if wording.FOR_EVER in doubt.why else "; the pod does not run while that is so"
    detail = f"only node {wording.quoted(doubt.node)} can take the pod, but {doubt.why}{ends}"
    return Finding("spec.containers", detail, doubtful=True)
