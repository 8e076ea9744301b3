"""Whether an empty node can take a pod's NPUs, compared with a walk along the NPUs in every order."""

from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.devices.explaining import config_with_chips, fleet_of, requesting
from tests.examples import examples
from tests.strategies import ascend_node
from tests.timing import within
from webhook import names
from webhook.devices.ascend.feasibility import MAX_KINDS, ChipRequest, judge, npu_requests
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, Never, Reason, Unknown
from webhook.pod.view import PodView
from webhook.volcano.target import Target

MASTER = Target(volcano=(1, 16, 0))
CHIP = "huawei.com/Ascend910B3"
TEMPLATES, ALLOCATABLE, CAPACITY = (3, 6), 10, 12
FIELDS = {"memoryAllocatable": ALLOCATABLE, "memoryCapacity": CAPACITY}
CONFIG = config_with_chips("Ascend910B3", **FIELDS, templates=[{"memory": memory} for memory in TEMPLATES])


def pod(amounts, hami_core=False):
    """A pod whose containers request (number, memory, cores); None is omitted."""
    annotations = {names.VNPU_MODE: names.MODE_HAMI_CORE} if hami_core else {}
    return PodView(requesting((CHIP, f"{CHIP}-memory", f"{CHIP}-core"), *amounts, annotations=annotations))


def verdict(amounts, *nodes, hami_core=False, parts_refused=False, config=CONFIG):
    view = pod(amounts, hami_core)
    requests = ChipRequest(tuple(npu_requests(DevicePod(view, config), config.ascend, MASTER)), parts_refused)
    part = fleet_of(*nodes, config=config, target=MASTER).parts["ascend"]
    return judge(requests, part, None)


# --- the scheduler's walk -------------------------------------------------------------------------------------------


def trimmed(memory):
    """The memory that is accounted of an NPU that is partitioned by templates."""
    for template in TEMPLATES:
        if memory <= template:
            return template
    return ALLOCATABLE if memory <= CAPACITY else 0


def walk(order, amounts, hami_core, parts_refused):
    """Serve the containers one after the other, each with the first NPUs that have room for it."""
    used = set()
    for number, memory, cores in amounts:
        wanted = memory or order[0][1]  # all the memory is that of the first NPU
        if not hami_core:
            wanted = trimmed(wanted) if wanted > 0 else wanted
            if number > 1 and not (parts_refused and memory) and trimmed(wanted) != ALLOCATABLE:
                return False
        able = [
            place
            for place, (split, size, total) in enumerate(order)
            if place not in used and split > 0 and size >= wanted and (100 if hami_core else total) >= cores
        ]
        if len(able) < number:
            return False
        used |= set(able[:number])
    return True


def some_order_works(npus, amounts, offered, hami_core, parts_refused):
    offered = offered or sum(split for split, _, _ in npus)  # with 0 its plugin may be restarting
    if sum(number or 0 for number, _, _ in amounts) > offered:
        return False
    served = [(1 if number is None else number, memory, cores or 0) for number, memory, cores in amounts]
    return any(walk(order, served, hami_core, parts_refused) for order in permutations(npus))


kinds = st.tuples(st.integers(0, 2), st.sampled_from([0, 2, 3, 6, 10, 12]), st.sampled_from([4, 8]))
nodes = st.lists(kinds, min_size=1, max_size=3).flatmap(
    lambda some: st.tuples(st.lists(st.sampled_from(some), min_size=1, max_size=4), st.sampled_from([0, 1, 2, 3, 4, 9]))
)
memories = st.none() | st.sampled_from([0, 1, 3, 4, 5, 6, 7, 10, 12, 13])
container_amounts = st.tuples(st.sampled_from([1, 1, 1, 2, 3]), memories, st.sampled_from([None, 0, 4, 8, 50, 101]))
memory_alone = st.tuples(st.none(), memories.filter(lambda memory: memory is not None), st.none())


SMALL = [(1, 3, 8), (1, 12, 4), (1, 12, 4)]


@examples(150)
@example([(SMALL, 9)], [(1, 5, 4), (1, 3, 4), (1, None, 8)], False, True).via(
    "the second container takes the first NPU"
)
@example([(SMALL, 9)], [(1, 5, 4), (1, 3, 8), (1, None, 4)], False, True).via(
    "the third container does not need all memory of the first NPU"
)
@example([(SMALL[:2], 9)], [(1, 3, None), (1, 3, None)], False, True).via("one each")
@example([([(4, 6, 8)] * 2, 9)], [(2, None, None)], False, True).via("small NPUs: no rule refuses them")
@example([([(4, 10, 8)] * 2, 9)], [(2, 3, None)], False, True).via("parts of several NPUs: a rule refuses them")
@given(
    st.lists(nodes, min_size=1, max_size=2),
    st.lists(container_amounts | memory_alone, min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_a_pod_fits_if_some_order_of_some_node_works(fleet, amounts, hami_core, parts_refused):
    built = [
        ascend_node(f"n{i}", npus, offered=offered, mode="true" if hami_core else None)
        for i, (npus, offered) in enumerate(fleet)
    ]
    expected = any(some_order_works(npus, amounts, offered, hami_core, parts_refused) for npus, offered in fleet)
    result = verdict(amounts, *built, hami_core=hami_core, parts_refused=parts_refused)
    assert isinstance(result, Fits) is expected
    assert isinstance(result, Fits | Never)
    if isinstance(result, Never) and result.reason in (Reason.NPUS, Reason.MEMORY, Reason.NPUS_TOGETHER):
        assert result.requested > result.most


# --- reasons, and unknown verdicts ----------------------------------------------------------------------------------

EIGHT = ascend_node("n0", [(4, 10, 8)] * 8, offered=32)


def test_the_node_that_has_the_most_is_named():
    result = verdict([(9, None, None)], EIGHT, ascend_node("n1", [(4, 10, 8)], offered=32))
    assert (result.reason, result.most, result.node) == (Reason.NPUS, 8, "n0")


@pytest.mark.parametrize("container", [(0, None, None), (0, 3, None), ("x", None, None), (1, "8Gi", None), (1, 3, -1)])
def test_an_invalid_request_is_left_to_other_rules(container):
    assert isinstance(verdict([(1, None, None), container], EIGHT), Unknown)


def test_too_many_kinds_are_unknown():
    """Unless another node takes the pod, or this one can never take it."""
    many = ascend_node("n0", [(1, 10 + kind, 8) for kind in range(MAX_KINDS + 1)])
    assert isinstance(verdict([(2, None, None)], many), Unknown)
    assert verdict([(1, None, None)], many, EIGHT) == Fits()
    assert verdict([(MAX_KINDS + 2, None, None)], many).reason is Reason.NPUS


def test_memory_without_a_resource_is_not_a_reason():
    """A chip can have no memory resource; then a pod requests a whole NPU, whose memory is unknown."""
    config = config_with_chips("Ascend910B3", **FIELDS, resourceMemoryName="")
    result = verdict([(1, None, None)], ascend_node("n0", [(4, 9, 8)]), config=config)
    assert (result.reason, result.resource) == (Reason.TOGETHER, CHIP)


@pytest.mark.parametrize(
    "amounts", [[(1, 3 + i, i % 8) for i in range(3000)], [(1, 3, i % 8) for i in range(15)] + [(1, 3, 9)]]
)
def test_large_pods_and_many_shapes_are_judged_quickly(amounts):
    nodes = [ascend_node(f"n{i}", [(4, 10 + i + kind, 8) for kind in range(MAX_KINDS)] * 2) for i in range(50)]
    fleet = fleet_of(*nodes, config=CONFIG, target=MASTER).parts["ascend"]
    assert len(fleet.shapes) == 50

    def judged() -> object:
        requests = npu_requests(DevicePod(pod(amounts), CONFIG), CONFIG.ascend, MASTER)
        return judge(ChipRequest(tuple(requests), parts_refused=True), fleet, None)

    assert isinstance(within(0.5, judged), Never)
