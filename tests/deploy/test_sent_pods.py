"""New pods: nothing that a rule says something of slips by, and no other pod is delayed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.deploy.asking import (
    CLUSTERS,
    DATA,
    HIDING,
    RENAMED,
    USUAL,
    WITHOUT_CONFIG,
    Cluster,
    assert_nothing_slips_by,
    cluster,
    request,
)
from tests.deploy.calling import called
from tests.deploy.drawing import ONE_THING, annotated, plain_pods, pods
from tests.reviewing import RECORDED
from tests.workloads import workload
from webhook.pod.workload_kinds import WORKLOAD_KINDS

# No device, another plugin's, or nothing changes that rules read.
NATIVE = {"specific-gpu-pod", "test-vgpu-compatible"}
NOT_SENT = NATIVE | {
    "deployment-dep.update",
    "gpu-pod1.delete",
    "gpu-pod1.update",
    "plain-pod",
    "plain-pod.ephemeral",
    "plain-pod.update",
}


@each_case("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_reviews(file: Path):
    asked = json.loads(file.read_bytes())["request"]
    assert_nothing_slips_by(asked, USUAL)
    sent = called(USUAL.entries, asked, "/mutate") | called(USUAL.entries, asked, "/validate")
    assert bool(sent) == (file.stem not in NOT_SENT)


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_recorded_reviews_where_the_count_has_their_name(name: str):
    asked = json.loads((DATA / "reviews" / f"{name}.json").read_bytes())["request"]
    assert_nothing_slips_by(asked, RENAMED)
    assert called(RENAMED.entries, asked, "/mutate") == {"repair"}


@given(pods(), CLUSTERS)
def test_each_new_pod_with_findings_is_sent(pod: dict[str, Any], where: Cluster):
    assert_nothing_slips_by(request(pod), where)


@given(plain_pods(), st.sampled_from([USUAL, RENAMED, WITHOUT_CONFIG]))
def test_a_pod_without_all_that_is_never_sent(pod: dict[str, Any], where: Cluster):
    for path in ("/mutate", "/validate"):
        assert called(where.entries, request(pod), path) == set()


@each_case("pod", ONE_THING)
def test_one_thing_is_enough(pod: dict[str, Any]):
    """Each by itself, since one of them hides what the conditions think of another."""
    asked = request(pod)
    assert_nothing_slips_by(asked, USUAL)
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    owner = request(workload(WORKLOAD_KINDS["apps", "Deployment"], [template]))
    assert_nothing_slips_by(owner, USUAL)
    assert called(USUAL.entries, asked, "/validate") == {"pods"}
    assert called(USUAL.entries, owner, "/validate") == {"workloads"}


@given(pods() | plain_pods())
def test_where_devices_are_hidden_every_pod_is_sent_once(pod: dict[str, Any]):
    assert len(called(HIDING.entries, request(pod), "/mutate")) == 1


@pytest.mark.parametrize(
    ("namespace", "exempt"), [("kube-system", True), ("vgpu-webhook", False), ("volcano-system", False)]
)
def test_only_the_namespace_of_the_cluster_is_exempt(namespace: str, *, exempt: bool):
    asked = json.loads((DATA / "reviews" / "gpu-pod1.json").read_bytes())["request"] | {"namespace": namespace}
    assert (called(USUAL.entries, asked, "/validate") == set()) is exempt


def test_no_label_of_a_pod_opts_out():
    assert all("objectSelector" not in entry.webhook for entry in USUAL.entries)


def test_a_strange_name_stays_one_string():
    where = cluster({"resourceCountName": 'a"] == 1 || true || ["\\'})
    assert called(where.entries, request(annotated(None)), "/mutate") == set()
