"""What a scan reports of stored objects, and under which owner."""

import copy
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import reviewing, strategies
from tests.cli.conftest import only_rules, pod, vgpus
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.errors import Malformed
from webhook.existing_objects import Judged, is_scanned, judge, why_left_out
from webhook.inputs.documents import Document
from webhook.pod.owners import subject_of
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.questions.scan.tally import MAX_REASONS, OTHER_DEVICES, OTHER_REASONS, Tally
from webhook.review.endpoints import mutate
from webhook.snapshot import Snapshot
from webhook.wire.codec import creation

NODE = strategies.node_json("gpu", strategies.register([("NVIDIA-Tesla T4", 15360)] * 2))
snapshot = partial(reviewing.snapshot, config=parse_device_config({"nvidia": {"defaultGPUNum": 1}}, "test"), raw=[NODE])
RULES = (
    "cores-range count-missing foreign-scheduler memory-above-card no-eligible-card node-name-set reserved-annotation"
)
SNAPSHOT = snapshot(**only_rules(*RULES.split()))
ASSIGNED = {names.VGPU_NODE: "gpu", names.VGPU_IDS: "GPU-0,NVIDIA,1000,0:;", "volcano.sh/bind-phase": "x"}


def placed(**fields: Any) -> dict[str, Any]:
    """A pod that the scheduler has placed."""
    metadata = {"annotations": dict(ASSIGNED), "namespace": "team"} | fields.pop("metadata", {})
    fields = {"limits": vgpus(1, 1000), "nodeName": "gpu"} | fields
    return pod(metadata=metadata, **fields)


def judged(raw: dict[str, Any], using: Snapshot = SNAPSHOT) -> Judged:
    before = copy.deepcopy(raw)
    result = judge(raw, using)
    assert result is not None
    assert raw == before, "a scan does not change the stored object"
    return result


def findings_of(raw: dict[str, Any], using: Snapshot = SNAPSHOT) -> list[tuple[str, str]]:
    return [(finding.rule, finding.level.value) for finding in judged(raw, using).findings]


RESERVED = [("reserved-annotation", "deny")] * 3


@pytest.mark.parametrize(
    "raw, findings",
    [
        (placed(), []),
        (placed(nodeName=""), RESERVED),
        (placed(limits={"cpu": "1"}), RESERVED),
        (placed(metadata={"annotations": {}}), [("node-name-set", "deny")]),
        # another scheduler has placed it
        (placed(metadata={"annotations": {}}, schedulerName="default-scheduler"), [("scheduler-name", "deny")]),
    ],
)
def test_the_assignment_of_a_pod_and_its_node_belong_together(raw: dict[str, Any], findings: list[tuple[str, str]]):
    assert findings_of(raw) == findings
    assert judged(placed()).requests_devices


def test_the_gpu_index_of_a_placed_pod_is_no_finding():
    gpushare = placed(limits={names.GPUSHARE_NUMBER: "1"}, metadata={"annotations": {"volcano.sh/gpu-index": "0"}})
    assert "reserved-annotation" not in [rule for rule, _ in findings_of(gpushare)]
    del gpushare["spec"]["nodeName"]
    assert "reserved-annotation" in [rule for rule, _ in findings_of(gpushare)]


def test_a_problem_that_a_repair_fixes_is_reported_under_the_repair():
    raw = placed(schedulerName="default-scheduler", tolerations=[], limits=vgpus(1, 99999, 101))
    memory, scheduler, toleration, cores = judged(raw).findings
    assert (memory.rule, memory.level, memory.path) == (
        "lower-memory", "deny", "spec.containers[0].resources.limits[volcano.sh/vgpu-memory]",
    )  # fmt: skip
    assert "lowered to 15360" in memory.message
    assert (scheduler.rule, scheduler.level, scheduler.path) == ("scheduler-name", "deny", "spec.schedulerName")
    assert scheduler.message == 'would be repaired at creation: spec.schedulerName becomes "volcano"'
    assert (toleration.rule, toleration.level) == ("toleration", "warn")
    assert toleration.message.startswith('would be repaired at creation: spec.tolerations gets {"key":"volc')
    assert (cores.rule, cores.level) == ("cores-range", "deny")
    assert ("scheduler-name", "warn") in findings_of(raw, snapshot(**only_rules("foreign-scheduler=warn")))


def test_findings_after_a_repair_are_reported_too():
    annotations = {**ASSIGNED, names.USE_GPUTYPE: "H100"}
    found = findings_of(placed(limits={names.VGPU_MEMORY: "1k"}, metadata={"annotations": annotations}))
    assert ("default-number", "deny") in found  # without a count the pod runs without isolation
    assert ("no-eligible-card", "deny") in found


@given(strategies.pods())
def test_a_repaired_pod_needs_no_other_repair(raw: dict[str, Any]):
    def repairs(pod: dict[str, Any]) -> list[str]:
        return [each.rule for each in judged(pod).findings if each.message.startswith("would be repaired")]

    outcome = mutate(creation("scan", "v1", "Pod", "default", raw), SNAPSHOT)
    assert repairs(raw) == list(outcome.mutations)
    assert repairs(dict(outcome.object)) == []


def test_a_pod_in_an_exempt_namespace_is_left_out():
    exempt = snapshot(namespaces=[{"match": ["team"], "exempt": True}])
    assert why_left_out(placed(), exempt) == "namespace team is exempt: the policy exempts it under `namespaces`"
    assert why_left_out(placed(), snapshot()) == ""


# --- which objects are scanned, and owners --------------------------------------------------------------------------


def owned(kind: str, name: str, version: str = "apps/v1", controller: bool = True, **labels: str) -> dict[str, Any]:
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller}
    return placed(metadata={"ownerReferences": [owner], "labels": labels, "annotations": dict(ASSIGNED)})


@pytest.mark.parametrize(
    "raw, subject",
    [
        (owned("StatefulSet", "db"), "StatefulSet/db"),
        (owned("ReplicaSet", "web-7d9f", **{"pod-template-hash": "7d9f"}), "Deployment/web"),
        (owned("ReplicaSet", "web-7d9f", **{"pod-template-hash": "other"}), "ReplicaSet/web-7d9f"),
        (owned("ReplicaSet", "web-7d9f"), "ReplicaSet/web-7d9f"),
        (owned("Job", "train", "batch/v1"), "Job/train"),
        (owned("Job", "train", "batch.volcano.sh/v1alpha1"), "vcjob/train"),
        (owned("Thing", "part", controller=False), "Pod/train"),
        (placed(metadata={"ownerReferences": None}), "Pod/train"),
    ],
)
def test_pods_are_reported_under_their_owner(raw: dict[str, Any], subject: str):
    assert subject_of(raw).kind_and_name == subject


def workload(kind: str, version: str, **metadata: Any) -> dict[str, Any]:
    template = {"spec": pod(limits=vgpus(1, 1000, 101))["spec"]}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w"} | metadata, "spec": {"template": template}}


def test_a_finding_that_refuses_the_pods_of_a_workload_is_a_denial():
    result = judged(workload("Deployment", "apps/v1"))
    assert (result.is_pod, result.requests_devices) == (False, True)
    (found,) = result.findings
    path = "spec.template.spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"
    assert (found.rule, found.level, found.path) == ("cores-range", "deny", path)


def controlled(kind: str, version: str, owner: str, owner_version: str) -> dict[str, Any]:
    controller = {"apiVersion": owner_version, "kind": owner, "controller": True}
    return workload(kind, version, ownerReferences=[controller])


@pytest.mark.parametrize(
    "raw, scanned",
    [
        (workload("Deployment", "apps/v1"), True),
        (workload("Deployment", "example.com/v1"), True),
        (controlled("ControllerRevision", "apps/v1", "StatefulSet", "apps/v1"), False),
        (controlled("Job", "batch/v1", "CronJob", "batch/v1"), False),
        (controlled("Job", "batch/v1", "App", "example.com/v1"), True),
        (placed(), True),
        (placed() | {"status": {"phase": "Running"}}, True),
        (placed() | {"status": {"phase": "Failed"}}, False),
        (placed() | {"status": {"phase": "Succeeded"}}, False),
    ],
)
def test_copies_and_finished_pods_are_not_scanned(raw: dict[str, Any], scanned: bool):
    assert is_scanned(raw, WORKLOAD_KINDS) is scanned
    if raw.get("status"):
        assert is_scanned(raw, WORKLOAD_KINDS, finished=True)


@pytest.mark.parametrize(
    "raw", [{"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "Pod"}]
)
def test_an_object_without_pods_is_not_judged(raw: dict[str, Any]):
    assert judge(raw, SNAPSHOT) is None


def test_an_unknown_kind_is_judged_by_its_pod_templates():
    result = judged(workload("Deployment", "example.com/v1"))
    assert result.unknown == "unknown kind Deployment of example.com"
    assert [(one.rule, one.level) for one in result.findings] == [("cores-range", "deny")]


# --- totals ---------------------------------------------------------------------------------------------------------


def test_pods_of_one_owner_with_the_same_finding_are_one_row():
    tally = Tally()
    for name in ("b", "a", "c"):
        raw = owned("StatefulSet", "db")
        raw["metadata"]["name"] = f"db-{name}"
        raw["spec"]["schedulerName"] = "volcano" if name == "c" else "other"
        tally.add(judged(raw)._replace(not_judged=[f"{at}" for at in range(MAX_REASONS + 2)]), Document("", raw))
    for number in range(MAX_REASONS + 2):
        tally.leave(f"namespace n{number} is exempt")
    assert [(row.finding and row.finding.rule, row.pods, row.example) for row in tally.rows()] == [
        ("foreign-scheduler", 2, "db-b"),
        (None, 1, "db-c"),
    ]
    assert (tally.pods, tally.requesting, sum(tally.left.values())) == (3, 3, MAX_REASONS + 2)
    assert (tally.left[OTHER_REASONS], tally.not_judged[OTHER_DEVICES]) == (2, 6)
    assert tally.findings == tally.objects == {"deny": 2}


def test_many_warnings_do_not_hide_a_denial():
    tally = Tally(most=2)
    for number in range(5):
        raw = placed(tolerations=[], metadata={"name": f"p{number}", "annotations": dict(ASSIGNED)})
        tally.add(judged(raw), Document("", raw))
    raw = placed(schedulerName="other", metadata={"name": "z", "annotations": dict(ASSIGNED)})
    tally.add(judged(raw), Document("", raw))
    assert [row.subject.name for row in tally.rows()] == ["p0", "p1", "z"]
    assert tally.left_out == 3
    assert tally.findings == {"warn": 5, "deny": 1}


@given(strategies.mangled(st.builds(placed)))
def test_a_malformed_object_is_refused_or_judged(raw: Any):
    with suppress(Malformed):
        if isinstance(raw.get("kind"), str) and is_scanned(raw, WORKLOAD_KINDS):
            judge(raw, SNAPSHOT)
