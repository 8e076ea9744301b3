"""deviceshare.GPUExclusiveRules: pods that match a rule get no card that another such pod has."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reviewing
from tests.audit.recording import recorded
from tests.devices.vgpu.test_gang import T4, fleet_of, role
from tests.questions.why.test_answer import CONFIG, gpu_node, job, pod, state
from tests.reviewing import request
from tests.strategies import hami_cards, needs, nodes_of
from webhook.devices.nodes import read_node
from webhook.devices.occupancy import BoundPodReader, occupancy
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.cycle import GangRequest
from webhook.devices.vgpu.explain_gang import lay_out
from webhook.devices.vgpu.feasibility import judge
from webhook.devices.vgpu.gang import NeverStarts, Starts, judge_gang
from webhook.devices.vgpu.slices import Need
from webhook.inputs.documents import Document
from webhook.live.devices import LiveCluster
from webhook.policy.policy import parse_policy
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.node_reasons import WaitVerdict
from webhook.questions.why.subject import WaitingObject
from webhook.settings.snapshot import SnapshotInputs
from webhook.volcano.scheduler import EXCLUSIVE_RULES, parse_scheduler_conf

RULES = [{"app": "train"}, {"tier": "gold", "team": "a"}]
TRAIN, GOLD, OTHER = {"app": "train"}, {"tier": "gold", "team": "a"}, {"app": "serve"}
FITS, WAITS, NEVER = WaitVerdict.FITS_NOW, WaitVerdict.NOT_NOW, WaitVerdict.NEVER
FIRST, SECOND = "GPU-gpu-a-0", "GPU-gpu-a-1"


def settings(nodes, rules=RULES, volcano="1.15.1"):
    """The inputs with a scheduler that has these rules."""
    arguments = {EXCLUSIVE_RULES: rules, "deviceshare.VGPUEnable": True}
    conf = {"tiers": [{"plugins": [{"name": "gang"}, {"name": "deviceshare", "arguments": arguments}]}]}
    policy = parse_policy({"target": {"volcano": volcano}}, "test")
    known = [read_node(raw, CONFIG) for raw in nodes]
    return SnapshotInputs(CONFIG, policy, known, parse_scheduler_conf(conf, "test"))


def labelled(labels, name="waits", node="", ids="", **limits):
    made = pod(name, node=node, ids=ids, **({"number": 1, "memory": 1000} | limits))
    made["metadata"]["labels"] = labels
    return made


def held(card, labels, name="old"):
    return labelled(labels, name, "gpu-a", f"{card},NVIDIA,1000,0:")


def why(raw, nodes, pods=(), *, exists=True, **more):
    inputs = settings(nodes, **more)
    live, _ = state(nodes, pods, policy=inputs.policy, scheduler=inputs.scheduler)
    return explain_waiting(WaitingObject(Document("a pod", raw), exists), live)


@pytest.mark.parametrize(
    "labels, pods, holds, verdict",
    [
        (TRAIN, 4, [], FITS),
        (TRAIN, 5, [], NEVER),  # than cards
        (OTHER, 5, [], FITS),
        (TRAIN, 4, [(FIRST, TRAIN)], WAITS),
        (TRAIN, 3, [(FIRST, TRAIN)], FITS),
        (TRAIN, 4, [(FIRST, OTHER)], FITS),
    ],
)
def test_the_pods_of_a_gang_get_cards_of_their_own(labels, pods, holds, verdict):
    nodes = [gpu_node("gpu-a"), gpu_node("gpu-b")]
    bound = [held(card, own, f"old-{card}") for card, own in holds]
    assert why(job(labels, pods, number=1, memory=1000), nodes, bound, exists=False).verdict is verdict


def test_a_gang_of_several_roles_is_not_refused_for_the_rules_of_one():
    mixed = job(TRAIN, 4, number=1, memory=1000)
    mixed["spec"]["tasks"].append(job(OTHER, 6, number=1, memory=1000)["spec"]["tasks"][0] | {"name": "other"})
    mixed["spec"]["minAvailable"] = 10
    assert why(mixed, [gpu_node("gpu-a"), gpu_node("gpu-b")], exists=False).verdict is FITS


def test_the_cards_that_rules_reserve_are_shown():
    inputs = settings([gpu_node("gpu-a")])
    snapshot = inputs.snapshot()
    pods = [
        BoundPodReader.under(CONFIG, snapshot.target).read(raw)
        for raw in (held(FIRST, TRAIN), held(FIRST, GOLD, "b"), held(SECOND, OTHER))
    ]
    found = occupancy(inputs.nodes, pods, snapshot.fleet)
    assert [card.reserved for card in found.nodes[0].cards] == [["app=train", "tier=gold,team=a"], []]


def test_the_instances_of_a_card_are_shared_whatever_the_rules_are():
    """In MIG mode the scheduler skips the rules."""
    config = reviewing.CONFIG  # with MIG geometries
    for mode, reserved in (("mig", []), ("hami-core", ["app=train"])):
        inputs = replace(settings([gpu_node("gpu-a", cards=1, split=7, mode=mode)]), config=config)
        snapshot = inputs.snapshot()
        raw = labelled(TRAIN, "old", "gpu-a", f"{FIRST}[group1-0],NVIDIA,1000,0:")
        bound = BoundPodReader.under(snapshot.config, snapshot.target).read(raw)
        (node,) = occupancy(inputs.nodes, [bound], snapshot.fleet).nodes
        assert (node.shape.mode, [card.reserved for card in node.cards]) == (mode, [reserved])


def test_a_gang_shares_the_instances_of_cards():
    inputs = replace(settings([gpu_node("gpu-a", cards=1, split=7, mode="mig")]), config=reviewing.CONFIG)
    snapshot = inputs.snapshot()
    live = LiveCluster(inputs, snapshot, ())
    answer = explain_waiting(WaitingObject(Document("a job", job(TRAIN, 2, number=1, memory=1000)), False), live)
    assert answer.verdict is FITS


def test_a_recorded_gang_is_replayed_with_its_labels():
    """The labels that rules read are in the audit log, and no others."""
    replay = pytest.importorskip("webhook.questions.replay.answer")  # unless the question is gone
    snapshot = settings([gpu_node("gpu-a")]).snapshot()
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


def test_roles_that_share_a_rule_are_not_said_to_start_in_another_order():
    """Whether they have cards enough together is not judged, and no order of the pods would help them."""
    gang = GangRequest((matching(2, 0b1), matching(2, 0b1, memory=5)), 4, by_index=True)
    assert judge_gang(gang, fleet_of(([T4] * 3, 1)), SearchBudget()) == Starts()


def test_equal_pods_of_two_roles_are_counted_as_one():
    gang = GangRequest((matching(2, 0b1), matching(2, 0b1)), 4, by_index=True)
    assert judge_gang(gang, fleet_of(([T4] * 3, 1)), SearchBudget()) == NeverStarts(None, 3)
