"""The API server sends a new pod if the webhook has a finding or a repair for it, and no other pod."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.deploy.calling import called
from tests.deploy.clusters import (
    CLUSTERS,
    DATA,
    HIDING,
    RENAMED,
    USUAL,
    WITHOUT_CONFIG,
    Cluster,
    assert_sent,
    cluster,
    outcome_of,
    request,
)
from tests.deploy.drawing import ONE_THING, annotated, plain_pods, pods
from tests.reviewing import RECORDED
from tests.rules.test_cases import ALL, request_of, snapshot_of
from tests.workloads import workload
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.review.endpoints import validate

NATIVE = {"specific-gpu-pod", "test-vgpu-compatible"}  # their cards are those of NVIDIA's own device plugin
# Pods without devices, or without a change that rules read.
NOT_SENT = {
    "deployment-dep.update",
    "gpu-pod1.delete",
    "gpu-pod1.update",
    "plain-pod",
    "plain-pod.ephemeral",
    "plain-pod.update",
}


@each_case("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_requests_with_findings_are_sent(file: Path):
    admission_request = json.loads(file.read_bytes())["request"]
    assert_sent(admission_request, USUAL)
    sent = called(USUAL.entries, admission_request, "/mutate") | called(USUAL.entries, admission_request, "/validate")
    assert bool(sent) == (file.stem not in NOT_SENT)


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_cards_of_nvidias_own_plugin_are_sent_to_be_repaired_only_if_the_count_has_their_name(name: str):
    admission_request = json.loads((DATA / "reviews" / f"{name}.json").read_bytes())["request"]
    assert called(USUAL.entries, admission_request, "/mutate") == set()
    assert called(USUAL.entries, admission_request, "/validate") == {"dialects"}  # which only warns
    assert_sent(admission_request, RENAMED)
    assert called(RENAMED.entries, admission_request, "/mutate") == {"repair"}


@given(pods(), CLUSTERS)
def test_each_new_pod_with_findings_is_sent(pod: dict[str, Any], where: Cluster):
    assert_sent(request(pod), where)


OWN_SETTINGS = {"deviceConfig", "vnpus", "policy"}  # by which other requests are sent


@pytest.mark.parametrize("rule", ALL)
def test_what_a_rule_finds_in_its_cases_is_sent(rule: str):
    for case in ALL[rule]:
        reviewed = request_of(case)
        if OWN_SETTINGS.isdisjoint(case) and (reviewed.group, reviewed.kind) in {("", "Pod"), *WORKLOAD_KINDS}:
            more = {"operation": reviewed.operation, "subResource": reviewed.sub_resource}
            more |= {"oldObject": reviewed.old_object, "namespace": reviewed.namespace}
            where = Cluster(snapshot_of(case), USUAL.entries)
            assert_sent(request(reviewed.object, userInfo={"username": reviewed.user}, **more), where)


@given(plain_pods(), st.sampled_from([USUAL, RENAMED, WITHOUT_CONFIG]))
def test_a_plain_pod_is_never_sent(pod: dict[str, Any], where: Cluster):
    for path in ("/mutate", "/validate"):
        assert called(where.entries, request(pod), path) == set()


@each_case("pod", ONE_THING)
def test_a_pod_with_one_relevant_field_is_sent(pod: dict[str, Any]):
    """One field at a time: two could hide an error in the condition of one of them."""
    admission_request = request(pod)
    assert_sent(admission_request, USUAL)
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    owner = request(workload(WORKLOAD_KINDS["apps", "Deployment"], [template]))
    assert_sent(owner, USUAL)
    (entry,) = called(USUAL.entries, admission_request, "/validate")
    assert entry in ("pods", "exposed")
    assert called(USUAL.entries, owner, "/validate") == {"workloads"}


@given(pods())
def test_a_pod_that_only_gets_warnings_does_not_wait_for_the_webhook(pod: dict[str, Any]):
    """The entry `exposed` fails open, so nothing that it sends may be refused."""
    if called(USUAL.entries, request(pod), "/validate") == {"exposed"}:
        assert outcome_of(validate, request(pod), USUAL.snapshot).allowed


@given(pods() | plain_pods())
def test_every_pod_is_sent_once_where_devices_are_hidden(pod: dict[str, Any]):
    assert len(called(HIDING.entries, request(pod), "/mutate")) == 1


@pytest.mark.parametrize(
    ("namespace", "exempt"), [("kube-system", True), ("vgpu-webhook", False), ("volcano-system", False)]
)
def test_only_kube_system_is_exempt(namespace: str, *, exempt: bool):
    admission_request = json.loads((DATA / "reviews" / "gpu-pod1.json").read_bytes())["request"] | {
        "namespace": namespace
    }
    assert (called(USUAL.entries, admission_request, "/validate") == set()) is exempt


def test_no_label_exempts_a_pod():
    assert all("objectSelector" not in entry.webhook for entry in USUAL.entries)


def test_a_resource_name_with_quotes_stays_one_string():
    where = cluster({"resourceCountName": 'a"] == 1 || true || ["\\'})
    assert called(where.entries, request(annotated(None)), "/mutate") == set()
