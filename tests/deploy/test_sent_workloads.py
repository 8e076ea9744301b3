"""Workloads: sent where the pods of a template that is new would be, else never."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deploy.asking import CLUSTERS, USUAL, Cluster, answer, assert_nothing_slips_by, request, says_something
from tests.deploy.calling import called
from tests.deploy.drawing import ASSIGNMENTS, SHOWN, plain_pods, pod_with, pods, workload
from webhook import names
from webhook.pod.templates import WORKLOADS
from webhook.review import validate

templates = pods().map(lambda pod: {"metadata": pod["metadata"], "spec": pod["spec"]})
plain_templates = plain_pods().map(lambda pod: {"metadata": pod["metadata"], "spec": pod["spec"]})
kinds = st.sampled_from(sorted(WORKLOADS))


@given(
    kinds,
    st.lists(templates, min_size=1, max_size=2),
    st.none() | st.lists(templates, min_size=1, max_size=2),
    CLUSTERS,
)
def test_nothing_that_a_rule_says_of_a_template_slips_by(
    kind: tuple[str, str], now: list[dict[str, Any]], before: list[dict[str, Any]] | None, where: Cluster
):
    old = None if before is None else workload(*kind, before)
    assert_nothing_slips_by(request(workload(*kind, now), "CREATE" if old is None else "UPDATE", oldObject=old), where)


@pytest.mark.parametrize("kind", sorted(WORKLOADS))
@pytest.mark.parametrize(
    "pod",
    [
        pod_with(annotations={ASSIGNMENTS[0]: ""}),
        pod_with(**SHOWN),
        pod_with("initContainers", resources={"limits": {names.VGPU_NUMBER: "1"}}),
        pod_with(resources={"limits": {"volcano.sh/vgpu-num": "1"}}),
    ],
    ids=["annotation", "variable", "device", "misspelt device"],
)
def test_every_kind_of_workload_is_sent(kind: tuple[str, str], pod: dict[str, Any]):
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    asked = request(workload(*kind, [template]))
    assert says_something(answer(validate, asked, USUAL.snapshot))
    assert called(USUAL.entries, asked, "/validate") == {"workloads"}


@given(kinds, st.lists(plain_templates, min_size=1, max_size=2))
def test_a_workload_of_plain_pods_is_never_sent(kind: tuple[str, str], now: list[dict[str, Any]]):
    assert called(USUAL.entries, request(workload(*kind, now)), "/validate") == set()


@given(kinds, st.lists(templates, min_size=1, max_size=2))
def test_a_workload_whose_templates_stay_is_never_sent(kind: tuple[str, str], same: list[dict[str, Any]]):
    new, old = workload(*kind, same), workload(*kind, same)
    new["metadata"]["labels"] = {"touched": "yes"}
    if kind[1] != "PodTemplate":
        new["spec"]["replicas"] = 5
    assert called(USUAL.entries, request(new, "UPDATE", oldObject=old), "/validate") == set()


@pytest.mark.parametrize(
    "half", [{}, {"spec": {}}, {"spec": {"tasks": [{"name": "t"}]}}, {"template": {}}, {"spec": {"template": {}}}]
)
def test_a_workload_without_a_template_breaks_no_condition(half: dict[str, Any]):
    asked = request({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, **half})
    assert called(USUAL.entries, asked, "/validate") == set()
