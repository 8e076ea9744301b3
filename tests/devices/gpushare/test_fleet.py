"""Nodes that offer gpushare cards become shapes."""

import pytest

from tests.devices.explaining import fleet_of
from tests.strategies import device_node, gpushare_node
from tests.timing import within
from webhook import names
from webhook.devices.model import MAX_DEVICES

NUMBER, MEMORY = names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY


def shapes(*items):
    return [
        (shape.names, len(shape.devices), shape.devices[0].memory if shape.devices else 0, *shape.offered.values())
        for shape in fleet_of(*items).by_family["gpushare"]
    ]


@pytest.mark.parametrize(
    "text, left",
    [
        ("", 4), ("0,1", 2), ("0,0,+0,-0,00", 3), ("1 ", 4), ("x,1,", 3), ("GPU-0", 4), ("1_0", 4), ("²", 4),
        ("0,1,2,3", 0), ("0" * 40 + "1", 3), ("1" * 5000, 4),
    ],
)  # fmt: skip
def test_unhealthy_cards_are_dropped(text, left):
    assert shapes(gpushare_node("n0", 4, 64000, text)) == [(("n0",), left, 16000 if left else 0, 4, 64000)]


@pytest.mark.parametrize("capacity", [{}, {NUMBER: "4"}, {MEMORY: "64000"}])
def test_a_node_needs_both_resources(capacity):
    assert shapes(device_node("n0", capacity=capacity)) == []


def test_capacity_gives_the_cards_and_allocatable_the_offered_amounts():
    node = gpushare_node("n0", 4, 64000, allocatable={NUMBER: "3", MEMORY: "1"})
    assert shapes(node, gpushare_node("n1", 4, 64000, allocatable={})) == [
        (("n0",), 4, 16000, 3, 1),
        (("n1",), 4, 16000, 0, 0),
    ]


def test_a_node_with_a_huge_capacity_is_read_quickly():
    unhealthy = ",".join(map(str, range(0, 2**31, 2**21)))
    result = within(0.5, lambda: shapes(gpushare_node("n0", 2**31 - 1, 2**40, unhealthy)))
    assert result == [(("n0",), MAX_DEVICES, 512, 2**31 - 1, 2**40)]
