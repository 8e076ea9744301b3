"""What Ascend nodes say to a pod, for each kind of NPU that it asks for."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from webhook import names
from webhook.devices.ascend.explain import Npus, Question, Reason, explain
from webhook.devices.ascend.feasibility import NpuAsk, assign, is_hami_core
from webhook.devices.ascend.fleet import AscendFleet, AscendShape, Npu
from webhook.devices.config import Chip
from webhook.devices.explanation import Explanation, Refusal
from webhook.devices.families import Role
from webhook.render.drawing import Drawing, Part, called
from webhook.render.families.asked import PodAsked
from webhook.render.families.empty import draw_ascend
from webhook.render.families.told import PodExplanation, Told
from webhook.render.families.words import Spoken, tell, unselected
from webhook.rules import wording
from webhook.rules.facts import npus

HARD_SPLIT = "hard split"
CHOOSES = "one possibility: the scheduler chooses which NPUs"


def explain_pod(asked: PodAsked) -> Iterator[PodExplanation]:
    """What each kind of node with such NPUs says."""
    by_chip: dict[Chip, list[NpuAsk]] = {}
    for ask in npus(asked.pod, asked.context) if asked.usable else ():
        by_chip.setdefault(ask.chip, []).append(ask)
    for chip, asks in by_chip.items():
        yield _of_chip(asked, chip, asks)
    if not by_chip:
        yield asked.explained(None, asked.fleet.ascend.every_shape, "")


def _of_chip(asked: PodAsked, chip: Chip, asks: list[NpuAsk]) -> PodExplanation:
    fleet = asked.fleet.ascend
    question = Question(asks, asked.nodes, is_hami_core(asked.pod.view))
    answers = explain(question, fleet, oversize_refused=asked.context.denies("ascend-memory-oversize"))
    told = [_told(answer, question, chip) for answer in answers]
    skipped = [(node, missing) for node, missing in fleet.gated if missing == chip.number_name]
    return asked.explained(told, fleet.shapes.get(chip.word, ()), _missing(chip, fleet), skipped, chip.word)


def _missing(chip: Chip, fleet: AscendFleet) -> str:
    others = f"; the fleet has {', '.join(fleet.shapes)}" if fleet.shapes else ""
    return f"no node of the fleet registers {chip.word} NPUs{others}"


def _told(answer: Explanation[AscendShape, tuple[Npus, ...]], question: Question, chip: Chip) -> Told:
    shape, given, refusal = answer.shape, answer.given or (), answer.refusal
    mode = names.MODE_HAMI_CORE if question.hami_core else HARD_SPLIT
    slices = {"mode": mode, "containers": [_slice(one) for one in given]}
    return tell(
        answer,
        Spoken(
            devices=_devices(shape),
            facts=_facts(shape),
            draw=lambda note: _draw(answer, question, note),
            names={Role.NUMBER: chip.number_name, Role.MEMORY: chip.memory_name, Role.CORES: chip.cores_name},
            given=[f"{wording.container(one.container)} gets {_npus(one, mode)}" for one in given],
            slices=slices if given else None,
            refusal="" if refusal is None else _refusal(refusal, question),
            several=len(question.asks) > 1,
        ),
    )


def _draw(answer: Explanation[AscendShape, tuple[Npus, ...]], question: Question, note: str) -> Drawing:
    """The NPUs, those of a kind together; each is given to one container at most."""
    shape, hami_core = answer.shape, question.hami_core
    if answer.given is None:
        return draw_ascend(shape, note=note, hami_core=hami_core)
    starts = [0, *accumulate(count for _, count in shape.kinds)]
    parts: dict[int, tuple[Part, ...]] = {}
    for one, share in zip(answer.given, assign(question.asks, shape, hami_core=hami_core), strict=True):
        part = Part(called(one.container), share.memory, share.cores, "whole NPU" if one.whole else "")
        for kind, number in enumerate(share.numbers):
            parts.update((starts[kind] + index, (part,)) for index in range(number))
            starts[kind] += number
    return draw_ascend(shape, parts, CHOOSES, hami_core=hami_core)


def _devices(shape: AscendShape) -> str:
    kinds = [f"{count} × {shape.word}, {npu.memory} MiB{_cores(npu, shape)}" for npu, count in shape.kinds]
    shared = f" ({names.MODE_HAMI_CORE} too)" if shape.hami_core else ""
    return f"{'; '.join(kinds[:4])}{'; …' if len(kinds) > 4 else ''}{shared}"


def _cores(npu: Npu, shape: AscendShape) -> str:
    return "" if shape.declared else f", {npu.cores} AI cores"  # nobody knows them of a node that is not there yet


def _facts(shape: AscendShape) -> dict[str, Any]:
    kinds = [
        {
            "memory": npu.memory,
            "cores": None if shape.declared else npu.cores,
            "split": npu.split,
            "count": count,
        }
        for npu, count in shape.kinds
    ]
    return {"npus": kinds, "hamiCore": shape.hami_core}


def _npus(given: Npus, mode: str) -> str:
    many = f"{given.number} {'whole ' if given.whole else ''}NPU{'s' if given.number > 1 else ''}"
    if given.memory is None:
        how = "all of the memory"
    elif given.memory == 0:
        how = "by the smallest template, nothing booked"
    else:
        template = "" if given.whole or mode == names.MODE_HAMI_CORE else "by a template of "
        how = f"{template}{given.memory} MiB{' each' if given.number > 1 else ''}"
    return f"{many} ({mode}, {how})"


def _slice(given: Npus) -> dict[str, Any]:
    return {"container": given.container.name, "npus": given.number, "memory": given.memory, "whole": given.whole}


def _refusal(refusal: Refusal, question: Question) -> str:
    who = wording.container(refusal.container) if refusal.container is not None else "the pod"
    asked, most = refusal.asked, refusal.most
    match refusal.reason:
        case Reason.NODES:
            return unselected(question.nodes)
        case Reason.MODE:
            return f"the pod wants {names.MODE_HAMI_CORE}, but the node does not share its NPUs in software"
        case Reason.OVERSIZE:
            return f"{who} wants {asked} MiB of an NPU that has {most}; the scheduler would book nothing"
        case Reason.PARTS:
            return f"{who} wants {asked} MiB of each, but several NPUs are given whole only, {most} MiB"
        case Reason.NUMBER:
            return f"{who} wants {asked} different NPUs, the node has {most}"
        case Reason.MEMORY:
            return f"{who} needs {asked} MiB of one NPU, the largest has {most}"
        case Reason.CORES:
            unit = "percent" if question.hami_core else "AI cores"
            return f"{who} wants {asked} {unit} of an NPU, which has {most}"
        case Reason.LEFT:
            return f"{who} wants {asked} NPUs of its own, {most} with such memory and cores are left"
        case _:
            return f"the pod asks for {refusal.resource} {asked} in total, the node offers {most}"
