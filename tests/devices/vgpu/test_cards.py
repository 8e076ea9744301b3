"""The annotation in which a node registers its cards is decoded as the scheduler decodes it."""

import pytest

from webhook.devices.config import Geometry, Instance, MigModels, VgpuConfig
from webhook.devices.vgpu.fleet import comparable_geometries, decode_register
from webhook.volcano.target import Target, parse_version

SMALL = Geometry("group1", (Instance("1g.10gb", 9728, 7),))
LARGE = Geometry("group2", (Instance("7g.80gb", 80896, 1),))
CONFIG = VgpuConfig(mig_models=(MigModels(("A100-SXM4-80GB",), (SMALL, LARGE)), MigModels(("A100",), (SMALL,))))
A100 = "NVIDIA-NVIDIA A100-SXM4-80GB"


def decode(text, config=CONFIG, volcano="1.15.1"):
    return decode_register(text, comparable_geometries(config, Target(parse_version(volcano))), {})


def entry(mode="hami-core", kind="NVIDIA-T4", split="10", memory="15360", uuid="GPU-0"):
    return f"{uuid},{split},{memory},{kind},true,{mode}:"


def test_each_entry_is_a_card():
    decoded = decode(entry(uuid="GPU-a") + entry(uuid="GPU-b", kind="NVIDIA-V100", memory="16160", split="5"))
    assert decoded.mode == "hami-core"
    assert decoded.uuids == ("GPU-a", "GPU-b")
    assert [(card.type, card.memory, card.split) for card in decoded.cards] == [
        ("NVIDIA-T4", 15360, 10),
        ("NVIDIA-V100", 16160, 5),
    ]
    assert [card.geometries for card in decoded.cards] == [None, None]
    assert [card.capacity for card in decoded.cards] == [15360, 16160]


def test_equal_cards_are_one_object():
    known = {}
    first = decode_register(entry() * 3, CONFIG, known)
    second = decode_register(entry(uuid="GPU-9"), CONFIG, known)
    assert len({id(card) for card in (*first.cards, *second.cards)}) == 1
    assert decode_register(entry(memory="1"), CONFIG, known).cards[0] is not first.cards[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GPU-0,10,15360,NVIDIA-T4,true,hami-core",  # no colon
        ":",
        "x:y:",  # no entry with a comma
        "GPU-0,10,15360,NVIDIA-T4,true:",  # five fields
        entry() + "GPU-1,10,15360,NVIDIA-T4,true:",  # one invalid entry makes the node invalid
        "GPU-1,10:" + entry(),
    ],
)
def test_an_invalid_annotation_has_no_cards(text):
    assert decode(text) is None


@pytest.mark.parametrize(
    "text",
    [
        entry() + "rubbish:",
        "rubbish:" + entry(),
        ":" + entry() + ":",
        "GPU,10,15360,NVIDIA-T4,t,,:",
        "GPU-0,10,15360,NVIDIA-T4,true,hami-core,more,still:",
        *(f"GPU-0,10,15360,NVIDIA-T4,{health},hami-core:" for health in ("false", "", "x")),
    ],
)
def test_entries_without_a_comma_fields_beyond_the_sixth_and_the_health_are_not_read(text):
    assert [(card.split, card.memory) for card in decode(text).cards] == [(10, 15360)]


@pytest.mark.parametrize("bad", ["", "x", "1.5", "1e3", "0x10", " 10", "10 ", "1_0", "٣", "10k", "9" * 25, "--1", "-"])
def test_an_invalid_number_counts_as_zero(bad):
    card = decode(entry(split=bad) + entry(memory=bad)).cards
    assert card[0].split == 0
    assert card[1].memory == 0


@pytest.mark.parametrize("text, number", [("+7", 7), ("007", 7), ("-7", 0), ("0", 0)])
def test_numbers_are_read_as_go_reads_them(text, number):
    assert decode(entry(split=text)).cards[0].split == number
    assert decode(entry(memory=text)).cards[0].memory == number


@pytest.mark.parametrize(
    "modes, mode",
    [
        ("hami-core,mig", "mig"), ("mig,hami-core", "hami-core"), ("mig", "mig"), ("mps", "hami-core"), ("", "hami-core"),
        ("MIG", "hami-core"), ("mig ", "hami-core"),
    ],
)  # fmt: skip
def test_the_last_card_decides_the_mode(modes, mode):
    decoded = decode("".join(entry(mode=each, kind=A100) for each in modes.split(",")))
    assert decoded.mode == mode
    found = [None if mode == "hami-core" else (SMALL, LARGE) if each == "mig" else () for each in modes.split(",")]
    assert [card.geometries for card in decoded.cards] == found


@pytest.mark.parametrize("kind", ["NVIDIA-NVIDIA A30", "NVIDIA-NVIDIA a100-SXM4-80GB", ""])
def test_an_unknown_mig_model_falls_back_to_hami_core(kind):
    decoded = decode(entry(mode="mig", kind=kind, memory="81920"))
    assert decoded.mode == "hami-core"
    assert decoded.cards[0].accounted(81920) == 81920


def test_the_first_model_that_is_a_substring_gives_the_geometries():
    assert decode(entry(mode="mig", kind=A100)).cards[0].geometries == (SMALL, LARGE)
    assert decode(entry(mode="mig", kind="NVIDIA-A100-PCIE")).cards[0].geometries == (SMALL,)


@pytest.mark.parametrize(
    "memory, factor, capacity", [("81920", 1, 80896), ("40960", 1, 40960), ("8192", 10, 8089), ("4000", 10, 4000)]
)
def test_the_capacity_is_limited_by_the_card_and_by_the_largest_instance(memory, factor, capacity):
    config = VgpuConfig(mig_models=CONFIG.mig_models, memory_factor=factor)
    assert decode(entry(mode="mig", kind=A100, memory=memory), config).cards[0].capacity == capacity


def test_a_card_without_geometries_on_a_mig_node_has_no_capacity():
    card = decode(entry(kind="NVIDIA-T4") + entry(mode="mig", kind=A100)).cards[0]
    assert card.geometries == ()
    assert card.capacity < 0
    assert card.accounted(0) is None


def test_the_smallest_instance_of_a_group_that_is_large_enough_is_booked():
    group = Geometry("group3", (Instance("2g.20gb", 200, 3), Instance("1g.10gb", 100, 1)))
    card = decode(entry(mode="mig"), VgpuConfig(mig_models=(MigModels(("T4",), (group,)),))).cards[0]
    assert [card.accounted(need) for need in (100, 101, 201)] == [100, 200, None]


@pytest.mark.parametrize(
    "volcano, need, accounted",
    [
        ("1.15.0", 1, 972), ("1.15.0", 972, 972), ("1.15.0", 973, 8089), ("1.15.0", 8090, None),
        ("1.14.4", 973, 9728), ("1.14.4", 9729, 80896), ("1.14.4", 80897, None),
    ],
)  # fmt: skip
def test_mig_books_instances_in_units_of_the_factor_from_1_15_on(volcano, need, accounted):
    config = VgpuConfig(mig_models=CONFIG.mig_models, memory_factor=10)
    (card,) = decode(entry(mode="mig", kind=A100, memory="8192"), config, volcano).cards
    assert card.accounted(need) == accounted
