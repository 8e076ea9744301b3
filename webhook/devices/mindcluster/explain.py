"""What each kind of MindCluster node says to a pod: which template or chips it gets, or what refuses and what would help.

Source: volcano `pkg/scheduler/api/devices/ascend/mindcluster/ascend310p/vnpu/device_manage.go`, `utils.go`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from webhook import names
from webhook.devices.explanation import MAX_SHAPES, Answer, Case, Explanation, Refusal
from webhook.devices.families import Family
from webhook.devices.mindcluster.feasibility import DVPP, LEVELS, TEMPLATE_CORES, has_template, judge, served
from webhook.devices.mindcluster.fleet import MindclusterFleet, MindclusterShape
from webhook.devices.nearest import MAX_CONTAINERS, Enquiry, Lower, amounts_of_regular, loosened, with_value
from webhook.devices.requests import Amount, DevicePod
from webhook.devices.selectors import NodeSelector
from webhook.devices.verdict import Shortfall, Unknown
from webhook.pod.view import Container

LOW, _ = LEVELS
YES, NO, NULL = DVPP


class Reason(StrEnum):
    """What may refuse a pod."""

    NODES = "node labels"
    TEMPLATE = "template"
    LABEL = "label"
    TOTALS = "node totals"


@dataclass(frozen=True, slots=True)
class Cores:
    """What a pod gets.

    Attributes:
        container: whose request counts.
        cores: how many AI cores.
        chips: how many whole chips they are; 0 for a part of one.
        template: by which a chip is cut; empty for whole chips.
    """

    container: Container
    cores: int
    chips: int
    template: str


class Question(NamedTuple):
    """What is asked.

    Attributes:
        pod: the pod.
        first: the request that counts.
        nodes: what the pod demands of its node's labels.
        dvpp: the pod's label `vnpu-dvpp`.
    """

    pod: DevicePod
    first: Amount
    nodes: NodeSelector | None
    dvpp: Any


def explain(
    pod: DevicePod, nodes: NodeSelector | None, fleet: MindclusterFleet
) -> Iterator[Explanation[MindclusterShape, Cores]]:
    """Explain each shape of a fleet, the first fifty; nothing to a pod that asks for no cores."""
    first = served(pod)
    if first is None:
        return
    enquiry = Enquiry(len(pod.amounts))
    asked = Question(pod, first, nodes, pod.view.labels.get(names.VNPU_DVPP, NULL))
    for shape in fleet.shapes[:MAX_SHAPES]:
        answer = partial(_judge, alone=replace(fleet, shapes=(shape,)))
        without, lower = _without(asked), _lower(asked, shape)
        yield Case(shape, asked, answer, _why, partial(_cores, asked, shape), without, lower).explain(enquiry)


def template(cores: int, level: Any, dvpp: Any) -> str:
    """The template of a part of a chip. A level that is none is read as low."""
    low = level not in LEVELS or level == LOW
    if cores == 4:
        return {YES: "vir04_4c_dvpp", NO: "vir04_3c_ndvpp"}.get(dvpp, "vir04_3c" if low else "vir04")
    if cores == 2:
        return "vir02_1c" if low else "vir02"
    return "vir01"


def _judge(asked: Question, alone: MindclusterFleet) -> Answer:
    """The engine answers for the node's cores; template and label are tested before it."""
    (shape,) = alone.shapes
    if shape.node_left(asked.nodes, alone.index) is None:
        return Refusal(Reason.NODES)
    answer = judge(asked.pod, asked.nodes, alone)
    if isinstance(answer, Unknown):
        return answer
    cores = asked.first.value or 0
    if not has_template(cores, shape.chip_cores):
        return Refusal(Reason.TEMPLATE, asked.first.container, names.NPU_CORE, cores, shape.chip_cores)
    if asked.dvpp not in DVPP and cores % shape.chip_cores:  # whole chips have no template, and the label is not read
        return Refusal(Reason.LABEL, None, names.VNPU_DVPP)
    return answer


def _why(short: Shortfall) -> Refusal:
    return Refusal(Reason.TOTALS, None, short.resource, short.asked, short.most)


def _cores(asked: Question, shape: MindclusterShape) -> Cores:
    container, cores = asked.first.container, asked.first.value or 0
    if cores % shape.chip_cores == 0:
        return Cores(container, cores, cores // shape.chip_cores, "")
    level = asked.pod.view.labels.get(names.VNPU_LEVEL, LOW)
    return Cores(container, cores, 0, template(cores, level, asked.dvpp))


def _without(asked: Question) -> Iterator[tuple[str, Question]]:
    if asked.dvpp != NULL:
        yield names.VNPU_DVPP, asked._replace(dvpp=NULL)
    for word, nodes in loosened(asked.nodes):
        yield word, asked._replace(nodes=nodes)


def _lower(asked: Question, shape: MindclusterShape) -> Iterator[Lower[Question]]:
    """The cores of the first containers: what counts is lowered to a template or whole chips, the rest to anything."""
    for amount in amounts_of_regular(asked.pod, Family.MINDCLUSTER)[:MAX_CONTAINERS]:

        def question(value: int, amount: Amount = amount) -> Question:
            changed = with_value(asked.pod, amount, value)
            return asked._replace(pod=changed, first=served(changed) or asked.first)

        now = amount.value or 0
        chips, anything = range(shape.chip_cores, now, shape.chip_cores), range(1, now)
        templates = [cores for cores in TEMPLATE_CORES if cores < now]
        for values in (chips, templates) if amount is asked.first else (anything,):
            yield Lower(amount.container, amount.role, now, values, question)
