"""The list of waiting pods: each has the verdict that it has by itself."""

import json
from dataclasses import replace

from tests.questions.why.test_answer import A100, CONFIG, pod, state
from tests.reviewing import calls_of
from tests.strategies import node_json, register
from webhook.devices.nodes import read_node
from webhook.live.cluster import FilePods, LiveSource
from webhook.live.objects import LiveObjects
from webhook.policy.policy import default_policy
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.listing import MAX_LISTED, NOT_EXAMINED, list_waiting
from webhook.questions.why.node_reasons import PodAnswer, WaitVerdict, rank
from webhook.questions.why.waiting import FileSource, WaitingState, Wanted
from webhook.settings.snapshot import SnapshotInputs

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


def test_each_pod_has_the_verdict_that_it_has_by_itself():
    waiting = WaitingState(*state(NODES, PODS))
    found = list_waiting(waiting).pods
    by_itself = {
        key: explain_waiting(waiting.subject(Wanted(key)), waiting.live) for key in waiting.objects.wait_for_devices
    }
    assert {(each.namespace, each.name): (each.verdict, each.summary) for each in found} == {
        key: (answer.verdict, answer.summary) for key, answer in by_itself.items()
    }
    assert [each.name for each in found] == ["elsewhere", "never", "other-namespace", "gated", "replica", "fits"]
    assert [rank(each.verdict) for each in found] == sorted([rank(each.verdict) for each in found], reverse=True)
    assert [each.name for each in list_waiting(waiting, ["team"]).pods] == ["other-namespace"]


def test_nodes_answer_pods_of_all_namespaces_at_once():
    for count in (1, 5):
        waiting = WaitingState(*state(NODES, [pod("a", f"team-{at}", **BIG) for at in range(count)]))
        assert calls_of(PodAnswer.__init__, list_waiting, waiting) == 1


def test_the_list_is_bounded_by_number_and_by_time():
    waiting = WaitingState(*state(NODES, [pod(f"pod-{number}", **SMALL) for number in range(MAX_LISTED + 5)]))
    found = list_waiting(waiting)
    assert (len(found.pods), found.more) == (MAX_LISTED, 5)
    assert {each.verdict for each in found.pods} == {WaitVerdict.FITS_NOW}
    late = list_waiting(replace(waiting, explained={}), seconds=-1.0).pods
    assert {(each.verdict, each.summary) for each in late} == {(WaitVerdict.UNKNOWN, NOT_EXAMINED)}


def test_files_are_read_again_once_they_have_changed(tmp_path):
    file = tmp_path / "pods.json"
    live, _ = state(NODES)
    inputs = SnapshotInputs(CONFIG, default_policy(), [read_node(raw, CONFIG) for raw in NODES])
    pods, reads = FilePods([file], lambda: live.snapshot), []
    followed = LiveSource(lambda: (inputs, live.snapshot), pods)
    source = FileSource(pods, followed, lambda: reads.append("nodes") or NODES, print)
    lives = [live]
    for names in (["a", "b"], ["c"]):
        file.write_text(json.dumps({"kind": "List", "items": [pod(name, **BIG) for name in names]}))
        assert [each.name for each in list_waiting(source.waiting()).pods] == names
        assert calls_of(LiveObjects.add, source.waiting) == calls_of(LiveObjects.add, followed) == 0
        assert followed() not in lives
        lives.append(followed())
        assert calls_of(explain_waiting, lambda: list_waiting(source.waiting())) == 0
        assert calls_of(LiveObjects.add, source.read, Wanted(("default", names[0]))) == 0
    assert calls_of(LiveObjects.add, source.read, Wanted(("default", "a"))) == 1
    assert calls_of(LiveObjects.add, source.whole) == 1
    assert len(reads) == 4  # for each content of the file, and each pod or state that is not kept
