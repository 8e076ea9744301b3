"""Events about waiting pods: their names and limits. tests/e2e/test_events.py writes them to a real API server."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from webhook.cli.main import main
from webhook.devices.ledger import BoundPod, LedgerFinding, LedgerRule
from webhook.devices.nearest import Removal
from webhook.questions.why.events import TokenBucket, assignment_event, event_of, is_settled
from webhook.questions.why.listing import WaitingPod
from webhook.questions.why.node_reasons import NodeHolder, WaitVerdict

NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)
HOLDER = NodeHolder("team-a", "train-0", 1, 4000, 0, "", terminating=False)
POD = WaitingPod(
    namespace="team",
    name="a.b",
    uid="1",
    since="2026-11-24T08:59:30Z",
    verdict=WaitVerdict.NOT_NOW,
    summary="no node takes it now",
    reason="memory",
    node="gpu-a",
    holder=HOLDER,
)


def event(pod):
    return event_of(pod, "console-0", NOW, names_others=True)


def name(pod):
    return event(pod)["metadata"]["name"]


def test_what_others_hold_is_no_new_event():
    others = {"node": "gpu-b", "reason": "cores", "holder": None, "ends": "a/b", "change": Removal("x")}
    assert name(replace(POD, **others)) == name(POD)


@pytest.mark.parametrize(
    "change", [{"uid": "2"}, {"verdict": WaitVerdict.FITS_NOW}, {"node": "", "reason": "queue"}], ids=str
)
def test_another_pod_or_verdict_is_a_new_event(change):
    assert name(replace(POD, **change)) != name(POD)


def test_an_event_is_about_the_pod_by_its_uid_and_within_the_limits_of_the_api_server():
    long = replace(POD, name=f"{'a.' * 120}b", node="", summary="é\n" * 2000)
    found = event(long)
    assert found["regarding"] == {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": long.name, "uid": "1"}
    named, note = found["metadata"]["name"], found["note"]
    assert (len(named) <= 253, ".." in named, len(note.encode()) <= 1024, "\n" in note) == (True, False, True, False)
    assert event(POD)["note"] == "gpu-a is held by team-a/train-0: 4000 MiB on 1 card"


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ({}, "gpu-a is held by a pod of another namespace"),
        ({"ends": "team-a/train-0"}, "once a pod of another namespace has ended it fits on gpu-a"),
        ({"ends": "team/train-0"}, "once team/train-0 has ended it fits on gpu-a"),
        ({"holder": replace(HOLDER, namespace="team")}, "gpu-a is held by team/train-0: 4000 MiB on 1 card"),
    ],
)
def test_a_pod_of_another_namespace_is_not_named(state, note):
    assert event_of(replace(POD, **state), "console-0", NOW, names_others=False)["note"] == note


def test_a_pod_whose_assignment_another_one_gets_has_an_event():
    finding = LedgerFinding(LedgerRule.LEFT_BEHIND, "gpu-a", "team/a", "the pod ended", "delete the pod now")
    found = assignment_event(BoundPod("team", "a", "1", "gpu-a"), finding, "console-0", NOW)
    assert (found["reason"], found["type"]) == ("VGPUAssignmentLeftBehind", "Warning")
    assert found["note"] == "the pod ended; delete the pod now"
    assert found["regarding"]["uid"] == "1"


def test_the_scheduler_has_a_minute_unless_the_pod_never_fits():
    assert is_settled(replace(POD, verdict=WaitVerdict.NEVER, since=""), NOW)
    assert [is_settled(POD, NOW + timedelta(seconds=later)) for later in (29, 30)] == [False, True]
    assert not is_settled(replace(POD, since="soon"), NOW)


def test_the_rate_is_bounded_after_a_burst(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 1e6)
    bucket = TokenBucket(rate=10.0, burst=5)
    waits = [bucket.take() for _ in range(25)]
    assert waits[:5] == [0.0] * 5
    assert waits[-1] == 2.0


@pytest.mark.parametrize("more", [[], ["--sample"], ["--cluster", "--pods", __file__]])
def test_events_need_a_cluster(capsys, more):
    assert main(["console", "--events", *more]) == 2
    assert "--events is about the pods of a cluster" in capsys.readouterr().err
