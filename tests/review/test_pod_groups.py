"""A PodGroup is reviewed if its queue is new: however pods get into a queue, it is by one."""

import json
from typing import Any

import pytest

from tests.audit.recording import recorded
from tests.deploy.calling import called
from tests.deploy.clusters import USUAL, request
from tests.reviewing import snapshot
from webhook import names
from webhook.review.endpoints import review
from webhook.rules.context import Collections
from webhook.snapshot import Snapshot
from webhook.volcano.queues import Queue, Queues
from webhook.wire.codec import to_request
from webhook.wire.models import Request

CAPACITY = [{"name": "capacity", "enableHierarchy": True}]


def settings(**policy: Any) -> Snapshot:
    queues = Collections(Queues([Queue("root"), Queue("default")]))
    return snapshot(config=USUAL.snapshot.config, plugins=CAPACITY, collections=queues, **policy)


def group(queue: str, phase: str = "Pending") -> dict[str, Any]:
    metadata, spec = {"name": "g", "namespace": "default"}, {"queue": queue} if queue else {}
    fields = {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
    return {"apiVersion": names.QUEUE_API, "kind": "PodGroup", **fields}


def decoded(admission_request: dict[str, Any]) -> Request:
    return to_request({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": admission_request})


@pytest.mark.parametrize(
    ("old", "new", "sent", "allowed"),
    [
        (None, group("root"), True, False),
        (None, group("default"), True, True),
        (None, group(""), True, True),
        (group("default"), group("root"), True, False),
        (group("root"), group("default"), True, True),
        (group("root"), group("root", "Running"), False, True),
    ],
)
def test_a_new_queue_is_reviewed(old: Any, new: Any, sent: bool, allowed: bool):
    admission_request = request(new, "UPDATE" if old else "CREATE", oldObject=old)
    assert called(USUAL.entries, admission_request, "/validate") == ({"pod-groups"} if sent else set())
    known = settings(workloads="off")
    outcome = review(decoded(admission_request), known)
    assert (outcome.reviewed, outcome.allowed) == (sent, allowed)
    if sent:
        decision = recorded(decoded(admission_request), known)
        assert json.loads(json.dumps(decision.request))["workload"].get("spec", {}) == new["spec"]


def test_enforcement_and_exemptions_hold_for_pod_groups():
    created = decoded(request(group("root")))
    assert review(created, settings(enforcement="warn")).allowed
    assert not review(created, settings(namespaces=[{"match": ["default"], "exempt": True}])).reviewed


def test_a_pod_group_that_is_too_large_to_be_read_is_refused():
    created = decoded(request(group("default")))._replace(object=None, too_large="it has too many values")
    outcome = review(created, settings())
    assert not outcome.allowed
    assert outcome.violations[0].message == "the PodGroup is too large: it has too many values; write less at a time"
