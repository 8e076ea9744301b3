"""The list of waiting pods: each has the verdict that it has by itself."""

from tests.strategies import node_json, register
from tests.why.test_why import A100, CONFIG, pod
from webhook.devices.nodes import read_node
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import SnapshotInputs
from webhook.why.answer import explain_waiting
from webhook.why.listing import MAX_LISTED, list_waiting
from webhook.why.live import LiveCluster, LiveObjects
from webhook.why.node_reasons import WaitVerdict, rank
from webhook.why.waiting import WaitingState, Wanted

BIG, SMALL = {"number": 1, "memory": 90000}, {"number": 1, "memory": 1000}
NODES = [node_json("gpu-0", register([A100, A100]))]
ELSEWHERE = {"nodeSelector": {"zone": "b"}}
GATED = {"schedulingGates": [{"name": "wait"}]}
PODS = [
    pod("fits", **SMALL),
    pod("replica", **SMALL, spec={"hostname": "replica"}),
    pod("elsewhere", **SMALL, spec=ELSEWHERE),
    pod("gated", **SMALL, spec=GATED),
    pod("never", **BIG),
    pod("other-namespace", "team", **BIG),
]
PODS[0]["metadata"]["creationTimestamp"] = "2026-11-20T09:00:00Z"


def state_of(pods):
    nodes = [read_node(raw, CONFIG) for raw in NODES]
    inputs = SnapshotInputs(config=CONFIG, policy=default_policy(), nodes=nodes)
    objects = LiveObjects(inputs.snapshot())
    for raw in pods:
        objects.add(raw)
    return WaitingState(LiveCluster(inputs, objects.snapshot, objects.bound), objects)


def test_each_pod_has_the_verdict_that_it_has_by_itself():
    state = state_of(PODS)
    found = list_waiting(state).pods
    by_itself = {key: explain_waiting(state.subject(Wanted(key)), state.live) for key in state.objects.wait_for_devices}
    assert {(each.namespace, each.name): (each.verdict, each.summary) for each in found} == {
        key: (answer.verdict, answer.summary) for key, answer in by_itself.items()
    }
    assert [each.name for each in found] == ["elsewhere", "never", "other-namespace", "gated", "replica", "fits"]
    assert [rank(each.verdict) for each in found] == sorted([rank(each.verdict) for each in found], reverse=True)
    assert [each.name for each in list_waiting(state, ["team"]).pods] == ["other-namespace"]


def test_the_list_is_bounded_by_number_and_by_time():
    state = state_of([pod(f"pod-{number}", **SMALL) for number in range(MAX_LISTED + 5)])
    found = list_waiting(state)
    assert (len(found.pods), found.more, {each.verdict for each in found.pods}) == (
        MAX_LISTED,
        5,
        {WaitVerdict.FITS_NOW},
    )
    assert {each.verdict for each in list_waiting(state, seconds=-1.0).pods} == {WaitVerdict.UNKNOWN}
