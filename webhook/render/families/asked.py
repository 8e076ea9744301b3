"""A pod as one family sees it, ready to be explained."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webhook.devices.explanation import MAX_SHAPES
from webhook.devices.families import Family, Role
from webhook.devices.fleet import Fleet
from webhook.devices.requests import DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.shapes import Shape
from webhook.pod.view import REGULAR
from webhook.render.families.told import PodExplanation, Told
from webhook.rules.base import Context
from webhook.rules.facts import selector, written_selector


@dataclass(frozen=True, slots=True)
class PodAsked:
    """A pod that asks for devices of a family.

    Attributes:
        path: where it stands in its object; empty for a pod itself.
        pod: the pod.
        context: what was reviewed.
        fleet: the fleet.
        family: the family.
    """

    path: str
    pod: DevicePod
    context: Context
    fleet: Fleet
    family: Family

    @property
    def nodes(self) -> NodeSelector | None:
        """What the pod demands of its node's labels, as the rules read it."""
        return selector(self.pod, self.context, self.family)

    @property
    def usable(self) -> bool:
        """Whether the family's quantities can be counted with."""
        amounts = [amount for amount in self.pod.amounts if amount.family is self.family]
        zero = any(a.value == 0 and a.role is Role.NUMBER and a.container.kind == REGULAR for a in amounts)
        return not zero and all(amount.value is not None for amount in amounts)

    @property
    def several(self) -> bool:
        """Whether several containers ask, so that a change has to name its own."""
        return len(self.pod.asked[self.family]) > 1

    def explained(
        self,
        told: Iterable[Told] | None,
        shapes: Sequence[Shape],
        missing: str,
        skipped: Iterable[tuple[str, str]] = (),
        chip: str = "",
    ) -> PodExplanation:
        """The whole explanation; `told` is None if the quantities have to be put right first."""
        nodes, written = self.nodes, written_selector(self.pod)
        return PodExplanation(
            path=self.path,
            family=self.family,
            told=None if told is None else tuple(told),
            more=len(shapes) - MAX_SHAPES,
            missing="" if shapes else missing,
            index=self.fleet.index,
            nodes=nodes,
            ignored=written.words if written is not None and nodes is None and shapes else "",
            skipped=tuple(skipped),
            chip=chip,
        )
