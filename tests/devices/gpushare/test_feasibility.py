"""Whether an empty node can take a pod's gpushare request, compared with a count of its cards."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.devices.explaining import EMPTY, fleet_of
from tests.examples import examples
from tests.strategies import gpushare_node
from webhook import names
from webhook.devices.requests import DevicePod
from webhook.devices.verdict import Fits, Never, Reason, Unknown
from webhook.pod.view import PodView

NUMBER, MEMORY = names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY


def pod(containers, init=()):
    """A pod whose containers request (number, memory), and its init containers (number, memory, sidecar)."""

    def container(number, memory, sidecar=False):
        written = {NUMBER: number, MEMORY: memory}
        limits = {name: amount for name, amount in written.items() if amount is not None}
        return {"resources": {"limits": limits}, **({"restartPolicy": "Always"} if sidecar else {})}

    spec = {
        "containers": [container(*each) for each in containers],
        "initContainers": [container(*each) for each in init],
    }
    return DevicePod(PodView({"spec": spec}), EMPTY)


def verdict(device_pod, *nodes):
    fleet = fleet_of(*nodes)
    return fleet.families["gpushare"].judge(device_pod, fleet.parts["gpushare"], None)


# --- a count of cards -----------------------------------------------------------------------------------------------


def healthy(number, total, unhealthy):
    """The memory of each healthy card."""
    cards = dict.fromkeys(range(number), total // number if number else 0)
    for part in (unhealthy or "").split(","):
        if re.fullmatch(r"[+-]?[0-9]+", part, re.ASCII):
            cards.pop(int(part), None)
    return list(cards.values())


def served(containers, init, which):
    """The amount that the scheduler's gpushare counts: init containers run before the others, one after the other."""
    return max([sum(each[which] or 0 for each in containers), *(each[which] or 0 for each in init)])


def peak(containers, init, which):
    """The largest amount in use at one time; sidecars keep running."""
    running = most = 0
    for each in init:
        amount = each[which] or 0
        most = max(most, running + amount)
        running += amount if each[2] else 0
    return max(most, running + sum(each[which] or 0 for each in containers))


def takes(node, containers, init):
    number, total, unhealthy, offered = node
    if 0 in offered and number:  # its plugin may be restarting
        offered = number, total
    if any(peak(containers, init, which) > offered[which] for which in (0, 1)):
        return False
    cards = healthy(number, total, unhealthy)
    count, memory = served(containers, init, 0), served(containers, init, 1)
    if memory:  # of the whole pod, on one card; the number takes others
        return any(card >= memory for card in cards) and (not count or count < len(cards))
    return count <= len(cards)


parts = st.sampled_from(["0", "1", "+1", "-0", "-1", " 1", "x", "", "3", "4", "007", "1.0", "٢", "9" * 30])
unhealthy = st.none() | st.lists(parts, min_size=1, max_size=4).map(",".join)
nodes = st.tuples(
    st.integers(0, 4),
    st.integers(0, 12),
    unhealthy,
    st.tuples(st.sampled_from([0, 2, 4, 9]), st.sampled_from([3, 12, 30])),
)
amounts = st.none() | st.integers(0, 6)
container_amounts = st.tuples(amounts, st.none()) | st.tuples(st.none(), amounts) | st.tuples(amounts, amounts)
inits = st.builds(lambda requested, sidecar: (*requested, sidecar), container_amounts, st.booleans())


@examples(200)
@example([(4, 12, None, (2, 30))], [(1, None)], [(1, None, True), (2, None, False)]).via(
    "an init container and a sidecar"
)
@example([(2, 12, None, (9, 3))], [(None, 6)], []).via("memory that a card has, and the node does not offer")
@given(st.lists(nodes, max_size=2), st.lists(container_amounts, min_size=1, max_size=3), st.lists(inits, max_size=3))
def test_a_pod_fits_if_some_node_has_the_cards(fleet, containers, init):
    built = [
        gpushare_node(f"n{i}", number, total, text, allocatable={NUMBER: str(offered[0]), MEMORY: str(offered[1])})
        for i, (number, total, text, offered) in enumerate(fleet)
    ]
    nothing = not any(served(containers, init, which) for which in (0, 1))
    result = verdict(pod(containers, init), *built)
    assert isinstance(result, Fits) is (nothing or any(takes(node, containers, init) for node in fleet))
    assert isinstance(result, Fits | Never)
    if isinstance(result, Never) and result.reason in (Reason.CARDS, Reason.MEMORY):
        assert result.requested > result.most


# --- reasons, and unknown verdicts ----------------------------------------------------------------------------------

NODE = gpushare_node("n0", 4, 64000, "1")


@pytest.mark.parametrize("container", [("x", None), (1, "8Gi"), ("-1", None), (None, "1.5")])
def test_an_invalid_request_is_left_to_other_rules(container):
    assert isinstance(verdict(pod([(1, None), container]), NODE), Unknown)


def test_requests_without_limits_are_judged_as_limits():
    """A repair copies them to the limits."""
    spec = {"containers": [{"resources": {"requests": {NUMBER: "4"}}}]}
    assert verdict(DevicePod(PodView({"spec": spec}), EMPTY), NODE).reason is Reason.CARDS
