"""How the fleet rules describe what no node can give a pod of a family other than vgpu."""

from dataclasses import dataclass

from webhook import names
from webhook.devices import registry
from webhook.devices.verdict import Never
from webhook.pod.view import Container
from webhook.rules import wording
from webhook.rules.reviewed_pod import ReviewedPod


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What no node can give, with the parts of a sentence about it.

    Attributes:
        family: the family.
        never: its verdict.
        pod: the pod.
    """

    family: str
    never: Never
    pod: ReviewedPod

    @property
    def path(self) -> str:
        """The field: that of the only container that requests the resource, or of all."""
        resource = self.never.resource
        if resource == names.VNPU_MODE:
            return wording.annotation_path(resource)
        container = self._container
        return wording.resource_path(container, resource) if container is not None else "spec.containers"

    @property
    def who(self) -> str:
        """The only container that requests the resource, or all of them together."""
        container = self._container
        return (
            f"{wording.container(container)} requests"
            if container is not None
            else "the pod's containers together request"
        )

    @property
    def device(self) -> str:
        """What the family has on a node."""
        return next(family.device for family in registry.FAMILIES if family.id == self.family)

    @property
    def largest_node(self) -> str:
        """The node that has most."""
        return f"the largest node{self.left()} ({self.never.node})"

    def left(self, before: str = "") -> str:
        """The part of a sentence that limits it to the nodes that the pod's selector leaves."""
        return wording.left(self.pod.selector_for(self.family), before)

    @property
    def _container(self) -> Container | None:
        if self.never.container is not None:
            return self.never.container
        found = [amount.container for amount in self.pod.amounts if amount.resource == self.never.resource]
        return found[0] if len(found) == 1 else None
