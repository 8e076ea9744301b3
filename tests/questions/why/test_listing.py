"""The list of waiting pods: each has the verdict that it has by itself."""

import json
from dataclasses import replace

from tests.questions.why.clusters import Cluster, gpu_node, pod
from tests.reviewing import calls_of
from webhook.document_review import review_any_kind
from webhook.live.objects import LiveObjects
from webhook.live.reader import FileReader, Reports, Wanted, read_statuses
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.listing import MAX_LISTED, NOT_EXAMINED, list_waiting
from webhook.questions.why.node_reasons import PodAnswer, WaitVerdict, rank
from webhook.questions.why.subject import wanted_object

BIG, SMALL = {"number": 1, "memory": 90000}, {"number": 1, "memory": 1000}
NODES = [gpu_node("gpu-0")]
PODS = [
    pod("fits", **SMALL),
    pod("replica", **SMALL, spec={"hostname": "replica"}),
    pod("elsewhere", **SMALL, spec={"nodeSelector": {"zone": "b"}}),
    pod("gated", **SMALL, spec={"schedulingGates": [{"name": "wait"}]}),
    pod("never", **BIG),
    pod("other-namespace", "team", **BIG),
]
PODS[0]["metadata"]["creationTimestamp"] = "2026-11-20T09:00:00Z"


def test_each_pod_has_the_verdict_that_it_has_by_itself():
    waiting = Cluster(NODES, PODS).state
    found = list_waiting(waiting).pods
    by_itself = {
        key: explain_waiting(wanted_object(waiting, Wanted(key)), waiting.live)
        for key in waiting.objects.wait_for_devices
    }
    assert {(each.namespace, each.name): (each.verdict, each.summary) for each in found} == {
        key: (answer.verdict, answer.summary) for key, answer in by_itself.items()
    }
    assert [each.name for each in found] == ["elsewhere", "never", "other-namespace", "gated", "replica", "fits"]
    assert [rank(each.verdict) for each in found] == sorted([rank(each.verdict) for each in found], reverse=True)
    assert [each.name for each in list_waiting(waiting, ["team"]).pods] == ["other-namespace"]


def test_nodes_answer_pods_of_all_namespaces_at_once():
    for count in (1, 5):
        waiting = Cluster(NODES, [pod("a", f"team-{at}", **BIG) for at in range(count)]).state
        assert calls_of(PodAnswer.__init__, list_waiting, waiting) == 1
        assert calls_of(review_any_kind, list_waiting, replace(waiting, explained={})) == count, "each is reviewed once"


def test_the_list_is_bounded_by_number_and_by_time():
    waiting = Cluster(NODES, [pod(f"pod-{number}", **SMALL) for number in range(MAX_LISTED + 5)]).state
    found = list_waiting(waiting)
    assert (len(found.pods), found.more) == (MAX_LISTED, 5)
    assert {each.verdict for each in found.pods} == {WaitVerdict.FITS_NOW}
    late = list_waiting(replace(waiting, explained={}), seconds=-1.0).pods
    assert {(each.verdict, each.summary) for each in late} == {(WaitVerdict.UNKNOWN, NOT_EXAMINED)}


def test_files_are_read_again_once_they_have_changed(tmp_path):
    file = tmp_path / "pods.json"
    cluster, reads = Cluster(NODES), []
    statuses = lambda: reads.append("nodes") or read_statuses(NODES)  # noqa: E731
    reader = FileReader([file], lambda: (cluster.inputs, cluster.live.snapshot), statuses, Reports(print))
    lives = [cluster.live]
    for names in (["a", "b"], ["c"]):
        file.write_text(json.dumps({"kind": "List", "items": [pod(name, **BIG) for name in names]}))
        assert [each.name for each in list_waiting(reader.waiting()).pods] == names
        assert calls_of(LiveObjects.add, reader.waiting) == calls_of(LiveObjects.add, reader.live) == 0
        assert reader.live() not in lives
        lives.append(reader.live())
        assert calls_of(explain_waiting, lambda: list_waiting(reader.waiting())) == 0
        assert calls_of(LiveObjects.add, reader.read, Wanted(("default", names[0]))) == 0
    assert calls_of(LiveObjects.add, reader.read, Wanted(("default", "a"))) == 1
    assert calls_of(LiveObjects.add, reader.whole) == 1
    assert len(reads) == 4  # for each content of the file, and each pod or state that is not kept
