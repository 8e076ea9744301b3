"""deviceshare.GPUExclusiveRules: pods that match a rule get no card that another such pod has."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reviewing
from tests.audit.recording import recorded
from tests.devices.vgpu.test_gang import T4, fleet_of, role
from tests.questions.why.clusters import CONFIG, Cluster, conf, gpu_node, job, written
from tests.reviewing import request
from tests.strategies import hami_cards, needs, nodes_of
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.cycle import GangRequest
from webhook.devices.vgpu.explain_gang import lay_out
from webhook.devices.vgpu.feasibility import judge
from webhook.devices.vgpu.gang import NeverStarts, Starts, judge_gang
from webhook.devices.vgpu.slices import Need
from webhook.questions.why.node_reasons import WaitVerdict

TRAIN, GOLD, OTHER = {"app": "train"}, {"tier": "gold", "team": "a"}, {"app": "serve"}
FITS, WAITS, NEVER = WaitVerdict.FITS_NOW, WaitVerdict.NOT_NOW, WaitVerdict.NEVER
FIRST, SECOND = 0, 1


def ruled(*nodes, pods=(), config=CONFIG):
    """A cluster whose scheduler has rules for two kinds of pods."""
    return Cluster(nodes, pods, config, scheduler=conf("gang", GPUExclusiveRules=[TRAIN, GOLD]))


def held(card, labels, **more):
    return written(name=f"{card}{labels}", node="gpu-a", labels=labels, slices={card: (1000, 0)}, **more)


@pytest.mark.parametrize(
    "labels, pods, holds, verdict",
    [
        (TRAIN, 4, [], FITS),
        (TRAIN, 5, [], NEVER),  # than cards
        (OTHER, 5, [], FITS),
        (TRAIN, 4, [held(FIRST, TRAIN)], WAITS),
        (TRAIN, 3, [held(FIRST, TRAIN)], FITS),
        (TRAIN, 4, [held(FIRST, OTHER)], FITS),
    ],
)
def test_the_pods_of_a_gang_get_cards_of_their_own(labels, pods, holds, verdict):
    cluster = ruled(gpu_node("gpu-a"), gpu_node("gpu-b"), pods=holds)
    assert cluster.why(job(labels, pods, number=1, memory=1000), exists=False).verdict is verdict


def test_a_gang_of_several_roles_is_not_refused_for_the_rules_of_one():
    mixed = job(TRAIN, 4, number=1, memory=1000)
    mixed["spec"]["tasks"].append(job(OTHER, 6, number=1, memory=1000)["spec"]["tasks"][0] | {"name": "other"})
    mixed["spec"]["minAvailable"] = 10
    assert ruled(gpu_node("gpu-a"), gpu_node("gpu-b")).why(mixed, exists=False).verdict is FITS


def test_the_cards_that_rules_reserve_are_shown():
    pods = [held(FIRST, TRAIN), held(FIRST, GOLD), held(SECOND, OTHER)]
    (node,) = ruled(gpu_node("gpu-a"), pods=pods).live.occupancy.nodes
    assert [card.reserved for card in node.cards] == [["app=train", "tier=gold,team=a"], []]


def test_the_instances_of_a_card_are_shared_whatever_the_rules_are():
    """In MIG mode the scheduler skips the rules."""
    ids = {"volcano.sh/vgpu-ids-new": "GPU-gpu-a-0[group1-0],NVIDIA,1000,0:"}
    for mode, reserved in (("mig", []), ("hami-core", ["app=train"])):
        pods = [held(FIRST, TRAIN, annotations=ids)]
        cluster = ruled(gpu_node("gpu-a", 1, 7, mode), pods=pods, config=reviewing.CONFIG)  # with MIG geometries
        (node,) = cluster.live.occupancy.nodes
        assert (node.shape.mode, [card.reserved for card in node.cards]) == (mode, [reserved])


def test_a_gang_shares_the_instances_of_cards():
    cluster = ruled(gpu_node("gpu-a", 1, 7, "mig"), config=reviewing.CONFIG)
    assert cluster.why(job(TRAIN, 2, number=1, memory=1000), exists=False).verdict is FITS


def test_a_recorded_gang_is_replayed_with_its_labels():
    """The labels that rules read are in the audit log, and no others."""
    replay = pytest.importorskip("webhook.questions.replay.answer")  # unless the question is gone
    snapshot = ruled(gpu_node("gpu-a")).live.snapshot
    decision = recorded(request(job(TRAIN | {"owner": "anna"}, 3, number=1, memory=1000)), snapshot)
    assert "gang-too-large" in [finding.rule for finding in decision.findings]
    (template,) = decision.request["templates"]
    assert template["pod"]["metadata"]["labels"] == TRAIN
    assert replay.Replayer(snapshot, snapshot).replay(decision).verdict is replay.ReplayVerdict.SAME


reserved_cards = st.builds(
    lambda card, slices, reserved: replace(card, used=(min(slices, card.split), 0, 0), reserved=reserved),
    hami_cards,
    st.integers(0, 3),
    st.integers(0, 3),
)


@given(nodes_of(reserved_cards), st.lists(needs, min_size=1, max_size=3), st.integers(0, 3))
def test_a_reserved_card_is_one_whose_slices_are_all_taken(cards, wanted, rules):
    """So the scheduler does it: it sets the number of slices to those in use while it looks at the pod."""

    def verdict(node, matched):
        usual = role(wanted, 1).request
        changed = replace(usual, totals={}, constraints=usual.constraints._replace(rules=matched))
        return type(judge(changed, fleet_of((node, 1))))

    capped = [replace(card, split=card.used[0]) if card.reserved & rules else card for card in cards]
    assert verdict(cards, rules) is verdict(capped, 0)


def matching(pods, rules, memory=4):
    """A role of pods with a slice each that match some rules."""
    made = role([Need(1, memory, 0)], pods)
    constraints = made.request.constraints._replace(rules=rules)
    return replace(made, request=replace(made.request, constraints=constraints))


@pytest.mark.parametrize(
    "roles, cards, placed",
    [
        ([(3, 0b1)], 2, (2,)),
        ([(2, 0b1)], 2, (2,)),
        ([(2, 0b1), (2, 0)], 2, (2, 2)),  # the second role shares the cards
        ([(2, 0b1), (2, 0b10)], 2, (2, 2)),
        ([(1, 0b1), (2, 0b11)], 2, (1, 1)),
    ],
)
def test_pods_of_a_gang_are_laid_out_on_cards_of_their_own(roles, cards, placed):
    gang = GangRequest(tuple([matching(*one) for one in roles]), sum(pods for pods, _ in roles), by_index=True)
    _, progress = lay_out(gang, fleet_of(([T4] * cards, 1)), 10_000)
    assert progress.placed == placed


@pytest.mark.parametrize(
    "memory, verdict",
    [
        (4, NeverStarts(None, 3)),  # equal pods of two roles are counted as one
        (
            5,
            Starts(),
        ),  # whether they have cards enough together is not judged, and no order of the pods would help them
    ],
)
def test_roles_that_share_a_rule(memory, verdict):
    gang = GangRequest((matching(2, 0b1), matching(2, 0b1, memory)), 4, by_index=True)
    assert judge_gang(gang, fleet_of(([T4] * 3, 1)), SearchBudget()) == verdict
