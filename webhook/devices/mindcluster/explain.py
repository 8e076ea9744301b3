"""A pod on the nodes of one shape with AI cores."""

from collections.abc import Iterator
from typing import Any

from webhook import names
from webhook.devices.explainer import Explainer, Taken
from webhook.devices.families import Family
from webhook.devices.mindcluster.family import (
    DVPP,
    LEVELS,
    LOW,
    NO,
    NULL,
    TEMPLATE_CORES,
    YES,
    chip_cores,
    has_template,
    served,
)
from webhook.devices.model import MAX_DEVICES, Device
from webhook.devices.nearest import MAX_CONTAINERS, Reducible, amounts_of_regular, reducible
from webhook.devices.requests import PodAmounts
from webhook.devices.shapes import AnyPart, AnyShape
from webhook.devices.verdict import Never, Reason, SearchBudget, Unknown, Verdict

CHOOSES = "one possibility: the scheduler chooses the chips, and which of them are healthy is not known here"


class MindclusterExplainer(Explainer[PodAmounts, Device]):
    """Explains AI cores."""

    exact_amounts = True

    def is_served(self, request: PodAmounts) -> bool:
        """Whether a container requests more than 0."""
        return served(request) is not None

    def missing(self, _request: PodAmounts, _part: AnyPart) -> str:
        """The name."""
        return f"no node of the fleet offers {names.NPU_CORE}"

    def judge_alone(self, request: PodAmounts, part: AnyPart, nodes: int | None, budget: SearchBudget) -> Verdict:
        """Template and label are tested before the node's cores."""
        verdict = self.family.judge(request, part, nodes, budget)
        first, size = served(request), chip_cores(part.shapes[0])
        if isinstance(verdict, Unknown) or first is None or first.value is None:
            return verdict
        if not has_template(first.value, size):
            return Never(Reason.TEMPLATE, first.container, names.NPU_CORE, first.value, size)
        if _dvpp(request) not in DVPP and first.value % size:  # whole chips do not use the label
            return Never(Reason.LABEL, None, names.VNPU_DVPP)
        return verdict

    def taken(self, request: PodAmounts, part: AnyPart) -> tuple[tuple[Taken, ...], str]:
        """Whole chips, or a template; one possibility."""
        first, size = served(request), chip_cores(part.shapes[0])
        if first is None or first.value is None:
            return (), ""
        who, cores = first.container, first.value
        if cores % size == 0:
            chips = range(min(cores // size, MAX_DEVICES))
            return tuple(Taken(who, chip, 0, size, "whole chip") for chip in chips), CHOOSES
        by = template(cores, request.labels.get(names.VNPU_LEVEL, LOW), _dvpp(request))
        return (Taken(who, 0, 0, min(cores, size), by),), CHOOSES

    def removals(self, request: PodAmounts) -> Iterator[tuple[str, PodAmounts]]:
        """The label."""
        if _dvpp(request) != NULL:
            labels = {key: value for key, value in request.labels.items() if key != names.VNPU_DVPP}
            yield names.VNPU_DVPP, request._replace(labels=labels)

    def reducible(self, request: PodAmounts, shape: AnyShape) -> Iterator[Reducible[PodAmounts]]:
        """The cores of the first containers: the amount that counts to a template or whole chips, the others to any."""
        first, size = served(request), chip_cores(shape)
        for amount in amounts_of_regular(request, Family.MINDCLUSTER)[:MAX_CONTAINERS]:
            now = amount.value or 0
            templates = [cores for cores in TEMPLATE_CORES if cores < now]
            for values in (range(size, now, size), templates) if amount is first else (range(1, now),):
                yield reducible(request, amount, values)


def template(cores: int, level: Any, dvpp: Any) -> str:
    """The template of a part of a chip. A level that is neither low nor high counts as low."""
    low = level not in LEVELS or level == LOW
    if cores == 4:
        return {YES: "vir04_4c_dvpp", NO: "vir04_3c_ndvpp"}.get(dvpp, "vir04_3c" if low else "vir04")
    if cores == 2:
        return "vir02_1c" if low else "vir02"
    return "vir01"


def _dvpp(pod: PodAmounts) -> Any:
    """The label that chooses templates with or without DVPP."""
    return pod.labels.get(names.VNPU_DVPP, NULL)
