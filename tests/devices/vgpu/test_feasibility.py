"""Whether any empty node can take a pod, and the reason if none can."""

import pytest

from tests.devices.explaining import EMPTY, fleet_of
from tests.strategies import declared_shape, node_json, register
from webhook import names
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, Never, Reason, SearchBudget, Unknown
from webhook.devices.vgpu.cycle import RoleRequest
from webhook.devices.vgpu.eligibility import (
    MAX_REMEMBERED,
    UNCONSTRAINED,
    UUID_NODE_LIMIT,
    Constraints,
    eligible,
    read_constraints,
)
from webhook.devices.vgpu.feasibility import judge, slice_request
from webhook.devices.vgpu.fleet import Card
from webhook.devices.vgpu.gang import room_for
from webhook.pod.view import PodView
from webhook.volcano.target import Target

MASTER = Target(volcano=(1, 16, 0))
T4, A100 = ("NVIDIA-Tesla T4", 15360), ("NVIDIA-A100", 81920)
NUMBER, MEMORY, CORES = names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES


def fleet(*items, target=MASTER, declared=()):
    return fleet_of(*items, target=target, declared={"vgpu": tuple(declared)}).vgpu


def slice_request_of(*limits, annotations=None, target=MASTER):
    containers = [{"name": f"c{i}", "resources": {"limits": each}} for i, each in enumerate(limits)]
    view = PodView({"metadata": {"annotations": annotations or {}}, "spec": {"containers": containers}})
    return slice_request(DevicePod(view, EMPTY).slices, read_constraints(view, target), target)


def verdict(built, *limits, annotations=None, target=MASTER):
    return judge(slice_request_of(*limits, annotations=annotations, target=target), built)


# Of a container without memory, before Volcano 1.14: cards from the last to the first, and whether they hold the pod.
@pytest.mark.parametrize(
    "cards, split, limits, annotations, fits",
    [
        ([A100, T4], 10, [{NUMBER: 2}], None, True),  # the T4's 15,360 MiB of each
        ([T4, A100], 10, [{NUMBER: 2}], None, False),  # the A100's 81,920 MiB of each
        ([T4, A100], 10, [{NUMBER: 2, MEMORY: 15360}], None, True),
        ([T4, A100], 10, [{NUMBER: 1}], None, True),
        ([T4, A100], 10, [{NUMBER: 1}], {names.USE_GPUTYPE: "T4"}, False),  # the A100 is looked at all the same
        ([A100, T4], 10, [{NUMBER: 1}] * 6, None, True),  # five times 15,360 of the A100
        ([A100, T4], 10, [{NUMBER: 1}] * 7, None, False),
        ([T4, T4, A100, A100], 1, [{NUMBER: 1}] * 4, None, True),  # a full card is not looked at
    ],
)
def test_a_whole_card_before_1_14(cards, split, limits, annotations, fits):
    old = Target(volcano=(1, 13, 3))
    built = fleet(node_json("a", register(cards, split=split)), target=old)
    assert isinstance(verdict(built, *limits, annotations=annotations, target=old), Fits) is fits


def test_gangs_of_whole_cards_before_1_14_count_as_fitting_on_mixed_cards():
    old = Target(volcano=(1, 13, 3))
    role = RoleRequest(slice_request_of({NUMBER: 1}, target=old), 0, 99)
    for cards, known in (([T4, A100], False), ([A100, A100], True)):
        room = room_for(role, fleet(node_json("a", register(cards)), target=old), SearchBudget())
        assert (room is not None) is known


SMALL = node_json("small", register([T4, T4], prefix="S", split=2))


# Beside the rows of Volcano's TestGPUUUIDConstraints in tests/ported.
@pytest.mark.parametrize(
    "annotations, number, expected",
    [
        ({names.USE_GPUUUID: "GPU-0"}, 2, Never(Reason.NO_CARD)),
        ({names.NOUSE_GPUUUID: "GPU-1"}, 2, Never(Reason.NO_CARD)),
        ({names.NOUSE_GPUUUID: "GPU-unknown"}, 2, Fits()),
        ({names.USE_GPUUUID: "GPU-0,GPU-1", names.NOUSE_GPUUUID: "GPU-0"}, 1, Fits()),
        ({names.USE_GPUUUID: "GPU-0,GPU-1", names.NOUSE_GPUUUID: "GPU-0"}, 2, Never(Reason.NO_CARD)),
        ({names.USE_GPUUUID: "GPU-0", names.USE_GPUTYPE: "T4"}, 1, Never(Reason.NO_CARD)),
        ({names.USE_GPUUUID: "GPU-0", names.VGPU_MODE: "mig"}, 1, Never(Reason.NO_CARD)),
        ({names.USE_GPUUUID: "GPU-0", names.VGPU_MODE: "hami-core"}, 1, Fits()),
    ],
)
def test_uuids_limit_the_cards(annotations, number, expected):
    built = fleet(node_json("n", register([("NVIDIA-A", 16384)] * 2, split=4)))
    assert verdict(built, {NUMBER: number, MEMORY: 4096}, annotations=annotations) == expected


def test_a_card_refused_on_one_node_is_available_on_others():
    built = fleet(*[node_json(f"n{i}", register([T4], prefix=f"N{i}")) for i in range(3)])
    refused = {names.NOUSE_GPUUUID: "N0-0,N1-0"}
    assert verdict(built, {NUMBER: 1}, annotations=refused) == Fits()
    refused = {names.NOUSE_GPUUUID: "N0-0,N1-0,N2-0"}
    assert verdict(built, {NUMBER: 1}, annotations=refused) == Never(Reason.NO_CARD)


def test_cards_on_too_many_nodes_are_unknown():
    nodes = UUID_NODE_LIMIT + 1
    built = fleet(*[node_json(f"n{i}", register([T4], prefix=f"N{i}")) for i in range(nodes)])
    named = {names.USE_GPUUUID: ",".join(f"N{i}-0" for i in range(nodes))}
    assert isinstance(verdict(built, {NUMBER: 2}, annotations=named), Unknown)


def test_the_totals_of_a_node_limit_the_sum_of_requests():
    """The memory is not multiplied by the number of cards; a resource that the node does not offer counts as 0."""
    node = node_json("n", register([A100] * 4), offers={NUMBER: "4", MEMORY: "1000", CORES: "100"})
    assert verdict(fleet(node), {NUMBER: 4, MEMORY: 1000}) == Fits()
    assert verdict(fleet(node), {NUMBER: 1, MEMORY: 1001}) == Never(Reason.TOGETHER)
    assert verdict(fleet(node), {NUMBER: 1, MEMORY: 501}, {NUMBER: 1, MEMORY: 500}) == Never(Reason.TOGETHER)
    assert verdict(fleet(node), {NUMBER: 1, MEMORY: 1}, {CORES: 101}) == Never(Reason.TOGETHER)
    assert verdict(fleet(node), {NUMBER: 3}, {NUMBER: 2}) == Never(Reason.TOGETHER)


@pytest.mark.parametrize(
    "limits",
    [
        {NUMBER: 0, MEMORY: 1},
        {NUMBER: "x"},
        {NUMBER: 1, MEMORY: "8Gi"},
        {NUMBER: 1, CORES: -1},
        {NUMBER: 1, names.VGPU_MEMORY_PERCENTAGE: 50},
    ],
)
def test_an_invalid_request_is_left_to_other_rules(limits):
    assert slice_request_of(limits) is None
    assert slice_request_of({NUMBER: 1}, limits) is None


def test_a_declared_shape_can_take_the_pod():
    declared = declared_shape("h100", "hami-core", 1, [Card("NVIDIA-H100", 95000, 4)] * 2)
    assert verdict(fleet(SMALL), {NUMBER: 1, MEMORY: 90000}) == Never(Reason.MEMORY)
    assert verdict(fleet(SMALL, declared=[declared]), {NUMBER: 1, MEMORY: 90000}) == Fits()


def test_a_card_without_slices_is_not_eligible():
    result = eligible(UNCONSTRAINED, fleet(node_json("n", register([T4], split=0))))
    assert (result.cards, result.capacity) == ((), None)


def test_the_cache_of_constraints_is_bounded():
    built = fleet(SMALL)
    for index in range(3 * MAX_REMEMBERED):
        assert eligible(Constraints(use_types=(f"T{index}",)), built).complete
        assert len(built.memo) <= MAX_REMEMBERED
    assert eligible(Constraints(use_types=("T4",)), built).capacity == 15360


def test_an_unknown_card_can_be_on_a_declared_node():
    later = declared_shape("later", "hami-core", 1, [Card("NVIDIA-T4", 15360, 4)])
    wanted = {names.USE_GPUUUID: "GPU-to-come"}
    assert isinstance(verdict(fleet(SMALL, declared=[later]), {NUMBER: 1}, annotations=wanted), Unknown)
    assert verdict(fleet(SMALL), {NUMBER: 1}, annotations=wanted) == Never(Reason.NO_CARD)
