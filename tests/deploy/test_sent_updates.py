"""An update of a pod is sent if an assignment or an ephemeral container may be refused, and no other update."""

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
    USUAL,
    Cluster,
    assert_sent,
    cluster,
    has_outcome,
    outcome_of,
    request,
)
from tests.deploy.drawing import (
    SHOWN,
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
from webhook import names
from webhook.policy.policy import parse_policy
from webhook.review import validate

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
)
def test_an_update_is_sent_if_and_only_if_it_is_refused(
    change: tuple[dict[str, str] | None, dict[str, str] | None], limits: dict[str, str], user: str
):
    before, now = (annotated(chosen, limits) for chosen in change)
    admission_request = request(now, "UPDATE", oldObject=before, userInfo={"username": user})
    refused = bool(outcome_of(validate, admission_request, USUAL.snapshot).violations)
    assert called(USUAL.entries, admission_request, "/validate") == ({"assignments"} if refused else set())
    assert called(USUAL.entries, admission_request, "/mutate") == set()


@pytest.mark.parametrize("resource", [names.VGPU_NUMBER, names.VGPU_MEMORY])
def test_an_injected_device_is_sent(resource: str):
    before, now = (annotated(chosen, {resource: "1"}) for chosen in (None, {"cdi.k8s.io/gpu": "nvidia.com/gpu=all"}))
    admission_request = request(now, "UPDATE", oldObject=before)
    assert [found.rule for found in outcome_of(validate, admission_request, USUAL.snapshot).violations] == [
        "isolation-mount"
    ]
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


def test_an_ephemeral_container_that_shows_devices_is_sent():
    admission_request = request(
        pod_with("ephemeralContainers", **SHOWN), "UPDATE", oldObject=pod_with(), subResource="ephemeralcontainers"
    )
    assert has_outcome(outcome_of(validate, admission_request, USUAL.snapshot))
    assert called(USUAL.entries, admission_request, "/validate") == {"ephemeral-containers"}


@given(plain_pods())
def test_an_ephemeral_container_of_a_plain_pod_is_never_sent(pod: dict[str, Any]):
    admission_request = request(pod, "UPDATE", oldObject=annotated(None), subResource="ephemeralcontainers")
    assert called(USUAL.entries, admission_request, "/validate") == set()


@pytest.mark.parametrize(
    ("operation", "sub_resource"),
    [
        ("DELETE", ""),
        ("CONNECT", "exec"),
        ("UPDATE", "status"),
        ("UPDATE", "resize"),
        ("CREATE", "binding"),
        ("CREATE", "eviction"),
    ],
)
def test_other_operations_are_never_sent(operation: str, sub_resource: str):
    pod = json.loads((DATA / "reviews" / "gpu-pod1.json").read_bytes())["request"]["object"]
    pod["metadata"]["annotations"] = {"volcano.sh/vgpu-node": "n0"}
    admission_request = request(pod, operation, oldObject=annotated(None), subResource=sub_resource)
    for path in ("/mutate", "/validate"):
        assert called(USUAL.entries, admission_request, path) == set()
