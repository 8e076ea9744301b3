"""The fleet: what every family has on the nodes, which nodes a selector leaves, and which take all that a pod requests."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from webhook import names
from webhook.devices import registry
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.devices.nodes import Index, Node, bits
from webhook.devices.registry import Families
from webhook.devices.requests import DevicePod
from webhook.devices.shapes import AnyPart, AnyShape, alike
from webhook.devices.verdict import Fits, FitsTightly, Never, Reason, SearchBudget, Verdict
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.pod.selectors import NodeSelector
from webhook.volcano.target import Target

MAX_GROUPS = 64  # of nodes that are alike in all that a pod of several families requests; with more, it may fit


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every node with devices.

    Attributes:
        families: the families, by their ids.
        parts: what each family has there.
        index: which nodes a selector leaves.
        complete: False if the real nodes are not known, only declared ones: then nothing can be ruled out.
        other_names: resources of some node that the device config does not name, each with the nodes that list it, as bits.
        named: every resource that the device config or some node names, and Kubernetes' own.
        offered: the resources that no family of the device config has, each with the first node that offers some.
        by_family: the shapes of each family.
        nodes: how many real nodes have usable devices.
        digest: changes when a shape does; labels and numbers of nodes do not enter.
    """

    families: Families = field(repr=False)
    parts: Mapping[str, AnyPart]
    index: Index
    complete: bool
    other_names: Mapping[str, int]
    named: frozenset[str]
    offered: Mapping[str, str]
    by_family: Mapping[str, tuple[AnyShape, ...]] = field(init=False)
    nodes: int = field(init=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        derive = object.__setattr__  # the dataclass is frozen
        by_family = {family: part.shapes for family, part in self.parts.items()}
        shapes = by_family.values()
        members = reduce(or_, (shape.members for some in shapes for shape in some), 0)
        text = repr([[shape.state for shape in some] for some in shapes])
        text += "".join(part.identities for part in self.parts.values())
        text += "".join(sorted(self.other_names))
        derive(self, "by_family", MappingProxyType(by_family))
        derive(self, "nodes", members.bit_count())
        derive(self, "digest", hashlib.sha256(text.encode()).hexdigest()[:12])

    @property
    def vgpu(self) -> VgpuFleet:
        """The nodes with vGPUs, for the rules about them."""
        return cast("VgpuFleet", self.parts[Family.VGPU])

    def nodes_for(self, family: str, selector: NodeSelector | None) -> int | None:
        """The nodes that a pod's selector leaves, as bits; None for all, also if it leaves none with devices of the family.

        Labels come and go, and the scheduler reports plainly that none matches: a pod that matches no node is judged by
        all. So it is if only declared nodes may match, whose labels are not known.
        """
        if selector is None:
            return None
        part, selected = self.parts[family], self.index.selected(selector)
        return None if self.complete and part.shapes and not part.members & selected else selected


def build_fleet(
    nodes: Iterable[Node] | None,
    config: DeviceConfig,
    target: Target,
    declared: Mapping[str, tuple[AnyShape, ...]] = MappingProxyType({}),
) -> Fleet:
    """Collapse nodes into shapes, as the target version of the scheduler sees them.

    Args:
        nodes: None if they are not known; the fleet is then incomplete.
        config: the device config.
        target: for what the scheduler reads.
        declared: shapes that may be scaled up from zero, by family.
    """
    known = tuple(nodes or ())
    index = Index(known)
    families = registry.bind(config, target)
    others: dict[str, list[int]] = {}
    for number, node in enumerate(known):
        for name in {**node.capacity, **node.allocatable}:
            if name not in config.roles:
                others.setdefault(name, []).append(number)
    return Fleet(
        families=families,
        parts={family.id: family.build(known, index, declared.get(family.id, ())) for family in families.values()},
        index=index,
        complete=nodes is not None,
        other_names={name: bits(numbers) for name, numbers in others.items()},
        named=names.NATIVE_RESOURCES.union(config.roles, others),
        offered={
            name: node.name
            for node in reversed(known)
            for name, amount in node.allocatable.items()
            if amount and name not in config.roles
        },
    )


# --- all that a pod requests of one node ------------------------------------------------------------------------------

# The id of a family, one of its requests (None: all of the pod together), and the verdict.
_Judged = tuple[str, Any, Verdict]


class RefusedRequest(NamedTuple):
    """A request that no node can ever serve, with its family and the verdict."""

    family: str
    request: Any
    never: Never


class Doubt(NamedTuple):
    """What refuses a pod without the nodes in doubt, one such node that takes it, and why it is in doubt."""

    never: Never
    node: str
    why: str


class FleetPlacement(NamedTuple):
    """Where the scheduler cannot place a pod although the nodes are empty; nothing while the nodes are not known.

    Attributes:
        never: the requests that no node can ever satisfy.
        doubts: what holds only without the nodes in doubt.
        tight: the placements that the scheduler may miss, without the nodes in doubt.
    """

    never: tuple[RefusedRequest, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    tight: tuple[FitsTightly, ...] = ()


UNREFUSED = FleetPlacement()


class WholeRequest(NamedTuple):
    """All that a pod requests of one node.

    Attributes:
        pod: the pod.
        requests: by families about which the nodes alone decide, each kind of device by itself.
        others: what it requests of other device plugins, each with the nodes that list it, as bits.
        denies: whether a rule refuses pods in the pod's namespace.
        budget: what the search may cost, all requests together; None bounds each alone.
    """

    pod: DevicePod
    requests: Mapping[str, Sequence[Any]]
    others: Mapping[str, int]
    denies: Callable[[str], bool]
    budget: SearchBudget | None

    def placed_on(self, fleet: Fleet) -> FleetPlacement:
        """Where the pod can be placed.

        One node has to satisfy all requests, and offer what the pod requests of other device plugins. If each of them fits
        some node, but no node fits all, the reason is APART.
        """
        judged, doubtful = self._judged(fleet, None), 0
        for family in self.pod.requested:
            doubtful |= fleet.parts[family].doubtful
        if not doubtful:
            return FleetPlacement(_refused(judged), (), _tight(judged)) if judged else UNREFUSED
        certain, refused = self._judged(fleet, ~doubtful), _refused(judged)
        nodes = [self._unknown_node(fleet, each.family) for each in refused]
        never = tuple([each for each, node in zip(refused, nodes, strict=True) if node is None])
        if not refused and (refused := _refused(certain)):
            nodes = [self._able_in_doubt(fleet)] * len(refused)
        pairs = zip(refused, nodes, strict=True)
        doubts = tuple([Doubt(each.never, *node) for each, node in pairs if node is not None])
        return FleetPlacement(never, doubts, _tight(certain))

    def _judged(self, fleet: Fleet, members: int | None) -> list[_Judged]:
        """The verdicts other than Fits on some nodes, as bits; None: on all nodes."""
        judged, number = self._each(fleet, members), sum(map(len, self.requests.values()))
        if not number or (number == 1 and not self.others) or _refused(judged):
            return judged
        nodes = reduce(and_, self.others.values(), -1 if members is None else members)
        if not self._shares_node(fleet, nodes):
            judged.append((next(filter(self.requests.get, self.requests)), None, Never(Reason.APART)))
        return judged

    def _each(self, fleet: Fleet, members: int | None, *, selected: bool = True) -> list[_Judged]:
        """The verdict on each request that does not fit some nodes, or those of them that the pod's selector leaves."""
        selector = self.pod.view.selector if selected else None
        judged: list[_Judged] = []
        for name, requests in self.requests.items():
            family, part, nodes = fleet.families[name], fleet.parts[name], members
            if selector is not None and (left := fleet.nodes_for(name, selector)) is not None:
                nodes = left if members is None else members & left
            for request in requests:
                verdict = family.judge(request, part, nodes, self.budget)
                if not isinstance(verdict, Fits):
                    judged.append((name, request, verdict))
        return judged

    def _shares_node(self, fleet: Fleet, members: int) -> bool:
        """Whether one of some nodes may serve all families of the pod; for each alone there is one."""
        if {Family.VGPU, Family.GPUSHARE} <= self.pod.requested.keys() and self.denies("family-mixed"):
            return True  # refused already
        nonzero = {amount.family for amount in self.pod.amounts if amount.value}
        without = _refused(self._each(fleet, 0, selected=False))
        demanding = [refused.family for refused in without if refused.family in nonzero]
        parts, alone = [fleet.parts[family] for family in dict.fromkeys(demanding)], len(demanding) == 1
        if not parts or (alone and not self.others) or any([shape.declared for part in parts for shape in part.shapes]):
            return True  # what else a declared node has is not known
        shared = reduce(and_, [part.members for part in parts], members)
        if (selector := self.pod.view.selector) is not None:
            shared = shared & fleet.index.selected(selector) or shared
        groups = [shared] if alone else alike(shared, parts, MAX_GROUPS)
        return groups is None or any(not _refused(self._each(fleet, group, selected=False)) for group in groups)

    def _unknown_node(self, fleet: Fleet, family: str) -> tuple[str, str] | None:
        """A node in doubt of which it is not known what devices it has, and why; None if there is none."""
        return next(((node, shape.doubt) for shape, node in self._in_doubt(fleet, family) if not shape.devices), None)

    def _able_in_doubt(self, fleet: Fleet) -> tuple[str, str] | None:
        """A node in doubt that takes the pod, and why it is in doubt."""
        for shape, node in self._in_doubt(fleet, *self.pod.requested):
            if not _refused(self._judged(fleet, shape.members)):
                return node, shape.doubt
        return None

    def _in_doubt(self, fleet: Fleet, *families: str) -> Iterator[tuple[AnyShape, str]]:
        """The shapes in doubt of which the pod's selector leaves a node, each with such a node."""
        for family in families:
            left = fleet.parts[family].selected(fleet.nodes_for(family, self.pod.view.selector))
            yield from [(shape, node) for shape, node in left if shape.doubt]


def _refused(judged: Iterable[_Judged]) -> tuple[RefusedRequest, ...]:
    return tuple([RefusedRequest(name, of, verdict) for name, of, verdict in judged if isinstance(verdict, Never)])


def _tight(judged: Iterable[_Judged]) -> tuple[FitsTightly, ...]:
    return tuple([one[2] for one in judged if isinstance(one[2], FitsTightly)])
