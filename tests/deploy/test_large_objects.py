"""What is too large for the API server's expressions is sent at once: no loop of them is longer than a few hundred steps."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.calling import called
from tests.deploy.clusters import HIDING, USUAL, request
from tests.deploy.fallback import usual_fallback
from tests.workloads import workload
from webhook.manifests.fallback.pod import MAX_ENTRIES as MAX_READ
from webhook.manifests.match_conditions import MAX_ANNOTATIONS, MAX_CONTAINERS, MAX_ENTRIES, MAX_TEMPLATES
from webhook.pod.workload_kinds import WORKLOAD_KINDS

PLAIN = {"name": "main", "image": "x"}
MANY = {f"example.org/{number}": "1" for number in range(MAX_ENTRIES + 1)}
ANNOTATIONS = {f"a{number}": "" for number in range(MAX_ANNOTATIONS + 1)}


def pod(*containers: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "default", "annotations": annotations or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": list(containers or [PLAIN])},
    }


def fewer(found: dict[str, str]) -> dict[str, str]:
    return dict(list(found.items())[1:])


def with_env(number: int) -> dict[str, Any]:
    return PLAIN | {"env": [{"name": f"E{index}", "value": ""} for index in range(number)]}


def with_mounts(number: int) -> dict[str, Any]:
    return PLAIN | {"volumeMounts": [{"name": "v", "mountPath": f"/{index}"} for index in range(number)]}


# A pod at each limit, and one beyond it.
LIMITS = {
    "annotations": (pod(annotations=fewer(ANNOTATIONS)), pod(annotations=ANNOTATIONS)),
    "containers": (pod(*[PLAIN] * MAX_CONTAINERS), pod(*[PLAIN] * (MAX_CONTAINERS + 1))),
    "limits": (pod(PLAIN | {"resources": {"limits": fewer(MANY)}}), pod(PLAIN | {"resources": {"limits": MANY}})),
    "requests": (pod(PLAIN | {"resources": {"requests": fewer(MANY)}}), pod(PLAIN | {"resources": {"requests": MANY}})),
    "variables": (pod(with_env(MAX_ENTRIES)), pod(with_env(MAX_ENTRIES + 1))),
    "variables of two": (pod(*[with_env(MAX_ENTRIES // 2)] * 2), pod(*[with_env(MAX_ENTRIES // 2 + 1)] * 2)),
    "mounts": (pod(with_mounts(MAX_ENTRIES)), pod(with_mounts(MAX_ENTRIES + 1))),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_pod_without_devices_and_a_workload_of_it_are_sent_only_beyond_a_limit(limit: str):
    for found, pods, workloads in zip(LIMITS[limit], (set(), {"pods"}), (set(), {"workloads"}), strict=True):
        assert called(USUAL.entries, request(found), "/validate") == pods
        template = {"metadata": found["metadata"], "spec": found["spec"]}
        deployment = workload(WORKLOAD_KINDS["apps", "Deployment"], [template])
        assert called(USUAL.entries, request(deployment), "/validate") == workloads


def test_a_job_with_too_many_templates_is_sent():
    for number, sent in ((MAX_TEMPLATES, set()), (MAX_TEMPLATES + 1, {"workloads"})):
        task = {"template": {"spec": {"containers": [PLAIN]}}}
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "default"},
            "spec": {"tasks": [task | {"name": f"t{index}"} for index in range(number)]},
        }
        assert called(USUAL.entries, request(job), "/validate") == sent


def test_an_update_is_sent_only_if_it_changes_one_of_too_many_annotations():
    old = pod(annotations=ANNOTATIONS)
    status = old | {"status": {"phase": "Running"}}
    where = {"resource": "pods", "group": "", "version": "v1"}
    for new, sent in ((status, set()), (pod(annotations=fewer(ANNOTATIONS)), {"assignments"})):
        update = request(new, "UPDATE", oldObject=old, resource=where, subResource="status")
        assert called(USUAL.entries, update, "/validate") == sent


def binding(annotations: dict[str, str]) -> dict[str, Any]:
    """The request that binds a pod."""
    written = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "default", "annotations": annotations},
        "target": {"kind": "Node", "name": "n"},
    }
    return request(written, resource={"group": "", "version": "v1", "resource": "pods"}, subResource="binding")


def test_a_binding_with_too_many_annotations_is_sent():
    for annotations, sent in ((fewer(ANNOTATIONS), set()), (ANNOTATIONS, {"bindings"})):
        assert called(USUAL.entries, binding(annotations), "/validate") == sent


@pytest.mark.parametrize(("number", "refusal"), [(MAX_READ, ""), (MAX_READ + 1, "pod-too-large: ")])
def test_the_fallback_policies_refuse_more_annotations_than_they_look_at(number: int, refusal: str):
    many = {f"a{index}": "" for index in range(number)}
    removed = request(pod(), "UPDATE", oldObject=pod(annotations=many))
    bound = f"{refusal}the Binding has more than 1000 annotations" if refusal else ""
    for asked, beginning in ((binding(many), bound), (removed, refusal)):
        found = usual_fallback().refusal(asked)
        assert (found.startswith(beginning), bool(found)) == (True, bool(refusal))


@pytest.mark.parametrize("cluster", [USUAL, HIDING], ids=["usual", "hiding"])
def test_every_loop_over_what_an_author_writes_has_a_limit(cluster: Any):
    """Also of expressions that are written later: each such list or map is compared with a size before the loop."""
    for entry in cluster.entries:
        for condition in entry.webhook["matchConditions"]:
            assert list(unlimited(condition["expression"])) == []


LOOP = re.compile(r"([\w.]*\b(?:annotations|containers|amounts|env|volumeMounts|pods|now|before))\.exists\(")


def unlimited(expression: str) -> Iterator[str]:
    """The loops over lists and maps of an object that begin without a look at their size."""
    for found in LOOP.finditer(expression):
        before = expression[: found.start()]
        names = ("now", "before") if before.endswith("[now, before].exists(annotations,\n      ") else (found[1],)
        if not all(f"size({name})" in before for name in names):
            yield expression[max(found.start() - 80, 0) : found.end()]
