"""What is too large for the API server's expressions is sent at once: no loop of them is longer than a few hundred steps."""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.deploy.calling import Entry, called
from tests.deploy.clusters import HIDING, USUAL, binding, request
from tests.deploy.fallback import usual_fallback
from tests.workloads import workload
from webhook.manifests.fallback.pod import MAX_ENTRIES as MAX_READ
from webhook.manifests.match_conditions import MAX_ANNOTATIONS, MAX_CONTAINERS, MAX_ENTRIES, MAX_TEMPLATES, SPARE
from webhook.pod.workload_kinds import WORKLOAD_KINDS

PLAIN = {"name": "main", "image": "x"}
OF_ONE, OF_TWO = (MAX_ENTRIES // (number + SPARE) for number in (1, 2))  # entries of a container
MANY = {f"example.org/{number}": "1" for number in range(OF_ONE + 1)}
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
    "variables": (pod(with_env(OF_ONE)), pod(with_env(OF_ONE + 1))),
    "variables of two": (pod(*[with_env(OF_TWO)] * 2), pod(*[with_env(OF_TWO + 1)] * 2)),
    "mounts": (pod(with_mounts(OF_ONE)), pod(with_mounts(OF_ONE + 1))),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_pod_without_devices_and_a_workload_of_it_are_sent_only_beyond_a_limit(limit: str):
    for found, pods, workloads in zip(LIMITS[limit], (set(), {"large"}), (set(), {"workloads"}), strict=True):
        assert called(USUAL.entries, request(found), "/validate") == pods
        template = {"metadata": found["metadata"], "spec": found["spec"]}
        deployment = workload(WORKLOAD_KINDS["apps", "Deployment"], [template])
        assert called(USUAL.entries, request(deployment), "/validate") == workloads


@pytest.mark.parametrize("limit", LIMITS)
def test_no_entry_refuses_a_pod_for_its_size_while_no_replica_answers(limit: str):
    for found in LIMITS[limit]:
        update = request(found, "UPDATE", oldObject=pod())
        where = {"resource": "pods", "group": "", "version": "v1"}
        ephemeral = request(found, "UPDATE", oldObject=found, resource=where, subResource="ephemeralcontainers")
        for cluster, asked in product((USUAL, HIDING), (request(found), update, ephemeral)):
            needed = [entry.name for entry in cluster.entries if entry.takes(asked) and fails(entry)]
            assert needed == []


def fails(entry: Entry) -> bool:
    return entry.webhook["failurePolicy"] == "Fail"


def requesting(name: str) -> dict[str, Any]:
    return PLAIN | {"resources": {"limits": {**MANY, name: "1"}}}


@pytest.mark.parametrize("cluster", [USUAL, HIDING], ids=["usual", "hiding"])
def test_a_large_pod_with_a_device_is_sent_once_and_needs_an_answer_if_the_device_is_seen(cluster: Any):
    device, misspelt = requesting(cluster.snapshot.config.vgpu.number_name), requesting("volcano.sh/x")
    for found, seen in (
        (pod(device, *[PLAIN] * MAX_CONTAINERS), True),
        (pod(*[PLAIN] * (MAX_CONTAINERS - 1), device, PLAIN), True),
        (pod(*[PLAIN] * MAX_CONTAINERS, device), False),
        (pod(misspelt), False),
    ):
        for path, usual in {"/mutate": "repair", "/validate": "pods"}.items():
            (entry,) = [entry for entry in cluster.entries if entry.path == path and entry.takes(request(found))]
            assert (entry.name == usual, fails(entry)) == (seen, seen)


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
    forged = pod(annotations=ANNOTATIONS | {"volcano.sh/vgpu-node": "gpu-a"})
    for new, sent in (
        (status, set()),
        (pod(annotations=fewer(ANNOTATIONS)), {"large"}),
        (forged, {"assignments", "large"}),
    ):
        update = request(new, "UPDATE", oldObject=old, resource=where, subResource="status")
        assert called(USUAL.entries, update, "/validate") == sent


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
        names = ("now", "before") if re.search(r"\[now, before\]\.exists\(annotations,\s+$", before) else (found[1],)
        if not all(f"size({name})" in before for name in names):
            yield expression[max(found.start() - 80, 0) : found.end()]
