"""What MindCluster nodes say to a pod."""

from collections.abc import Iterator, Mapping

from webhook import names
from webhook.devices.explanation import Explanation, Refusal
from webhook.devices.families import Role
from webhook.devices.mindcluster.explain import Cores, Reason, explain
from webhook.devices.mindcluster.feasibility import DVPP, TEMPLATE_CORES, served
from webhook.devices.mindcluster.fleet import MindclusterShape
from webhook.render.drawing import MAX_CARDS, Drawing, Part, called
from webhook.render.families.asked import PodAsked
from webhook.render.families.empty import draw_mindcluster
from webhook.render.families.told import PodExplanation, Told
from webhook.render.families.words import Spoken, tell, unselected
from webhook.rules import wording

_NAMES: Mapping[Role, str] = {Role.CORES: names.NPU_CORE}
CHOOSES = "one possibility: the scheduler chooses the chips, and which of them are healthy is not known here"


def explain_pod(asked: PodAsked) -> Iterator[PodExplanation]:
    """What each kind of node with AI cores says."""
    fleet = asked.fleet.mindcluster
    asks = asked.usable and served(asked.pod) is not None
    answers = explain(asked.pod, asked.nodes, fleet) if asks else None
    told = None if answers is None else [_told(answer, asked) for answer in answers]
    yield asked.explained(told, fleet.shapes, f"no node of the fleet offers {names.NPU_CORE}")


def _told(answer: Explanation[MindclusterShape, Cores], asked: PodAsked) -> Told:
    shape, given, refusal = answer.shape, answer.given, answer.refusal
    chips = shape.devices
    return tell(
        answer,
        Spoken(
            devices=f"{shape.cores} AI cores, {chips} chip{'s' if chips != 1 else ''} of {shape.chip_cores}",
            facts={"cores": shape.cores, "chips": [{"cores": shape.chip_cores, "count": chips}]},
            draw=lambda note: _draw(shape, given, note),
            names=_NAMES,
            given=[] if given is None else [_given(given, shape)],
            slices=None if given is None else {"containers": [_slice(given)]},
            refusal="" if refusal is None else _refusal(refusal, asked),
            several=asked.several,
            exact=True,
        ),
    )


def _draw(shape: MindclusterShape, given: Cores | None, note: str) -> Drawing:
    if given is None:
        return draw_mindcluster(shape, note=note)
    name = called(given.container)
    chips = min(given.chips, MAX_CARDS)
    parts = {index: (Part(name, 0, shape.chip_cores, "whole chip"),) for index in range(chips)}
    if given.template and given.cores <= shape.chip_cores:  # nobody has smaller chips
        parts[0] = (Part(name, 0, given.cores, given.template),)
    return draw_mindcluster(shape, parts, CHOOSES)


def _given(given: Cores, shape: MindclusterShape) -> str:
    who, cores = wording.container(given.container), f"{given.cores} AI core{'s' if given.cores > 1 else ''}"
    if given.template:
        return f"{who} gets {cores} of a chip's {shape.chip_cores}, by template {given.template}"
    return f"{who} gets {given.chips} whole chip{'s' if given.chips > 1 else ''} ({cores})"


def _slice(given: Cores) -> dict[str, str | int | None]:
    return {
        "container": given.container.name,
        "cores": given.cores,
        "chips": given.chips,
        "template": given.template or None,
    }


def _refusal(refusal: Refusal, asked: PodAsked) -> str:
    match refusal.reason:
        case Reason.NODES:
            return unselected(asked.nodes)
        case Reason.TEMPLATE:
            who = wording.container(refusal.container) if refusal.container is not None else "the pod"
            templates = ", ".join(map(str, TEMPLATE_CORES))
            return f"{who} asks for {refusal.asked} AI cores, no template ({templates}) and no whole chips of {refusal.most}"
        case Reason.LABEL:
            written = wording.quoted(asked.pod.view.labels.get(refusal.resource))
            return f"{refusal.resource} is {written}, not {', '.join(DVPP[:-1])} or {DVPP[-1]}"
        case _:
            return f"the pod asks for {refusal.asked} AI cores in total, the node offers {refusal.most}"
