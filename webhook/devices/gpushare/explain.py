"""A pod on the gpushare nodes of one shape."""

from collections.abc import Iterator, Sequence

from webhook import names
from webhook.devices.explainer import Explainer, Taken
from webhook.devices.families import Family
from webhook.devices.gpushare.family import MEMORY, NUMBER, left
from webhook.devices.model import Device
from webhook.devices.nearest import MAX_CONTAINERS, Reducible, amounts_of_regular, reducible
from webhook.devices.requests import DevicePod, PodAmounts, total
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.volcano import scheduler


class GpushareExplainer(Explainer[PodAmounts, Device]):
    """Explains gpushare."""

    def switches_for(self, pod: DevicePod) -> Sequence[str]:
        """Each serves one resource: of other pods the scheduler asks no card, and binds them without one (HasDeviceRequest)."""
        served = {scheduler.SHARING: MEMORY, scheduler.NUMBER: NUMBER}
        return [switch for switch, resource in served.items() if total(pod, resource).served]

    def is_served(self, request: PodAmounts) -> bool:
        """Whether an amount is more than 0."""
        return any(amount.value for amount in request.amounts if amount.family is Family.GPUSHARE)

    def missing(self, _request: PodAmounts, _part: AnyPart) -> str:
        """The node offers neither of the two names."""
        return f"no node of the fleet offers {names.GPUSHARE_NAMES}"

    def taken(self, request: PodAmounts, part: AnyPart) -> tuple[tuple[Taken, ...], str]:
        """Memory of the card that has most left, or the first whole cards; of both, the second is written on the pod."""
        cards = part.shapes[0].devices
        containers = {a.container for a in request.amounts if a.family is Family.GPUSHARE and a.value}
        who = containers.pop() if len(containers) == 1 else None
        memory, number = total(request, MEMORY).served, total(request, NUMBER).served
        first = max(range(len(cards)), key=lambda at: left(cards[at])) if memory else None
        if first is not None and not (number and self.family.target.allocates_both):
            return (Taken(who, first, memory),), ""
        whole = [at for at, card in enumerate(cards) if not card.used[0] and at != first][:number]
        return tuple(
            Taken(who, at, memory or cards[at].memory, label="" if memory else "whole card") for at in whole
        ), ""

    def reducible(self, request: PodAmounts, _shape: AnyShape) -> Iterator[Reducible[PodAmounts]]:
        """The amounts of the first containers; a count of 0 requests nothing, and is refused."""
        for amount in amounts_of_regular(request, Family.GPUSHARE)[: 2 * MAX_CONTAINERS]:
            yield reducible(request, amount, range(1, amount.value or 0))
