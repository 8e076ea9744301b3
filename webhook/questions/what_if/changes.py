"""What somebody who owns cards may change: nodes that come and go, and cards that are registered in another way."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook import names
from webhook.devices.families import Family
from webhook.devices.model import CARD_CORES
from webhook.devices.nodes import GATE_NAMES, Node
from webhook.devices.vgpu.eligibility import MODES
from webhook.devices.vgpu.fleet import offered_names
from webhook.errors import ConfigError
from webhook.live.devices import LiveCluster
from webhook.live.objects import NodeStatus, is_passing
from webhook.live.reader import LiveState
from webhook.rules.policy_keys import DeclaredNodes
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.trial import registered, try_out, with_handshake

MAX_ADDED = 100  # nodes of one addition
HOSTNAME = "kubernetes.io/hostname"

_ADDITION = re.compile(r"(\S+)(?:\s+x\s*(\d{1,3}))?((?:\s+[^\s=]+=\S*)*)")


class Addition(NamedTuple):
    """Equal nodes that are added.

    Attributes:
        shape: the name of an entry of the policy's `fleet.declared`, the name of a node, or KEY=VALUE, a label of nodes.
        number: how many.
        labels: that they have beside those of the node whose copies they are.
    """

    shape: str
    number: int = 1
    labels: Mapping[str, str] = {}


def parse_addition(text: str) -> Addition:
    """Read `gpu-pool x 2`, `gpu-a`, `pool=a100 x 3 zone=b`.

    Raises:
        ValueError: it is not of this form.
    """
    match = _ADDITION.fullmatch(text.strip())
    number = int(match[2] or 1) if match is not None else 0
    if match is None or not 1 <= number <= MAX_ADDED:
        raise ValueError(
            f"{text!r} is not SHAPE, SHAPE x N or SHAPE x N LABEL=VALUE with N from 1 to {MAX_ADDED}; SHAPE is the name of a "
            "declared node or of a node, or a label of nodes as KEY=VALUE"
        )
    labels = dict(label.split("=", 1) for label in match[3].split())
    return Addition(match[1], number, labels)


def parse_mode(text: str) -> tuple[str, str]:
    """Read `NODE=mig`.

    Raises:
        ValueError: it is not of this form.
    """
    node, _, mode = text.partition("=")
    if not node or mode not in MODES:
        raise ValueError(f"{text!r} is not NODE=MODE; the modes are {', '.join(MODES)}")
    return node, mode


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """What is changed, all at once.

    Attributes:
        add: the nodes that come.
        drain: the names of the nodes that go.
        split: into how many slices each vGPU card is split; None leaves it.
        factor: the MiB in a unit of memory; None leaves it.
        modes: how nodes share their vGPU cards from now on, by the name of the node.
        target: settings of the policy with other versions.
    """

    add: tuple[Addition, ...] = ()
    drain: tuple[str, ...] = ()
    split: int | None = None
    factor: int | None = None
    modes: Mapping[str, str] = field(default_factory=dict)
    target: tuple[str, ...] = ()

    @property
    def reads_cards_anew(self) -> bool:
        """Whether pods that stay where they are may lose what they hold."""
        return bool(self.split or self.factor or self.modes or self.target)

    def applied(self, state: LiveState, inputs: SnapshotInputs) -> LiveState:
        """A cluster after the change: pods keep what they hold, those of drained nodes are gone.

        Args:
            state: the cluster at one moment.
            inputs: what its settings were built from.

        Raises:
            ConfigError: there is no such node or shape, or the nodes are not known.
        """
        known = {node.name for node in inputs.nodes or ()}
        for name in (*self.drain, *self.modes):
            if name not in known:
                raise ConfigError(
                    f"there is no node {name} with devices; `vgpu-webhook usage` lists those that there are"
                )
        added = _Additions(state.live, inputs)
        for addition in self.add:
            added.add(addition)
        nodes = [node for node in (*(inputs.nodes or ()), *added.nodes) if node.name not in self.drain]
        tried = try_out(replace(inputs, nodes=nodes), self.target, self.split)
        vgpu = inputs.config.vgpu
        anew = [registered(one, vgpu, factor=self.factor, mode=self.modes.get(one.name)) for one in tried.nodes or ()]
        config = replace(inputs.config, vgpu=replace(vgpu, memory_factor=self.factor or vgpu.memory_factor))
        tried = replace(tried, nodes=anew, config=config)
        bound = [pod for pod in state.objects.bound if pod.node not in self.drain]
        live = LiveCluster(tried, tried.snapshot(), bound, None if self.reads_cards_anew else state.live.memo)
        return LiveState(live.with_statuses({**state.live.statuses, **added.statuses}), state.objects)


class _Additions:
    """The nodes that come.

    Attributes:
        nodes: themselves.
        statuses: what keeps pods off them: the lasting taints of the nodes whose copies they are.
    """

    def __init__(self, live: LiveCluster, inputs: SnapshotInputs) -> None:
        self.nodes: list[Node] = []
        self.statuses: dict[str, NodeStatus] = {}
        self._live = live
        self._inputs = inputs
        self._names = {node.name for node in inputs.nodes or ()}

    def add(self, addition: Addition) -> None:
        """Make the nodes of one addition."""
        shape, number, labels = addition
        declared = next((entry for entry in self._inputs.policy.fleet.declared if entry.name == shape), None)
        original = self._declared(declared) if declared is not None else self._existing(shape)
        status = self._live.statuses.get(original.name, NodeStatus())
        base = f"{shape.partition('=')[2] or shape}-added"
        fresh = (name for at in range(1, len(self._names) + number + 1) if (name := f"{base}-{at}") not in self._names)
        for name in [next(fresh) for _ in range(number)]:
            self._names.add(name)
            self.nodes.append(_copy(original, name, labels))
            taints = tuple(taint for taint in status.taints if not is_passing(taint[0]))
            self.statuses[name] = NodeStatus(taints=taints)

    def _existing(self, shape: str) -> Node:
        """The node of a name, or the first of those with a label, which have to be alike."""
        key, equals, value = shape.partition("=")
        nodes = list(enumerate(self._inputs.nodes or ()))
        alike = [(at, node) for at, node in nodes if (node.labels.get(key) == value if equals else node.name == shape)]
        if not alike:
            raise ConfigError(
                f"--add {shape}: neither the policy's fleet.declared nor the cluster has it; name a declared node, a node with "
                f"devices, or a label of such nodes as KEY=VALUE{_copies(shape)}"
            )
        kinds = {self._kind(at) for at, _ in alike}
        if len(kinds) > 1:
            raise ConfigError(f"--add {shape}: nodes with this label are of {len(kinds)} kinds; name one of the nodes")
        return alike[0][1]

    def _kind(self, number: int) -> tuple[int, ...]:
        parts = self._live.fleet.parts.values()
        return tuple(id(shape) for part in parts for shape in part.shapes if shape.members >> number & 1)

    def _declared(self, entry: DeclaredNodes) -> Node:
        if entry.family != Family.VGPU.value:
            raise ConfigError(f"--add {entry.name}: only declared vgpu nodes can be added; name a node of this kind")
        inputs = self._inputs
        kinds = [(kind, kind.type if "NVIDIA" in kind.type else f"NVIDIA-{kind.type}") for kind in entry.cards]
        cards = [(kind, card_type) for kind, card_type in kinds for _ in range(kind.count)]
        register = "".join(
            [f"{at},{kind.split},{kind.memory},{type_},true,{entry.mode}:" for at, (kind, type_) in enumerate(cards)]
        )
        amounts = sum(kind.split for kind, _ in cards), sum(kind.memory for kind, _ in cards), CARD_CORES * len(cards)
        number, cores, memory = GATE_NAMES
        own = dict(zip((number, memory, cores, *offered_names(inputs.config.vgpu)), amounts * 2, strict=True))
        node = Node(entry.name, {}, {names.NODE_VGPU_REGISTER: register}, own, own)
        return with_handshake(node, inputs.policy.target.facts())


def _copy(node: Node, name: str, labels: Mapping[str, str]) -> Node:
    """Another node of the same shape; its cards have UUIDs of their own."""
    register = node.annotations.get(names.NODE_VGPU_REGISTER, "")
    cards = [",".join((f"{name}-{at}", *entry.split(",")[1:])) for at, entry in enumerate(_entries(register))]
    annotations = {**node.annotations, names.NODE_VGPU_REGISTER: "".join([f"{card}:" for card in cards])}
    labels = {**node.labels, HOSTNAME: name, **labels}
    return replace(node, name=name, labels=labels, annotations=annotations if cards else node.annotations)


def _entries(register: str) -> Sequence[str]:
    return [entry for entry in register.split(":") if "," in entry]


def _copies(shape: str) -> str:
    """How to write copies, if that is what a name like `gpu-b:2` means."""
    name, colon, number = shape.rpartition(":")
    return f"; for copies write '{name} x {number}'" if colon and number.isdecimal() else ""
