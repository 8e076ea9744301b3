"""Drawings show the placement of the engine, within the capacity of the cards."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests import strategies
from tests.cli.conftest import vgpus
from tests.console.drawings import CONFIG, TARGET, fleet_in, fleet_of, many_cards, nodes_in, pod, shapes_explained
from webhook.devices.config_file import parse_device_config
from webhook.devices.drawing import MAX_CARDS, MAX_PARTS, DrawnNode
from webhook.devices.explanation import explainer
from webhook.devices.registry import bind
from webhook.devices.vgpu.fleet import Card

NPU, MEMORY, CORES = "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory", "huawei.com/Ascend910B3-core"
SERVED = {"ring-controller.atlas": "ascend-310P"}


def parts_by_container(drawing):
    """The number of cards that have a part of each container."""
    return Counter(part.container for card in drawing.cards for part in card.parts)


def as_json(drawing):
    return TypeAdapter(DrawnNode).dump_python(drawing, mode="json")


def check_bounds(explanation):
    """No card has more parts than its capacity, and no NPU more than one."""
    drawing, shape = explanation.drawing, explanation.shape
    devices = len(shape.devices)
    assert len(drawing.cards) == min(devices, MAX_CARDS)
    assert drawing.more == devices - len(drawing.cards)
    mig = shape.mode == "mig"
    for card in drawing.cards:
        before_the_last = card.parts[:-1] if mig else card.parts  # the last MIG instance can exceed the card
        assert sum(part.memory for part in before_the_last) <= card.memory
        assert sum(part.cores for part in card.parts) <= card.cores or not card.cores
        assert len(card.parts) + card.hidden <= max(card.slots, 1) or not card.slots
        assert not card.slots or not card.refusal or explanation.placement != "fits"
        assert len(card.parts) <= 1 or not card.name.startswith("NPU")
    if explanation.placement == "fits":
        assert not any(card.refusal for card in drawing.cards)
    else:
        assert drawing.note
    if explanation.placement != "fits" and not any(isinstance(device, Card) for device in shape.devices):
        assert not parts_by_container(drawing)
    if not drawing.more:
        assert set(parts_by_container(drawing)) == set(drawing.containers)
    assert json.dumps(as_json(drawing))


def expected_parts(explanation):
    return Counter("" if each.container is None else each.container.name for each in explanation.slices)


@st.composite
def placeable_pods(draw):
    """Pods with moderate requests, many of which fit."""
    few, cores = st.sampled_from([1, 1, 2, 3]), st.sampled_from([0, 20, 50, 100])
    vgpu = st.builds(vgpus, few, st.sampled_from([None, 1000, 5000, 9000]), cores)
    npus = st.builds(
        lambda number, size, some: {NPU: number} | ({MEMORY: size} if size else {}) | ({CORES: some} if some else {}),
        few,
        st.sampled_from([None, None, 3072, 20000, 65536]),
        st.sampled_from([0, 8, 12]),
    )
    share = st.sampled_from([{"volcano.sh/gpu-number": 1}, {"volcano.sh/gpu-memory": 4000}])
    chips = st.sampled_from([1, 2, 4, 8, 10]).map(lambda cores: {"huawei.com/npu-core": cores})
    family = draw(st.sampled_from([vgpu, npus, share, chips]))
    limits = draw(st.lists(family, min_size=1, max_size=4))
    annotations = draw(st.sampled_from([{}, {}, {"huawei.com/vnpu-mode": "hami-core"}]))
    return pod(*[(f"c{at}", some) for at, some in enumerate(limits)], annotations=annotations, labels=SERVED)


@given(strategies.pods(), strategies.mixed_fleets())
def test_no_card_has_more_parts_than_its_capacity_and_an_empty_node_has_none(raw, nodes):
    fleet = fleet_of(nodes)
    for explanation in shapes_explained(raw, fleet):
        check_bounds(explanation)
    for family in bind(CONFIG, TARGET).values():
        for shape in fleet.by_family[family.id]:
            drawing = explainer(family).draw(shape)
            assert not parts_by_container(drawing)
            assert drawing.note == ""
            assert not any(card.refusal for card in drawing.cards)


ROOMY = [node for file in ("every-family.yaml", "mixed.yaml", "npu-core.yaml") for node in nodes_in(file)]
NPUS = st.lists(
    st.tuples(st.just(4), st.sampled_from([21527, 65536]), st.sampled_from([8, 20])), min_size=3, max_size=9
)
roomy_fleets = NPUS.map(lambda npus: fleet_of([*ROOMY, strategies.ascend_node("more", npus, mode="true")]))


@given(placeable_pods(), strategies.mixed_fleets().map(fleet_of) | roomy_fleets)
def test_a_drawing_shows_the_placement_of_the_engine(raw, fleet):
    for explanation in shapes_explained(raw, fleet):
        check_bounds(explanation)
        if explanation.placement != "fits":
            continue
        assert parts_by_container(explanation.drawing) == expected_parts(explanation)
        drawn = [(card.name, part.memory) for card in explanation.drawing.cards for part in card.parts]
        slices = explanation.slices
        assert sorted(memory for _, memory in drawn) == sorted(each.memory for each in slices)
        assert {name.rpartition(" ")[2] for name, _ in drawn} == {str(each.device) for each in slices}


# --- vGPUs ----------------------------------------------------------------------------------------------------------


def test_the_slices_of_a_pod_are_on_its_cards():
    (explanation,) = shapes_explained(
        pod(("train", vgpus(2, 4000, 30)), ("serve", vgpus(1, 12000, 20))), fleet_in("rtx4090.yaml")
    )
    assert [[(p.container, p.memory, p.cores) for p in card.parts] for card in explanation.drawing.cards[5:]] == [
        [],
        [("train", 4000, 30)],
        [("train", 4000, 30), ("serve", 12000, 20)],
    ]
    assert explanation.drawing.containers == ("train", "serve")
    card = explanation.drawing.cards[7]
    assert (card.name, card.kind, card.memory, card.slots) == ("card 7", "NVIDIA GeForce RTX 4090", 24564, 10)


def test_memory_is_counted_in_mebibytes():
    config = parse_device_config({"nvidia": {"gpuMemoryFactor": 10}}, "test")
    (explanation,) = shapes_explained(pod(("train", vgpus(1, 30))), fleet_of([many_cards(1)], config), config)
    (card,) = explanation.drawing.cards
    assert (card.memory, card.parts[0].memory) == (explanation.shape.devices[0].memory * 10, 300)
    assert explainer(bind(config, TARGET)["vgpu"]).draw(explanation.shape).cards[0].memory == card.memory
    (explanation,) = shapes_explained(pod(("train", vgpus(1, 3000))), fleet_of([many_cards(1)], config), config)
    assert explanation.drawing.cards[0].refusal == f"memory: 30000 MiB needed, {card.memory} free"


def test_a_card_shows_its_refusal_and_the_parts_of_earlier_containers():
    (explanation,) = shapes_explained(
        pod(("train", vgpus(6, 20000)), ("serve", vgpus(3, 8000))), fleet_in("rtx4090.yaml")
    )
    refusals = [card.refusal for card in explanation.drawing.cards]
    assert refusals == ["", ""] + ["memory: 8000 MiB needed, 4564 free"] * 6
    assert [[p.container for p in card.parts] for card in explanation.drawing.cards] == [[], []] + [["train"]] * 6
    assert explanation.drawing.note == explanation.refusal.message


@pytest.mark.parametrize(
    "limits,annotations,refusal",
    [
        (vgpus(1, 30000), {}, "memory: 30000 MiB needed, 24564 free"),
        (vgpus(1, 1), {"nvidia.com/use-gputype": "H100"}, "type: not one that the pod requests"),
        (vgpus(9, 1), {}, ""),
        (vgpus(1, 1), {"volcano.sh/vgpu-mode": "mig"}, ""),
    ],
)
def test_a_refusal_is_on_the_card_or_in_the_note(limits, annotations, refusal):
    (explanation,) = shapes_explained(pod(("main", limits), annotations=annotations), fleet_in("rtx4090.yaml"))
    assert {card.refusal for card in explanation.drawing.cards} == {refusal}
    assert explanation.drawing.note == explanation.refusal.message


@pytest.mark.parametrize(
    "containers,split,refusal",
    [
        ([vgpus(1, 10, 60)] * 2, 10, "cores: 60 % needed, 40 % free"),
        ([vgpus(1, 10, 0), vgpus(1, 10, 100)], 10, "exclusive: 100 % of the cores require a card of their own"),
        ([vgpus(1, 10, 100), vgpus(1, 10, 0)], 10, "exclusive: all cores are given away"),
        ([vgpus(1, 10)] * 2, 1, "split: all 1 slices are taken"),
        ([vgpus(1, 10)], 0, "split: cut into 0 slices"),
    ],
)
def test_the_refusal_of_a_container_has_a_reason(containers, split, refusal):
    fleet = fleet_of([many_cards(1, split=split)])
    (explanation,) = shapes_explained(pod(*zip("ab", containers, strict=False)), fleet)
    assert explanation.drawing.cards[0].refusal == refusal


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_of_many_cards_those_with_parts_or_refusals_are_drawn():
    (explanation,) = shapes_explained(pod(("train", vgpus(3, 10))), fleet_of([many_cards(3000)]))
    assert len(explanation.drawing.cards) == MAX_CARDS
    assert explanation.drawing.more == 3000 - MAX_CARDS
    assert [card.name for card in explanation.drawing.cards[-3:]] == ["card 2997", "card 2998", "card 2999"]
    assert parts_by_container(explanation.drawing) == {"train": 3}
    (explanation,) = shapes_explained(pod(("train", vgpus(1, 1001))), fleet_of([many_cards(3000)]))
    assert "card 2999" in [card.name for card in explanation.drawing.cards]
    assert sum(1 for card in explanation.drawing.cards if card.refusal) == MAX_CARDS


def test_the_number_of_drawn_slices_is_bounded():
    containers = [(f"{at}" + "x" * 10_000, vgpus(1, 1)) for at in range(MAX_PARTS + 7)]
    (explanation,) = shapes_explained(pod(*containers), fleet_of([many_cards(1, split=1000)]))
    (card,) = explanation.drawing.cards
    assert (len(card.parts), card.hidden) == (MAX_PARTS, 7)
    assert len(json.dumps(as_json(explanation.drawing))) < 30_000


# --- the other families ---------------------------------------------------------------------------------------------


def parts(file, limits, at=0, **fields):
    drawing = shapes_explained(pod(("main", limits), **fields), fleet_in(file))[at].drawing
    return [[(p.container, p.memory, p.cores, p.label) for p in card.parts] for card in drawing.cards], drawing.note


def test_the_drawn_npus_are_one_possibility():
    drawn, note = parts("every-family.yaml", {NPU: 2, CORES: 7})
    assert drawn == [[("main", 65536, 7, "whole NPU")]] * 2 + [[]] * 6
    assert note == "one possibility: the scheduler chooses which NPUs"


def test_an_unknown_verdict_has_a_note():
    npus = [(1, 60000 + at, 20) for at in range(9)]
    (explanation,) = shapes_explained(pod(("main", {NPU: 1})), fleet_of([strategies.ascend_node("n", npus)]))
    assert (explanation.placement, explanation.drawing.note) == ("unknown", "a node registers too many kinds of NPUs")
