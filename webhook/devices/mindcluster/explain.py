"""Explains a pod to MindCluster nodes: which template or chips it gets, or what refuses it and what would help.

Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`, `utils.go`.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.drawing import (
    AI_CORES,
    MAX_CARDS,
    UNUSED,
    DrawnCard,
    DrawnNode,
    DrawnPart,
    Usage,
    draw_node,
    drawn_name,
)
from webhook.devices.explanation import PlacementRequest, PodExplanation, ShapeExplainer, ShapeExplanation
from webhook.devices.families import Family
from webhook.devices.mindcluster.feasibility import DVPP, LEVELS, TEMPLATE_CORES, has_template, judge, served
from webhook.devices.mindcluster.fleet import MindclusterFleet, MindclusterShape
from webhook.devices.nearest import MAX_CONTAINERS, ContainerName, Reducible, amounts_of_regular, reducible
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Never, Reason, Unknown, Verdict
from webhook.texts import counted

CHIP = "Ascend 310P"
LOW, _ = LEVELS
YES, NO, NULL = DVPP
CHOOSES = "one possibility: the scheduler chooses the chips, and which of them are healthy is not known here"


@dataclass(frozen=True, slots=True)
class EqualChips:
    """Equal chips of a node: AI cores of each, and how many."""

    cores: int
    count: int


@dataclass(frozen=True, slots=True)
class ContainerCores:
    """The AI cores of one container: so many whole chips, or by which template a part of one."""

    container: ContainerName
    cores: int
    chips: int
    template: str | None


@dataclass(frozen=True, slots=True)
class MindclusterSlices:
    """What each container gets."""

    containers: tuple[ContainerCores, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MindclusterExplanation(ShapeExplanation):
    """What one shape of MindCluster nodes gives."""

    cores: int
    chips: tuple[EqualChips, ...]
    slices: MindclusterSlices | None = None


def explain(request: PlacementRequest, fleet: MindclusterFleet) -> Iterator[PodExplanation]:
    """Explain a pod to the shapes of a fleet."""
    usable = request.usable and served(request.pod) is not None
    explainer = partial(MindclusterExplainer, request, request.pod, fleet) if usable else None
    yield request.explanation(explainer, fleet.shapes, f"no node of the fleet offers {names.NPU_CORE}")


class MindclusterExplainer(ShapeExplainer[MindclusterShape, DevicePod, MindclusterSlices]):
    """Explains a pod to one shape."""

    made = MindclusterExplanation
    exact_amounts = True

    def judge(self, requested: DevicePod, nodes: int | None) -> Verdict:
        """The engine's verdict on the node's cores; template and label are tested before it."""
        verdict, first = judge(requested, nodes, self.alone), served(requested)
        if isinstance(verdict, Unknown) or first is None or first.value is None:
            return verdict
        if not has_template(first.value, self.shape.chip_cores):
            return Never(Reason.TEMPLATE, first.container, names.NPU_CORE, first.value, self.shape.chip_cores)
        if _dvpp(requested) not in DVPP and first.value % self.shape.chip_cores:  # whole chips do not use the label
            return Never(Reason.LABEL, None, names.VNPU_DVPP)
        return verdict

    def slices(self) -> MindclusterSlices:
        """Whole chips, or a template."""
        first = served(self.requested)
        if first is None or first.value is None:
            return MindclusterSlices(())
        cores, size = first.value, self.shape.chip_cores
        if cores % size == 0:
            return MindclusterSlices((ContainerCores(first.container, cores, cores // size, None),))
        level = self.requested.view.labels.get(names.VNPU_LEVEL, LOW)
        by = template(cores, level, _dvpp(self.requested))
        return MindclusterSlices((ContainerCores(first.container, cores, 0, by),))

    def removals(self) -> Iterator[tuple[str, DevicePod]]:
        """The label."""
        if _dvpp(self.requested) != NULL:
            changed, view = copy(self.requested), copy(self.requested.view)
            view.labels = {key: value for key, value in view.labels.items() if key != names.VNPU_DVPP}
            changed.view = view
            yield names.VNPU_DVPP, changed

    def reducible(self) -> Iterator[Reducible[DevicePod]]:
        """The cores of the first containers: the amount that counts to a template or whole chips, the others to any."""
        first = served(self.requested)
        for amount in amounts_of_regular(self.requested, Family.MINDCLUSTER)[:MAX_CONTAINERS]:
            now, size = amount.value or 0, self.shape.chip_cores
            templates = [cores for cores in TEMPLATE_CORES if cores < now]
            for values in (range(size, now, size), templates) if amount is first else (range(1, now),):
                yield reducible(self.requested, amount, values)

    def fields(self) -> dict[str, Any]:
        """The cores and chips."""
        return {"cores": self.shape.cores, "chips": (EqualChips(self.shape.chip_cores, self.shape.devices),)}

    def devices(self) -> str:
        """How many cores and chips."""
        return f"{self.shape.cores} AI cores, {counted(self.shape.devices, 'chip')} of {self.shape.chip_cores}"

    def slice_sentences(self, slices: MindclusterSlices) -> Iterator[str]:
        """Whole chips, or a template."""
        for given in slices.containers:
            who, cores = wording.container(given.container), counted(given.cores, "AI core")
            if given.template:
                yield f"{who} gets {cores} of a chip's {self.shape.chip_cores}, by template {given.template}"
            else:
                yield f"{who} gets {counted(given.chips, 'whole chip')} ({cores})"

    def refusal_sentence(self, never: Never) -> str:
        """A template, a label, or the node's cores."""
        match never.reason:
            case Reason.TEMPLATE:
                who = wording.container(never.container) if never.container is not None else "the pod"
                templates = ", ".join(map(str, TEMPLATE_CORES))
                wanted = f"{who} requests {never.requested} AI cores"
                return f"{wanted}, no template ({templates}) and no whole chips of {never.most}"
            case Reason.LABEL:
                written = wording.quoted(self.requested.view.labels.get(never.resource))
                return f"{never.resource} is {written}, not {', '.join(DVPP[:-1])} or {DVPP[-1]}"
            case _:
                return f"the pod requests {never.requested} AI cores in total, the node offers {never.most}"

    def draw(self, slices: MindclusterSlices | None, note: str) -> DrawnNode:
        """One possibility."""
        if slices is None:
            return draw(self.shape, Usage(note=note))
        parts: dict[int, tuple[DrawnPart, ...]] = {}
        for given in slices.containers:
            name, size = drawn_name(given.container), self.shape.chip_cores
            for index in range(min(given.chips, MAX_CARDS)):
                parts[index] = (DrawnPart(name, 0, size, "whole chip"),)
            if given.template and given.cores <= size:  # no real chip is smaller
                parts[0] = (DrawnPart(name, 0, given.cores, given.template),)
        return draw(self.shape, Usage(parts, note=CHOOSES))


def template(cores: int, level: Any, dvpp: Any) -> str:
    """The template of a part of a chip. A level that is neither low nor high counts as low."""
    low = level not in LEVELS or level == LOW
    if cores == 4:
        return {YES: "vir04_4c_dvpp", NO: "vir04_3c_ndvpp"}.get(dvpp, "vir04_3c" if low else "vir04")
    if cores == 2:
        return "vir02_1c" if low else "vir02"
    return "vir01"


def draw(shape: MindclusterShape, usage: Usage = UNUSED) -> DrawnNode:
    """The chips; the last one with what is left of the node's cores."""
    whole, rest = divmod(shape.cores, shape.chip_cores)

    def chip(index: int) -> DrawnCard:
        return DrawnCard(f"chip {index + 1}", CHIP, 0, cores=shape.chip_cores if index < whole else rest)

    return draw_node(whole + (rest > 0), chip, ("", AI_CORES), usage)


def _dvpp(pod: DevicePod) -> Any:
    return pod.view.labels.get(names.VNPU_DVPP, NULL)
