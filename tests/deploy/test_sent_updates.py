"""An update of a pod or a Binding is sent if an assignment or an ephemeral container may be refused, and no other."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.deploy.calling import called
from tests.deploy.clusters import (
    CLUSTERS,
    DATA,
    HIDING,
    USUAL,
    Cluster,
    assert_sent,
    cluster,
    has_outcome,
    outcome_of,
    request,
)
from tests.deploy.drawing import (
    EACH_SHOWN,
    annotated,
    annotations_of,
    assigning,
    environments,
    harmless,
    injecting,
    plain_pods,
    pod_with,
    pods,
)
from tests.deploy.fallback import usual_fallback
from webhook import names
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import mutate, validate

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
    st.sampled_from([{}, {"cpu": "1"}, {names.VGPU_NUMBER: "1"}]),
    st.sampled_from(["alice", "alice", TRUSTED]),
    st.sampled_from(["", "status"]),
)
def test_an_update_is_sent_if_and_only_if_it_is_refused(
    change: tuple[dict[str, str] | None, dict[str, str] | None], limits: dict[str, str], user: str, part: str
):
    before, now = (annotated(chosen, limits) for chosen in change)
    admission_request = request(now, "UPDATE", oldObject=before, userInfo={"username": user}, subResource=part)
    refused = bool(outcome_of(validate, admission_request, USUAL.snapshot).violations)
    assert called(USUAL.entries, admission_request, "/validate") == ({"assignments"} if refused else set())
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
    st.sampled_from([("pods", "binding"), ("bindings", "")]),
)
def test_a_binding_is_sent_if_and_only_if_it_is_refused(
    chosen: dict[str, str] | None, user: str, resource: tuple[str, str]
):
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "pod"} | ({} if chosen is None else {"annotations": chosen}),
        "target": {"kind": "Node", "name": "n0"},
    }
    of = {"group": "", "version": "v1", "resource": resource[0]}
    admission_request = request(binding, resource=of, subResource=resource[1], userInfo={"username": user})
    refused = not outcome_of(validate, admission_request, USUAL.snapshot).allowed
    assert called(USUAL.entries, admission_request, "/validate") == ({"bindings"} if refused else set())
    assert bool(usual_fallback().refusal(admission_request)) == refused


@pytest.mark.parametrize(
    ("resource", "rule"),
    [(names.VGPU_NUMBER, "isolation-mount"), (names.VGPU_MEMORY, "isolation-mount"), ("cpu", "visible-devices")],
)
def test_an_injected_device_is_sent(resource: str, rule: str):
    before, now = (annotated(chosen, {resource: "1"}) for chosen in (None, {"cdi.k8s.io/gpu": "nvidia.com/gpu=all"}))
    admission_request = request(now, "UPDATE", oldObject=before)
    assert [found.rule for found in outcome_of(validate, admission_request, USUAL.snapshot).violations] == [rule]
    assert called(USUAL.entries, admission_request, "/validate") == {"assignments"}


def test_without_trusted_users_all_updates_are_sent():
    where = cluster(policy=parse_policy({"trustedUsers": []}, "policy"))
    forged = annotated({"volcano.sh/vgpu-node": "n0"})
    admission_request = request(forged, "UPDATE", oldObject=annotated(None), userInfo={"username": TRUSTED})
    assert called(where.entries, admission_request, "/validate") == {"assignments"}


@given(pods(), st.lists(strategies.containers(), max_size=2), environments, CLUSTERS)
def test_each_ephemeral_container_with_findings_is_sent(
    old: dict[str, Any], containers: list[dict[str, Any]], environment: list[dict[str, Any]], where: Cluster
):
    new = copy.deepcopy(old)
    added_containers = [
        container | {"name": f"debug-{i}", "env": environment} for i, container in enumerate(containers)
    ]
    new["spec"].setdefault("ephemeralContainers", []).extend(added_containers)
    assert_sent(request(new, "UPDATE", oldObject=old, subResource="ephemeralcontainers"), where)


@pytest.mark.parametrize("shown", EACH_SHOWN)
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


@pytest.mark.parametrize(
    ("operation", "sub_resource"),
    [
        ("DELETE", ""),
        ("CONNECT", "exec"),
        ("UPDATE", "resize"),
        ("CREATE", "eviction"),
    ],
)
def test_other_operations_are_never_sent(operation: str, sub_resource: str):
    pod = json.loads((DATA / "reviews" / "gpu-pod1.json").read_bytes())["request"]["object"]
    pod["metadata"]["annotations"] = {"volcano.sh/vgpu-node": "n0"}
    admission_request = request(pod, operation, oldObject=annotated(None), subResource=sub_resource)
    for path in ("/mutate", "/validate"):
        assert called(USUAL.entries, admission_request, path) == set()
