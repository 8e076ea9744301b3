"""The vGPU memory of a pod: what a percentage of a card is, and which other amounts its nodes and its status have room for."""

from collections.abc import Mapping
from functools import cached_property
from itertools import islice

from webhook.devices import wording
from webhook.devices.families import Family, Role
from webhook.devices.requests import MAX_STATUS_UNITS, Amount, DeviceRequest
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.eligibility import Candidate, Constraints, Eligible, eligible
from webhook.devices.vgpu.feasibility import SliceRequest, capped, may_take, slice_request
from webhook.pod.view import Container
from webhook.rules.choices import MixedCards
from webhook.rules.context import Context

_SIZES = {Role.MEMORY, Role.PERCENTAGE}
PERCENTAGES = frozenset(range(1, 101))  # a range compares None with each of its numbers
NO_ROOM = f"which is more units than the {MAX_STATUS_UNITS} that the status of a pod has room for"
MAX_TRIED = 16  # nodes that differ in what they give


class VgpuMemory:
    """The vGPU memory of a pod; other amounts are given by the requests of their containers, 0 for whole cards.

    Attributes:
        slices: the vGPU requests of the regular containers.
        constraints: what the pod demands of nodes and cards.
        eligible: what that leaves of the fleet.
        context: the context of the review.
    """

    def __init__(self, slices: list[DeviceRequest], constraints: Constraints, left: Eligible, context: Context) -> None:
        self.slices = slices
        self.constraints = constraints
        self.eligible = left
        self.context = context
        self.cluster = context.cluster

    # --- percentages -------------------------------------------------------------------------------------------------

    @cached_property
    def _by_percentage(self) -> frozenset[Container]:
        """The containers that request a percentage of a card."""
        return frozenset([request.container for request in self.slices if request.percentage in PERCENTAGES])

    def is_replaced(self, amount: Amount) -> bool:
        """Whether an amount is memory beside a percentage, which wins: the scheduler does not read the memory."""
        of_vgpu = (amount.family, amount.role) == (Family.VGPU, Role.MEMORY)
        return of_vgpu and amount.container in self._by_percentage

    @cached_property
    def card_sizes(self) -> list[int]:
        """The different sizes of the cards that the pod may use, ascending."""
        return sorted({card.memory for card in self.eligible.cards})

    def of(self, percentage: int) -> int:
        """The memory that a percentage is; 0 if no card is known."""
        largest = self.cluster.policy.percentage.mixed_cards is MixedCards.LARGEST
        size = self.card_sizes[-1 if largest else 0] if self.card_sizes else 0
        return size and max(size * percentage // 100, 1)  # 0 would mean the whole card

    def means_whole_card(self, percentage: int) -> bool:
        """Whether no memory says the same: with a default memory it does not, and 100 is a percentage like any other."""
        return percentage == 100 and self.cluster.config.vgpu.default_memory == 0

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
            shown = wording.sizes(self.card_sizes, self.cluster.config)
            return f"but the cards differ ({shown}) and the policy has percentage.mixedCards: deny"
        memory = self.of(percentage)
        full = memory * containers > MAX_STATUS_UNITS
        return NO_ROOM if full and any([(one.slice_memory(number) or 0) >= memory for one in self.writing]) else ""

    # --- other amounts -----------------------------------------------------------------------------------------------

    @property
    def default(self) -> Mapping[DeviceRequest, int]:
        """The default memory of the vGPUs without memory and percentage, within the policy's limits; empty if there is none.

        Where the limits ask for more than any card has, only whole cards are within them.
        """
        vgpu, effective = self.cluster.config.vgpu, self.context.effective
        if not vgpu.default_memory or "default-memory" in effective.repairs_off:
            return {}
        default = effective.within_limits(Role.MEMORY, vgpu.default_memory, vgpu.memory_factor)
        without = [one for one in self.slices if one.number and _SIZES.isdisjoint(one.written)]
        raised = default > vgpu.default_memory
        return {one: default for one in without if not (raised and self.eligible.has_less(one.number or 1, default))}

    def _with(self, memory: Mapping[DeviceRequest, int]) -> SliceRequest | None:
        """What the pod would need of the vGPU nodes with other amounts; None if a rule refuses one of its quantities."""
        slices = [each.with_memory(memory[each]) if each in memory else each for each in self.slices]
        changed = slice_request(slices, self.constraints, self.cluster.target)
        return None if changed is None else capped(changed, self.context.denies)

    @cached_property
    def trials(self) -> SearchBudget:
        """What the search may cost for all amounts that are tried."""
        return self.context.budget or SearchBudget()

    def may_fit(self, memory: Mapping[DeviceRequest, int]) -> bool:
        """Whether some node may take the pod with other amounts in some containers."""
        changed = self._with(memory)
        if changed is None or not self.cluster.knows_nodes:
            return True
        return may_take(changed, self.eligible.candidates, self.trials)

    def lowered(self, wanted: Mapping[DeviceRequest, int]) -> Mapping[DeviceRequest, int]:
        """Amounts of some containers, lowered to the most that one node may give to all of them.

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

    def takes_whole_card(self, request: DeviceRequest) -> bool:
        """Whether a request without memory would get a whole card: not in MIG mode, nor with a default memory."""
        whole = {request: 0}
        return not request.config.default_memory and self.status_takes(whole) and self.may_fit(whole)

    # --- the status --------------------------------------------------------------------------------------------------

    def status_takes(self, memory: Mapping[DeviceRequest, int]) -> bool:
        """Whether the status of the pod has room for the units of its memory, with other amounts in some containers.

        It has if no kubelet that may get the pod writes the units.
        """
        if sum([memory.get(each, each.memory or 0) for each in self.slices]) <= MAX_STATUS_UNITS:
            return True
        if not self.cluster.knows_nodes:
            return not self.cluster.target.lists_units
        changed = self._with(memory)
        # Another rule refuses what cannot be read.
        return changed is None or not may_take(changed, self.writing, self.trials)

    @cached_property
    def writing(self) -> list[Candidate]:
        """The nodes whose kubelets write each unit into the status of a pod, with the cards that it may use."""
        return self.writing_on(self.constraints)

    def writing_on(self, constraints: Constraints) -> list[Candidate]:
        """Such nodes under other constraints."""
        fleet, always = self.cluster.known_fleet, self.cluster.target.lists_units
        listing = -1 if always else fleet.vgpu.listing if fleet is not None else 0
        if fleet is None or not listing:
            return []
        nodes = listing if constraints.nodes is None else listing & constraints.nodes
        left = eligible(constraints._replace(nodes=nodes), fleet.vgpu)
        return [one for one in left.candidates if always or not one.shape.declared]
