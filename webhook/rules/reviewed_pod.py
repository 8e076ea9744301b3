"""The pod that rules read: what it requests, and what the policy and the fleet make of it, computed once a review."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import islice
from operator import and_
from typing import Any, NamedTuple, TypeVar, cast

from webhook import names
from webhook.devices.ascend.feasibility import NpuRequest, npu_requests
from webhook.devices.families import Family, PodFact, Role
from webhook.devices.family import Refusal
from webhook.devices.fleet import Fleet
from webhook.devices.model import CARD_CORES
from webhook.devices.requests import MAX_STATUS_UNITS, Amount, DevicePod, DeviceRequest
from webhook.devices.unknown import UnknownName, unknown_names
from webhook.devices.verdict import Fits, FitsTightly, Never, Reason, SearchBudget, Verdict
from webhook.devices.vgpu.eligibility import (
    NONE_ELIGIBLE,
    Candidate,
    Constraints,
    Eligible,
    eligible,
)
from webhook.devices.vgpu.family import VgpuFamily
from webhook.devices.vgpu.feasibility import SliceRequest, capped, judge, may_take, only_on, slice_request
from webhook.devices.vgpu.fleet import UnseenNodes
from webhook.pod import quantity
from webhook.pod.fields import FieldGroup, OptionalFields, annotations, labels
from webhook.pod.selectors import NodeSelector
from webhook.pod.view import Container, PodView
from webhook.pod.workload_kinds import KUBERNETES_GROUPS
from webhook.rules import wording
from webhook.rules.choices import MixedCards
from webhook.rules.context import Context, Finding
from webhook.volcano.queues import DEFAULT, Queue, Queues

_SIZES = {Role.MEMORY, Role.PERCENTAGE}
PERCENTAGES = frozenset(range(1, 101))  # a range compares None with each of its numbers
NO_ROOM = f"which is more units than the {MAX_STATUS_UNITS} that the status of a pod has room for"
MAX_TRIED = 16  # nodes that differ in what they give
MAX_OTHERS = 3  # resources of other device plugins in a sentence
MAX_CELLS = 64  # groups of nodes that are alike in all that a pod of several families requests; with more, it may fit

# What every rule reads: the devices that a pod requests, and what chooses their nodes and cards.
REQUEST = FieldGroup(
    "the devices and nodes that the pod requests",
    annotations(*names.CHOOSING_ANNOTATIONS)
    | labels(*names.MINDCLUSTER_LABELS)
    | {"containers[*].resources", "containers[*].restartPolicy", "spec.nodeSelector", "spec.affinity"},
)
QUEUE = FieldGroup(
    "the queue that the pods go to",
    annotations(names.GROUP_NAME, names.JOB_NAME, names.JOB_QUEUE_NAME, names.QUEUE_NAME)
    | {"spec.schedulerName", "workload.queue", f"workload.metadata.labels[{names.JOB_QUEUE_NAME}]"}
    | {f"workload.metadata.annotations[{names.QUEUE_NAME}]"},
)

Value = TypeVar("Value")


class JudgedRequest(NamedTuple):
    """A verdict, with the id of the family and the request that it is about; None for all of the pod's requests."""

    family: str
    request: Any
    verdict: Verdict


class RefusedRequest(NamedTuple):
    """A request that no node can ever serve, with its family and the verdict."""

    family: str
    request: Any
    never: Never


class computed_once(cached_property[Value]):  # noqa: N801  # used like a function
    """`cached_property` without the lock that Python 3.11 takes at the first access."""

    def __get__(self, pod: object, owner: type | None = None) -> Value:  # type: ignore[override]
        """Compute the value, and leave it where the next access finds it first."""
        value = pod.__dict__[self.attrname] = self.func(pod)  # type: ignore[index]
        return value


BY_CONTROLLER = "pods"  # that another controller's PodGroup starts, if its settings say so


class ChosenQueue(NamedTuple):
    """The queue of a pod, of a Volcano Job, of a PodGroup, or of the pods of another workload, and all queues.

    Attributes:
        name: the queue's name; the queue may not exist.
        path: the field that names the queue, or that would.
        queues: all queues of the cluster.
        what: the kind of object that goes to the queue, for messages: `pod`, `pods`, `job` or `PodGroup`.
    """

    name: str
    path: str
    queues: Queues
    what: str = "pod"

    @property
    def certain(self) -> bool:
        """Whether the pods go nowhere else: before there is a PodGroup, the namespace may replace `default`."""
        return self.what != BY_CONTROLLER and (self.name != DEFAULT or self.what == names.POD_GROUP)

    @property
    def refused(self) -> str:
        """The part of a sentence about a queue that takes nothing: what Volcano's own webhook does."""
        return wording.VOLCANO_REFUSES if self.what == "job" else ""

    @property
    def queue(self) -> Queue | None:
        """The queue; None if it does not exist."""
        return self.queues.by_name.get(self.name)


class Doubt(NamedTuple):
    """What refuses a pod without the nodes in doubt, one such node that takes it, and why it is in doubt."""

    never: Never
    node: str
    why: str

    @property
    def finding(self) -> Finding:
        """A warning: the node may be back soon."""
        ends = "" if wording.FOR_EVER in self.why else "; the pod does not run while that is so"
        detail = f"only node {wording.quoted(self.node)} can take the pod, but {self.why}{ends}"
        return Finding("spec.containers", detail, doubtful=True)


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

    @computed_once
    def _requests(self) -> dict[str, Sequence[Any]]:
        """By the ids of the families, as `requests_for` has found them."""
        return {}

    @computed_once
    def constraints(self) -> Constraints:
        """What the annotations demand of the cards, beside what the selector demands of the nodes."""
        family = cast("VgpuFamily", self.cluster.families[Family.VGPU])
        return family.constraints(self, self.members_for(Family.VGPU), self.context.denies)

    @computed_once
    def slice_request(self) -> SliceRequest | None:
        """What the pod needs of the vGPU nodes; None if a static rule refuses one of its quantities."""
        found: Sequence[SliceRequest] = self.requests_for(Family.VGPU)
        return found[0] if found else None

    @property
    def eligible(self) -> Eligible:
        """The vGPU nodes and cards that the constraints leave; none while the fleet is unknown."""
        fleet = self.cluster.fleet
        return NONE_ELIGIBLE if fleet is None else eligible(self.constraints, fleet.vgpu)

    @computed_once
    def whole_cards(self) -> tuple[Container, ...]:
        """The containers that request vGPUs, if each holds whole cards alone: all memory and cores; otherwise none."""
        whole = all(self._takes_whole_cards(request) for request in self.slices)
        return tuple([request.container for request in self.slices]) if whole else ()

    def _takes_whole_cards(self, request: DeviceRequest) -> bool:
        if not request.usable or not request.number or request.cores != CARD_CORES or request.percentage is not None:
            return False
        if not request.memory:
            return True  # the scheduler takes all memory of each card
        fleet = self.cluster.known_fleet
        if fleet is None or self.cluster.policy.fleet.autoscaled or not self.eligible.complete:
            return False  # a larger card may be there
        return all(card.memory <= request.memory for card in self.eligible.cards)

    @property
    def spreads(self) -> bool:
        """Whether no card takes two pods of the same group."""
        spread = self.view.annotation(names.PODGROUP_POLICY) == names.PODGROUP_SPREAD
        return spread and self.cluster.target.spreads_groups

    @computed_once
    def queue(self) -> ChosenQueue | None:
        """The queue that the pod goes to; None if queues are unknown, or the pod's PodGroup names the queue."""
        queues = self.cluster.collections.queues
        if queues is None or self.context.request.group not in KUBERNETES_GROUPS:
            return None  # other controllers make their PodGroups themselves
        if self.view.scheduler not in self.cluster.policy.scheduler_names:
            return None
        if names.GROUP_NAME not in self.view.annotations:
            name = self.view.annotation(names.QUEUE_NAME) or DEFAULT
            return ChosenQueue(name, wording.annotation_path(names.QUEUE_NAME), queues)
        of_job = self.view.annotation(names.JOB_QUEUE_NAME) if names.JOB_NAME in self.view.annotations else None
        return ChosenQueue(of_job, wording.annotation_path(names.JOB_QUEUE_NAME), queues) if of_job else None

    @computed_once
    def _by_percentage(self) -> frozenset[Container]:
        """The containers that request a percentage of a card."""
        return frozenset([request.container for request in self.slices if request.percentage in PERCENTAGES])

    def is_replaced(self, amount: Amount) -> bool:
        """Whether an amount is vGPU memory beside a percentage, which wins: the scheduler does not read the memory."""
        of_vgpu = (amount.family, amount.role) == (Family.VGPU, Role.MEMORY)
        return of_vgpu and amount.container in self._by_percentage

    @computed_once
    def card_sizes(self) -> list[int]:
        """The different sizes of the cards that the pod may use, ascending."""
        return sorted({card.memory for card in self.eligible.cards})

    def memory_of(self, percentage: int) -> int:
        """The memory that a percentage is; 0 if no card is known."""
        largest = self.cluster.policy.percentage.mixed_cards is MixedCards.LARGEST
        size = self.card_sizes[-1 if largest else 0] if self.card_sizes else 0
        return size and max(size * percentage // 100, 1)  # 0 would mean the whole card

    def means_whole_card(self, percentage: int) -> bool:
        """Whether no memory says the same: with a default memory it does not, and 100 is a percentage like any other."""
        return percentage == 100 and self.config.vgpu.default_memory == 0

    def unresolved(self, percentage: int, number: int, containers: int = 1) -> str:
        """Why a percentage of so many cards cannot become memory, as a part of a sentence; empty if it can.

        `containers` is how many of the pod request about as much.
        """
        if "percentage-to-memory" in self.context.effective.repairs_off:
            return "but the policy switches off the repair percentage-to-memory, and no node offers a percentage"
        if self.means_whole_card(percentage):
            return ""
        if self.cluster.fleet is None:
            return "but the fleet is not known (declare its cards in the policy under fleet.declared)"
        if not self.card_sizes:
            return "but the fleet has no card that the pod may use (declare one in the policy under fleet.declared)"
        if len(self.card_sizes) > 1 and self.cluster.policy.percentage.mixed_cards is MixedCards.DENY:
            shown = wording.sizes(self.card_sizes, self.config)
            return f"but the cards differ ({shown}) and the policy has percentage.mixedCards: deny"
        memory = self.memory_of(percentage)
        full = memory * containers > MAX_STATUS_UNITS
        return NO_ROOM if full and any([(one.slice_memory(number) or 0) >= memory for one in self.writing]) else ""

    def with_memory(self, memory: Mapping[DeviceRequest, int]) -> SliceRequest | None:
        """What the pod would need of the vGPU nodes with other amounts in some containers, 0 for whole cards; else as above."""
        slices = [each.with_memory(memory[each]) if each in memory else each for each in self.slices]
        found = slice_request(slices, self.constraints, self.cluster.target)
        return None if found is None else capped(found, self.context.denies)

    @computed_once
    def _trials(self) -> SearchBudget:
        """What the search may cost for all amounts that are tried."""
        return self.context.budget or SearchBudget()

    def may_fit(self, memory: Mapping[DeviceRequest, int]) -> bool:
        """Whether some node may take the pod with other amounts of vGPU memory in some containers."""
        found = self.with_memory(memory)
        if found is None or not self.cluster.knows_nodes:
            return True
        return may_take(found, self.eligible.candidates, self._trials)

    @property
    def sizeless(self) -> list[DeviceRequest]:
        """The vGPUs without memory and percentage, which get the default memory; none if there is no default."""
        if not self.config.vgpu.default_memory or "default-memory" in self.context.effective.repairs_off:
            return []
        return [one for one in self.slices if one.number and _SIZES.isdisjoint(one.written)]

    def lowered(self, wanted: Mapping[DeviceRequest, int]) -> Mapping[DeviceRequest, int]:
        """Memory of some containers, lowered to the most that one node may give to all of them.

        Nothing if the status of the pod has no room for that: a rule refuses it.
        """
        numbers = sorted({request.number or 1 for request in wanted})
        nodes = {tuple([one.slice_memory(number) or 0 for number in numbers]) for one in self.eligible.candidates}
        first: Mapping[DeviceRequest, int] = {}
        for memory in islice(sorted(nodes, reverse=True), MAX_TRIED):
            most = dict(zip(numbers, memory, strict=True))
            amounts = {request: min(amount, most[request.number or 1]) for request, amount in wanted.items()}
            if min(memory) > 0 and self.status_takes(amounts):
                if self.may_fit(amounts):
                    return amounts
                first = first or amounts
        return first

    def fits_safely(self, request: SliceRequest) -> bool:
        """Whether the scheduler does not miss a place for these slices on a node that is not in doubt."""
        fleet = self.cluster.known_fleet
        if fleet is None:
            return False
        nodes = _both(~fleet.vgpu.doubtful, request.constraints.nodes)
        return isinstance(judge(only_on(request, nodes), fleet.vgpu, self._trials), Fits)

    def takes_whole_card(self, request: DeviceRequest) -> bool:
        """Whether a request without memory would get a whole card: not in MIG mode, nor a default memory."""
        whole = {request: 0}
        return not request.config.default_memory and self.status_takes(whole) and self.may_fit(whole)

    def status_takes(self, memory: Mapping[DeviceRequest, int]) -> bool:
        """Whether the status of the pod has room for the units of its vGPU memory, with other amounts in some containers.

        It has if no kubelet that may get the pod writes the units.
        """
        if sum([memory.get(each, each.memory or 0) for each in self.slices]) <= MAX_STATUS_UNITS:
            return True
        if not self.cluster.knows_nodes:
            return not self.cluster.target.lists_units
        found = self.with_memory(memory)
        # Another rule refuses what cannot be read.
        return found is None or not may_take(found, self.writing, self._trials)

    def status_takes_less(self, request: Any, nodes: int | None) -> bool:
        """Whether the status has room for the units of a changed request on some nodes, and of one for less memory.

        Args:
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
        return not may_take(
            replace(request, needs=needs), self._writing(request.constraints._replace(nodes=nodes)), self._trials
        )

    @computed_once
    def writing(self) -> list[Candidate]:
        """The nodes whose kubelets write each unit of vGPU memory into the status of a pod, with the cards that it may use."""
        return self._writing(self.constraints)

    def _writing(self, constraints: Constraints) -> list[Candidate]:
        fleet, always = self.cluster.known_fleet, self.cluster.target.lists_units
        listing = -1 if always else fleet.vgpu.listing if fleet is not None else 0
        if fleet is None or not listing:
            return []
        left = eligible(constraints._replace(nodes=_both(listing, constraints.nodes)), fleet.vgpu)
        return [one for one in left.candidates if always or not one.shape.declared]

    @computed_once
    def unseen_nodes(self) -> tuple[tuple[UnseenNodes, int], ...]:
        """The nodes that may take the pod without giving it cards, each kind with those that its selector leaves, as bits."""
        fleet = self.cluster.known_fleet
        unseen = fleet.vgpu.unseen if fleet is not None else ()
        request = self.slice_request if unseen and len(self.requested) == 1 else None
        if fleet is None or request is None or not request.needs:
            return ()
        left = fleet.index.selected(self.view.selector) if self.view.selector is not None else -1
        return tuple(
            [(nodes, nodes.members & left) for nodes in unseen if nodes.members & left and nodes.take(request.totals)]
        )

    @computed_once
    def npus(self) -> list[NpuRequest]:
        """What the pod requests of Ascend NPUs, in the order of its containers."""
        if Family.ASCEND not in self.requested:
            return []
        return npu_requests(self, self.cluster.config.ascend, self.cluster.target)

    @property
    def names_known_resources(self) -> bool:
        """Whether the device config, Kubernetes or some node names every requested resource; False while nodes are unknown."""
        fleet = self.cluster.known_fleet
        return fleet is not None and self.foreign <= fleet.named

    @computed_once
    def unknown_names(self) -> list[UnknownName]:
        """Requested resources that look like a family's but have no meaning."""
        if self.names_known_resources:
            return []
        return unknown_names(self, self.cluster.config, self.cluster.fleet, self.cluster.collections.classes)

    @computed_once
    def others(self) -> Mapping[str, int]:
        """What the pod requests of other device plugins, of what known nodes list, each with these nodes, as bits."""
        fleet = self.cluster.known_fleet
        if fleet is None or self.foreign.isdisjoint(fleet.other_names):
            return {}
        listed = fleet.other_names
        found: dict[str, int] = {}
        for container in self.view.every_container():
            for part in (container.limits, container.requests):
                found |= {name: listed[name] for name in part if name in listed and quantity.whole(part[name]) != 0}
        if not found or not self.cluster.knows_offers:
            return {}
        classes = self.cluster.collections.classes
        elsewhere = set(classes.by_resource if classes is not None else ())
        if self.requests_family(Family.VGPU) and not fleet.vgpu.native and self.context.denies("family-mixed"):
            elsewhere.add(names.NVIDIA_GPU)  # refused already
        return {name: nodes for name, nodes in found.items() if name not in elsewhere}

    @computed_once
    def served_elsewhere(self) -> frozenset[str]:
        """The requested families of which a DeviceClass serves a name, or may: the nodes alone do not decide who gets devices.

        While not all DeviceClasses can be read, those are families whose devices no node has.
        """
        classes = self.cluster.collections.classes
        if classes is None:
            return frozenset()
        served = {amount.family for amount in self.amounts if amount.resource in classes.by_resource}
        fleet = self.cluster.known_fleet
        if fleet is not None and not classes.complete:
            served |= {family for family in self.requested if not fleet.by_family[family]}
        return frozenset(served)

    @computed_once
    def verdicts(self) -> tuple[JudgedRequest, ...]:
        """The verdict of each requested family, and of each kind of Ascend NPU; empty while the nodes are unknown.

        One node has to satisfy them all, and offer what the pod requests of other device plugins. If each of them fits some
        node, but no node fits all, one more verdict says so.
        """
        fleet = self.cluster.known_fleet
        return () if fleet is None else self._verdicts(fleet, None)

    @computed_once
    def certain_verdicts(self) -> tuple[JudgedRequest, ...]:
        """The verdicts without the nodes in doubt."""
        fleet = self.cluster.known_fleet
        if fleet is None:
            return ()
        doubtful = 0
        for family in self.requested:
            doubtful |= fleet.parts[family].doubtful
        return self._verdicts(fleet, ~doubtful) if doubtful else self.verdicts

    @computed_once
    def never(self) -> tuple[RefusedRequest, ...]:
        """The requests that no node can ever satisfy."""
        found = _nevers(self.verdicts)
        return tuple([refused for refused in found if self._unread(refused.family) is None]) if found else found

    @computed_once
    def doubts(self) -> tuple[Doubt, ...]:
        """What holds only without the nodes in doubt."""
        fleet = self.cluster.known_fleet
        if fleet is None or self.certain_verdicts is self.verdicts:
            return ()
        if found := _nevers(self.verdicts):
            return tuple(
                [Doubt(never, *node) for family, _, never in found if (node := self._unread(family)) is not None]
            )
        found = _nevers(self.certain_verdicts)
        node = self._able_in_doubt(fleet) if found else None
        return tuple([Doubt(refused.never, *node) for refused in found]) if node is not None else ()

    def facts(self, optional: OptionalFields) -> frozenset[str]:
        """What the pod has of all that rules may need; of a new pod also what the nodes decide."""
        found = super().facts(optional)
        if self.previous is not None or not self.requested:
            return found
        if self.never or self.doubts:
            found |= {PodFact.REFUSED}
        tight = any([isinstance(judged.verdict, FitsTightly) for judged in self.certain_verdicts])
        return found | {PodFact.TIGHT} if tight else found

    def refusals(self, rule: str) -> Iterator[Finding]:
        """The findings of a rule about what no node can give, in the words of the family, or no node that is not in doubt."""
        if not self.never:
            yield from [doubt.finding for doubt in self.doubts if doubt.never.reason.rule == rule]
        for refused in self.never:
            if refused.never.reason.rule == rule:
                for path, sentence in self.describe(refused):
                    yield Finding(path, sentence)

    def describe(self, refused: RefusedRequest) -> Iterator[tuple[str, str]]:
        """Fields, each with a sentence about what no node can give: the family's words."""
        family, request, never = refused
        fleet = self.cluster.known_fleet
        if never.reason is Reason.APART:
            of_families = [amount.resource for amount in self.amounts if amount.value]
            others, offered = [*islice(self.others, MAX_OTHERS)], fleet.offered if fleet is not None else {}
            requested = " and ".join(dict.fromkeys([*of_families, *others]))
            nodes = [f"node {wording.quoted(offered[name])} offers {name}" for name in others if name in offered]
            where = f" ({', '.join(nodes)})" if nodes else ""
            no_room = f"no node has room for the {requested} of the pod together, even empty"
            yield "spec.containers", f"{no_room}; make a pod for each kind of device{where}"
        elif fleet is not None:
            part, selector = fleet.parts[family], self.selector_for(family)
            yield from self.cluster.families[family].describe(
                Refusal(never=never, request=request, pod=self, part=part, selector=selector)
            )

    def selector_for(self, family: str) -> NodeSelector | None:
        """What the pod demands of its node's labels, if any node with devices of the family has them.

        Labels come and go, and the scheduler reports plainly that none matches: a pod that matches no node is judged by
        all. So it is if only declared nodes may match, whose labels are not known.
        """
        fleet, selector = self.cluster.known_fleet, self.view.selector
        if selector is None or fleet is None:
            return selector
        part = fleet.parts[family]
        return selector if not part.shapes or part.members & fleet.index.selected(selector) else None

    def members_for(self, family: str) -> int | None:
        """The nodes that this leaves, as bits; None for all."""
        if self.view.selector is None:
            return None
        selector, fleet = self.selector_for(family), self.cluster.fleet
        return None if selector is None or fleet is None else fleet.index.selected(selector)

    def requests_for(self, family: str) -> Sequence[Any]:
        """What the scheduler would serve of a family, each kind of device by itself."""
        found = self._requests.get(family)
        if found is None:
            found = self._requests[family] = self.cluster.families[family].requests(
                self, self.members_for(family), self.context.denies
            )
        return found

    def matches(self, family: str) -> bool:
        """Whether the pod's selector leaves a node with devices of a family; True if that is not known."""
        fleet, selector = self.cluster.known_fleet, self.view.selector
        if selector is None or fleet is None:
            return True
        shapes, nodes = fleet.by_family[family], fleet.index.selected(selector)
        return not shapes or any(shape.node_left(nodes, fleet.index) is not None for shape in shapes)

    def _verdicts(self, fleet: Fleet, members: int | None) -> tuple[JudgedRequest, ...]:
        """The verdicts on some nodes, given as bits; None for all."""
        found = self._each(fleet, members)
        if not found or (len(found) == 1 and not self.others) or _nevers(found):
            return found
        nodes = reduce(and_, self.others.values(), -1 if members is None else members)
        if not self._shares_node(fleet, nodes):
            return (*found, JudgedRequest(found[0].family, None, Never(Reason.APART)))
        return found

    def _each(self, fleet: Fleet, members: int | None, *, selected: bool = True) -> tuple[JudgedRequest, ...]:
        """The verdict on each request, on some nodes; of these on those that the pod's selector leaves, if it counts."""
        found = []
        budget, selects = self.context.budget, selected and self.view.selector is not None
        for name, family in self.cluster.families.items():
            if name in self.requested and name not in self.served_elsewhere:
                part = fleet.parts[name]
                nodes = _both(members, self.members_for(name)) if selects else members
                found += [
                    JudgedRequest(name, request, family.judge(request, part, nodes, budget))
                    for request in self.requests_for(name)
                ]
        return tuple(found)

    def _shares_node(self, fleet: Fleet, members: int) -> bool:
        """Whether one of some nodes may serve all families of the pod; for each alone there is one."""
        if {Family.VGPU, Family.GPUSHARE} <= self.requested.keys() and self.context.denies("family-mixed"):
            return True  # refused already

        def fits(cell: int) -> bool:
            return not _nevers(self._each(fleet, cell, selected=False))

        nonzero = {amount.family for amount in self.amounts if amount.value}
        without = _nevers(self._each(fleet, 0, selected=False))
        demanding = [refused.family for refused in without if refused.family in nonzero]
        parts = [fleet.parts[family] for family in dict.fromkeys(demanding)]
        alone = len(demanding) == 1
        if (
            not demanding
            or (alone and not self.others)
            or any(shape.declared for part in parts for shape in part.shapes)
        ):
            return True  # what else a declared node has is not known
        shared = reduce(and_, [part.members for part in parts], members)
        if self.view.selector is not None:
            shared = shared & fleet.index.selected(self.view.selector) or shared
        if alone:
            return fits(shared)
        cells = [shared]  # of nodes that are alike in all that the pod requests
        for shape in [shape for part in parts for shape in part.shapes if shape.members & shared]:
            cells = [some for cell in cells for some in (cell & shape.members, cell & ~shape.members) if some]
            if len(cells) > MAX_CELLS:
                return True
        return any(fits(cell) for cell in cells)

    def _unread(self, family: str) -> tuple[str, str] | None:
        """A node in doubt of which it is not known what devices it has, and why; None if there is none."""
        fleet = self.cluster.known_fleet
        if fleet is None or not fleet.parts[family].doubtful:
            return None
        found = fleet.parts[family].selected(self.members_for(family))
        return next(((node, shape.doubt) for shape, node in found if shape.doubt and not shape.devices), None)

    def _able_in_doubt(self, fleet: Fleet) -> tuple[str, str] | None:
        """A node in doubt that takes the pod, and why it is in doubt."""
        for family in self.requested:
            for shape, node in fleet.parts[family].selected(self.members_for(family)):
                if shape.doubt and not _nevers(self._verdicts(fleet, shape.members)):
                    return node, shape.doubt
        return None


def _both(some: int | None, others: int | None) -> int | None:
    return some if others is None else others if some is None else some & others


def _nevers(verdicts: Iterable[JudgedRequest]) -> tuple[RefusedRequest, ...]:
    return tuple(
        [RefusedRequest(family, request, found) for family, request, found in verdicts if isinstance(found, Never)]
    )
