"""What the API server sends: what the webhook has a finding or a repair for, and nothing else."""

import copy
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.cases import each_case
from tests.cli.conftest import only_rules
from tests.deploy import clusters, drawing
from tests.deploy.calling import called
from tests.deploy.clusters import HIDING, RENAMED, USUAL, Cluster, assert_sent, has_outcome, outcome_of, request
from tests.deploy.drawing import annotated, annotations_of, assigning, harmless, injecting, plain_pods, pod_with, pods
from tests.deploy.fallback import usual_fallback
from tests.examples import examples
from tests.reviewing import DATA, RECORDED
from tests.rules.test_cases import ALL, request_of, snapshot_of
from tests.workloads import KINDS, WHOLE_KINDS, kind_id, kinds, workload
from webhook import names
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKind
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.settings.review import review_setting

# --- new pods ---------------------------------------------------------------------------------------------------------


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


@given(pods(), clusters.CLUSTERS)
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


@given(plain_pods(), st.sampled_from([USUAL, RENAMED, clusters.WITHOUT_CONFIG]))
def test_a_plain_pod_is_never_sent(pod: dict[str, Any], where: Cluster):
    for path in ("/mutate", "/validate"):
        assert called(where.entries, request(pod), path) == set()


@each_case("pod", drawing.ONE_THING)
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


def test_no_label_exempts_a_pod():
    assert all("objectSelector" not in entry.webhook for entry in USUAL.entries)


def test_a_resource_name_with_quotes_stays_one_string():
    where = clusters.cluster({"resourceCountName": 'a"] == 1 || true || ["\\'})
    assert called(where.entries, request(annotated(None)), "/mutate") == set()


# --- updates of pods, and Bindings ------------------------------------------------------------------------------------


TRUSTED = "system:serviceaccount:volcano-system:volcano-scheduler"


@st.composite
def changes(draw: Any) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """The annotations before and after an update: mostly equal, some with another value."""
    before = draw(annotations_of(harmless | assigning | injecting))
    now = before | draw(st.dictionaries(st.sampled_from(sorted(before)), st.sampled_from(["", "z"]))) if before else {}
    now = {key: now[key] for key in now if draw(st.integers(0, 4))} | draw(annotations_of(harmless | injecting))
    return draw(st.sampled_from([(before, now), (now, before), (before or None, None), (None, now or None)]))


@given(
    changes(),
    st.sampled_from([{}, {"cpu": "1"}, {names.VGPU_NUMBER: "1"}, {names.VGPU_MEMORY: "1"}]),
    st.sampled_from(["alice", "alice", TRUSTED]),
    st.sampled_from(["", "status"]),
)
def test_an_update_is_sent_if_and_only_if_it_is_refused_or_chooses_other_cards(
    change: tuple[dict[str, str] | None, dict[str, str] | None], limits: dict[str, str], user: str, part: str
):
    before, now = (annotated(chosen, limits) for chosen in change)
    admission_request = request(now, "UPDATE", oldObject=before, userInfo={"username": user}, subResource=part)
    old, new = (chosen or {} for chosen in change)
    chooses = any(old.get(key) != new.get(key) for key in names.CHOOSING_ANNOTATIONS) and limits.keys() - {"cpu"}
    reviewed = (chooses and user != TRUSTED) or outcome_of(validate, admission_request, USUAL.snapshot).violations
    assert called(USUAL.entries, admission_request, "/validate") == ({"assignments"} if reviewed else set())
    assert called(USUAL.entries, admission_request, "/mutate") == set()


@pytest.mark.parametrize("key", sorted(names.RESERVED_ASCEND_ANNOTATIONS))
@pytest.mark.parametrize("resource", ["huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory", names.VGPU_NUMBER])
def test_hami_may_write_its_annotations_unless_the_pod_requests_npus(key: str, resource: str):
    before, now = (annotated(chosen, {resource: "1"}) for chosen in (None, {key: "gpu-a"}))
    admission_request = request(now, "UPDATE", oldObject=before, userInfo={"username": "hami-scheduler"})
    refused = not outcome_of(validate, admission_request, USUAL.snapshot).allowed
    assert refused == (resource != names.VGPU_NUMBER)
    assert called(USUAL.entries, admission_request, "/validate") == ({"assignments"} if refused else set())


@given(
    annotations_of(harmless | assigning | injecting) | st.none(),
    st.sampled_from(["alice", "alice", TRUSTED]),
    st.sampled_from(["pods/binding", "bindings"]),
)
def test_a_binding_is_sent_if_and_only_if_it_is_refused(chosen: dict[str, str] | None, user: str, resource: str):
    admission_request = clusters.binding(chosen, resource, userInfo={"username": user})
    refused = not outcome_of(validate, admission_request, USUAL.snapshot).allowed
    assert called(USUAL.entries, admission_request, "/validate") == ({"bindings"} if refused else set())
    assert bool(usual_fallback().refusal(admission_request)) == refused


def test_without_trusted_users_all_updates_are_sent():
    where = clusters.cluster(policy=parse_policy({"trustedUsers": []}, "policy"))
    forged = annotated({"volcano.sh/vgpu-node": "n0"})
    admission_request = request(forged, "UPDATE", oldObject=annotated(None), userInfo={"username": TRUSTED})
    assert called(where.entries, admission_request, "/validate") == {"assignments"}


@given(pods(), st.lists(strategies.containers(), max_size=2), drawing.environments, clusters.CLUSTERS)
def test_each_ephemeral_container_with_findings_is_sent(
    old: dict[str, Any], containers: list[dict[str, Any]], environment: list[dict[str, Any]], where: Cluster
):
    new = copy.deepcopy(old)
    added_containers = [
        container | {"name": f"debug-{i}", "env": environment} for i, container in enumerate(containers)
    ]
    new["spec"].setdefault("ephemeralContainers", []).extend(added_containers)
    assert_sent(request(new, "UPDATE", oldObject=old, subResource="ephemeralcontainers"), where)


@pytest.mark.parametrize("shown", drawing.EACH_SHOWN)
def test_an_ephemeral_container_that_shows_devices_is_sent(shown: dict[str, Any]):
    admission_request = request(
        pod_with("ephemeralContainers", **shown), "UPDATE", oldObject=pod_with(), subResource="ephemeralcontainers"
    )
    assert has_outcome(outcome_of(validate, admission_request, USUAL.snapshot))
    assert called(USUAL.entries, admission_request, "/validate") == {"exposed"}


@given(plain_pods())
def test_an_ephemeral_container_of_a_plain_pod_is_never_sent(pod: dict[str, Any]):
    admission_request = request(pod, "UPDATE", oldObject=annotated(None), subResource="ephemeralcontainers")
    assert called(USUAL.entries, admission_request, "/validate") == set()


@pytest.mark.parametrize(("where", "entries"), [(HIDING, {"hide-devices"}), (USUAL, set())])
@pytest.mark.parametrize("limits", [{"cpu": "1"}, {names.VGPU_NUMBER: "1"}])
def test_an_ephemeral_container_is_repaired_where_devices_are_hidden(
    where: Cluster, entries: set[str], limits: dict[str, str]
):
    old = annotated(None, limits)
    new = old | {"spec": old["spec"] | {"ephemeralContainers": [{"name": "debug", "image": "shell"}]}}
    admission_request = request(new, "UPDATE", oldObject=old, subResource="ephemeralcontainers")
    assert called(where.entries, admission_request, "/mutate") == entries
    repaired = outcome_of(mutate, admission_request, where.snapshot)
    assert [each["path"] for each in repaired.operations] == ["/spec/ephemeralContainers/0/env"] * len(entries)


# --- workloads --------------------------------------------------------------------------------------------------------


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


@given(kinds, templates, st.none() | templates, clusters.CLUSTERS)
def test_each_template_with_findings_is_sent(
    kind: WorkloadKind, now: list[Json], before: list[Json] | None, where: Cluster
):
    old = None if before is None else workload(kind, before)
    assert_sent(request(workload(kind, now), "CREATE" if old is None else "UPDATE", oldObject=old), where)


REASONS = [
    pod_with(annotations={drawing.ASSIGNMENTS[0]: ""}),
    pod_with(**drawing.SHOWN),
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


@each_case("more", [{"sidecars": None}, {"initContainers": None}])
def test_a_list_that_is_null_breaks_no_condition(more: Json):
    """The API server keeps null where a kind has no schema, as in Argo's minimal definitions."""
    whole = workload(WORKLOAD_KINDS["argoproj.io", "Workflow"], [DEVICE])
    whole["spec"]["templates"][0] |= more
    assert called(USUAL.entries, request(whole), "/validate") == {"workloads"}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"template": DEVICE}, "spec.template"),
        ({"groups": [{}, {"workers": {"a": {"template": DEVICE}, "b": {}}}]}, "spec.groups[1].workers.a.template"),
    ],
)
def test_kinds_of_the_policy_are_sent(spec: Json, path: str):
    where = clusters.cluster(policy=parse_policy({**MORE_KINDS, **only_rules("number-zero")}, "policy"))
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


# --- settings and limits ----------------------------------------------------------------------------------------------


RESOURCES = [
    "cpu",
    "memory",
    "example.org/fpga",
    "volcano.sh/vgpu-memory",
    "nvidia.com/gpumem",
    "huawei.com/Ascend910B3",
]
PLACES = [
    ("vgpu-webhook/vgpu-webhook-policy", {"policy"}),
    ("vgpu-webhook/team-vgpu-webhook-policy", {"policy"}),
    ("users/vgpu-webhook-policy", set()),
    ("kube-system/vgpu-webhook-policy-2", set()),
    ("kube-system/volcano-vgpu-device-config", {"settings"}),
    ("volcano-system/volcano-vgpu-device-config", {"settings"}),
    ("volcano-system/volcano-scheduler-configmap", {"settings"}),
    ("users/volcano-scheduler-configmap", set()),
    ("vgpu-webhook/volcano-vgpu-device-config", set()),
    ("kube-system/kube-root-ca.crt", set()),
    ("volcano-system/volcano-vgpu-node-config", set()),
    ("vgpu-webhook/policy", set()),
]
amounts = st.dictionaries(
    st.builds("{}{}".format, st.sampled_from(["", "requests.", "limits."]), st.sampled_from(RESOURCES)),
    st.sampled_from(["0", "4", 1, "8Gi"]),
    max_size=4,
)


def sent(raw: dict[str, Any], where: Cluster, **more: Any) -> set[str]:
    return called(where.entries, request(raw, **more), "/settings")


@pytest.mark.parametrize(("place", "by"), PLACES)
def test_config_maps_are_sent_by_name_and_namespace(place: str, by: set[str]):
    namespace, name = place.split("/")
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {}}
    assert sent(raw, USUAL, name=name, namespace=namespace) == by
    assert sent(raw, USUAL, name=name, namespace=namespace, operation="UPDATE", oldObject=raw) == by
    assert sent(raw, USUAL, name=name, namespace=namespace, operation="DELETE") == set()


def test_a_config_map_without_a_name_of_its_own_is_not_sent():
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "vgpu-webhook-policy-"}}
    assert sent(raw, USUAL, namespace="vgpu-webhook") == set()


@given(st.none() | amounts, clusters.CLUSTERS)
def test_a_quota_is_sent_if_it_has_amounts_of_devices(hard: dict[str, Any] | None, where: Cluster):
    raw = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    raw["spec"] = {} if hard is None else {"hard": hard}
    found = outcome_of(review_setting, request(raw), where.snapshot)
    assert sent(raw, where) == ({"limits"} if found.reviewed else set())


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(["capability", "deserved", "guarantee"], amounts)),
    clusters.CLUSTERS,
)
def test_a_queue_is_sent_if_it_has_amounts_of_devices(spec: dict[str, Any], where: Cluster):
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": spec["guarantee"]}
    raw = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}
    found = outcome_of(review_setting, request(raw, namespace=""), where.snapshot)
    assert sent(raw, where, namespace="") == ({"limits"} if found.reviewed else set())


def test_a_renamed_resource_is_sent():
    raw = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    assert sent(raw | {"spec": {"hard": {"requests.example.org/slice": 4}}}, RENAMED) == {"limits"}
    assert sent(raw, RENAMED) == set()
