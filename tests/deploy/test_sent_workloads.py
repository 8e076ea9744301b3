"""Workloads are sent if a new pod template matters to the webhook, and never otherwise."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.deploy.calling import called
from tests.deploy.clusters import (
    CLUSTERS,
    USUAL,
    Cluster,
    assert_sent,
    cluster,
    has_outcome,
    outcome_of,
    request,
)
from tests.deploy.drawing import ASSIGNMENTS, SHOWN, plain_pods, pod_with, pods
from tests.examples import examples
from tests.workloads import KINDS, WHOLE_KINDS, kind_id, kinds, workload
from webhook import names
from webhook.pod.workload_kinds import WorkloadKind
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import validate

Json = dict[str, Any]


def template_of(pod: Json) -> Json:
    return {"metadata": pod["metadata"], "spec": pod["spec"]}


templates = st.lists(pods().map(template_of), min_size=1, max_size=2)
plain_templates = st.lists(plain_pods().map(template_of), min_size=1, max_size=2)
DEVICE = template_of(pod_with(resources={"limits": {names.VGPU_NUMBER: "0"}}))

MORE_KINDS = {
    "workloadKinds": [
        {
            "group": "example.org",
            "version": "v1",
            "kind": "Policy",
            "templates": ["spec.template", "spec.groups[*].workers.*.template"],
        }
    ]
}


@given(kinds, templates, st.none() | templates, CLUSTERS)
def test_each_template_with_findings_is_sent(
    kind: WorkloadKind, now: list[Json], before: list[Json] | None, where: Cluster
):
    old = None if before is None else workload(kind, before)
    assert_sent(request(workload(kind, now), "CREATE" if old is None else "UPDATE", oldObject=old), where)


REASONS = [
    pod_with(annotations={ASSIGNMENTS[0]: ""}),
    pod_with(**SHOWN),
    pod_with("initContainers", resources={"limits": {names.VGPU_NUMBER: "1"}}),
    pod_with(resources={"limits": {"volcano.sh/vgpu-num": "1"}}),
]
SENT = [(kind, DEVICE) for kind in KINDS] + list(product(WHOLE_KINDS, map(template_of, REASONS)))


@each_case("kind,template", SENT, ids=lambda case: f"{kind_id(case[0])} {case[1]}")
def test_every_kind_of_workload_is_sent_for_each_reason(kind: WorkloadKind, template: Json):
    admission_request = request(workload(kind, [template]))
    assert has_outcome(outcome_of(validate, admission_request, USUAL.snapshot))
    assert called(USUAL.entries, admission_request, "/validate") == {"workloads"}


@examples(50)
@given(kinds, plain_templates)
def test_a_workload_of_plain_pods_is_never_sent(kind: WorkloadKind, now: list[Json]):
    assert called(USUAL.entries, request(workload(kind, now)), "/validate") == set()


@examples(50)
@given(kinds, templates)
def test_a_workload_whose_templates_stay_is_never_sent(kind: WorkloadKind, same: list[Json]):
    new, old = workload(kind, same, labels={"touched": "yes"}), workload(kind, same)
    if "spec" in new:
        new["spec"]["replicas"] = 5
    assert called(USUAL.entries, request(new, "UPDATE", oldObject=old), "/validate") == set()


@each_case("kind", KINDS, ids=kind_id)
@each_case("field", ["template", "tasks", "templates", "predictor", "driver", "trainer", "headGroupSpec"])
def test_a_workload_without_a_template_breaks_no_condition(kind: WorkloadKind, field: str):
    empty = [{"name": "t"}] if field in ("tasks", "templates") else {}
    for part in ({}, {"spec": {}}, {"spec": {field: empty}}, {"template": {}}):
        whole = {"apiVersion": f"{kind.group}/{kind.versions[0]}".removeprefix("/"), "kind": kind.kind, **part}
        assert called(USUAL.entries, request(whole), "/validate") == set()


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"template": DEVICE}, "spec.template"),
        ({"groups": [{}, {"workers": {"a": {"template": DEVICE}, "b": {}}}]}, "spec.groups[1].workers.a.template"),
    ],
)
def test_kinds_of_the_policy_are_sent(spec: Json, path: str):
    where = cluster(policy=parse_policy(MORE_KINDS, "policy"))
    made = {"apiVersion": "example.org/v1", "kind": "Policy", "metadata": {"name": "w"}, "spec": spec}
    admission_request = request(made)
    admission_request["resource"]["resource"] = "policies"
    assert [violation.path for violation in outcome_of(validate, admission_request, where.snapshot).violations] == [
        f"{path}.spec.containers[1].resources.limits[{names.VGPU_NUMBER}]"
    ]
    assert called(where.entries, admission_request, "/validate") == {"workloads"}
    same = {**admission_request, "operation": "UPDATE", "oldObject": made | {"spec": {**spec, "other": 1}}}
    assert called(where.entries, same, "/validate") == set()
    assert called(USUAL.entries, admission_request, "/validate") == set()
