"""Which nodes and cards a pod's words leave: mode, card type, UUID, node labels.

Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/utils.go` (checkGPUtype, gpuUUIDFilter).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from webhook import names
from webhook.devices.selectors import NodeSelector
from webhook.devices.target import Target
from webhook.pod.view import PodView


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the pod's words demand of a node and its cards; None and empty demand nothing.

    Attributes:
        mode: must equal the node's mode, byte for byte.
        use_types, nouse_types: words matched, ignoring case, as substrings of the card type; `nouse_types` is read only
            without `use_types`. An empty word matches every card.
        use_uuids, nouse_uuids: identities, compared exactly.
        nodes: what the pod demands of its node's labels.
    """

    mode: str | None = None
    use_types: tuple[str, ...] | None = None
    nouse_types: tuple[str, ...] | None = None
    use_uuids: frozenset[str] = frozenset()
    nouse_uuids: frozenset[str] = frozenset()
    nodes: NodeSelector | None = None

    @property
    def names_uuids(self) -> bool:
        """Tell whether single cards are named."""
        return bool(self.use_uuids or self.nouse_uuids)

    @property
    def words(self) -> int:
        """How many card types and single cards are named."""
        types = len(self.use_types or ()) + len(self.nouse_types or ())
        return types + len(self.use_uuids) + len(self.nouse_uuids)

    @property
    def refused_uuids(self) -> frozenset[str]:
        """Deny beats allow, and a card without an identity matches no list."""
        return self.nouse_uuids | {""} if self.names_uuids else frozenset()

    def accepts_type(self, card_type: str) -> bool:
        """Apply the scheduler's card type rule."""
        if "NVIDIA" not in card_type:
            return False
        upper = card_type.upper()
        if self.use_types is not None:
            return any(word in upper for word in self.use_types)
        if self.nouse_types is not None:
            return not any(word in upper for word in self.nouse_types)
        return True


UNCONSTRAINED = Constraints()


def read_constraints(pod: PodView, target: Target, nodes: NodeSelector | None = None) -> Constraints:
    """Read a pod's annotations as the target version of the scheduler does, beside what it demands of its node."""
    if names.AUTHOR_ANNOTATIONS.isdisjoint(pod.annotations):
        return UNCONSTRAINED if nodes is None else Constraints(nodes=nodes)
    use, nouse = pod.annotation(names.USE_GPUTYPE), pod.annotation(names.NOUSE_GPUTYPE)
    return Constraints(
        mode=pod.annotation(names.VGPU_MODE),
        use_types=None if use is None else type_words(use),
        nouse_types=None if nouse is None else type_words(nouse),
        use_uuids=_uuids(pod.annotation(names.USE_GPUUUID)) if target.reads_uuids else frozenset(),
        nouse_uuids=_uuids(pod.annotation(names.NOUSE_GPUUUID)) if target.reads_uuids else frozenset(),
        nodes=nodes,
    )


def type_words(text: str) -> tuple[str, ...]:
    """Split a gputype annotation as the scheduler does: at commas, nothing trimmed, upper case; each word once."""
    return tuple(dict.fromkeys(text.upper().split(",")))


def clean_words(text: str) -> list[str]:
    """The words that the author of a gputype annotation meant: trimmed, empty ones dropped."""
    return [word for word in (part.strip() for part in text.split(",")) if word]


def _uuids(text: str | None) -> frozenset[str]:
    return frozenset(_trimmed(text.split(","))) if text else frozenset()


def _trimmed(parts: Iterable[str]) -> Iterable[str]:
    return (part.strip() for part in parts if part.strip())
