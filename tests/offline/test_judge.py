"""What a scan says of stored objects, and under whose name."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.cli.conftest import pod, vgpus
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.nodes import read_node
from webhook.offline import scan as tally_module
from webhook.offline.scan import Judged, Tally, is_scanned, judge, subject_of, why_left_out
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import parse_policy
from webhook.review import Snapshot, mutate
from webhook.settings.snapshot import SnapshotInputs


def snapshot(policy: dict[str, Any] | None = None) -> Snapshot:
    config = parse_device_config({"nvidia": {"defaultGPUNum": 1}}, "test")
    node = read_node(strategies.node_json("gpu", strategies.register([("NVIDIA-Tesla T4", 15360)] * 2)), config)
    assert node is not None
    return SnapshotInputs(config, parse_policy(policy or {}, "test"), [node]).snapshot()


SNAPSHOT = snapshot()

ASSIGNED = {
    "volcano.sh/vgpu-node": "gpu",
    "volcano.sh/vgpu-ids-new": "GPU-0,NVIDIA,1000,0:;",
    "hami.io/bind-phase": "x",
}


def placed(**fields: Any) -> dict[str, Any]:
    """A pod as the scheduler has placed it."""
    metadata = {"annotations": dict(ASSIGNED), "namespace": "team"} | fields.pop("metadata", {})
    return pod(limits=fields.pop("limits", vgpus(1, 1000)), nodeName="gpu", metadata=metadata, **fields)


def judged(raw: dict[str, Any], using: Snapshot = SNAPSHOT) -> Judged:
    before = copy.deepcopy(raw)
    found = judge(raw, using)
    assert found is not None
    assert raw == before, "what is stored is only looked at"
    return found


def found_in(raw: dict[str, Any], using: Snapshot = SNAPSHOT) -> list[tuple[str, str]]:
    return [(finding.rule, finding.level.value) for finding in judged(raw, using).findings]


def test_a_pod_that_went_through_the_webhook_and_was_placed_is_fine():
    assert judged(placed()).findings == ()
    assert judged(placed()).requests_devices


def test_an_assignment_on_a_pod_without_a_node_was_forged():
    pending = placed()
    del pending["spec"]["nodeName"]
    assert found_in(pending) == [("reserved-annotation", "deny")] * 3


def test_an_assignment_on_a_pod_without_devices_was_forged():
    assert [rule for rule, _ in found_in(placed(limits={"cpu": "1"}))] == ["reserved-annotation"] * 3


def test_the_index_of_a_placed_pod_is_the_scheduler_s():
    gpushare = placed(limits={names.GPUSHARE_NUMBER: "1"}, metadata={"annotations": {"volcano.sh/gpu-index": "0"}})
    assert "reserved-annotation" not in [rule for rule, _ in found_in(gpushare)]
    del gpushare["spec"]["nodeName"]
    assert "reserved-annotation" in [rule for rule, _ in found_in(gpushare)]


def test_a_node_without_an_assignment_was_preset_by_the_author():
    assert found_in(placed(metadata={"annotations": {}})) == [("node-name-set", "deny")]


def test_a_node_that_another_scheduler_chose_was_not():
    raw = placed(metadata={"annotations": {}}, schedulerName="default-scheduler")
    assert found_in(raw) == [("scheduler-name", "deny")]


def test_what_a_repair_fixes_is_reported_under_the_repair():
    raw = placed(schedulerName="default-scheduler", tolerations=[], limits=vgpus(1, 99999, 101))
    told = {finding.rule: finding for finding in judged(raw).findings}
    assert [(rule, finding.level) for rule, finding in told.items()] == [
        ("memory-above-card", "deny"),
        ("scheduler-name", "deny"),
        ("toleration", "warn"),
        ("cores-range", "deny"),
    ]
    assert told["scheduler-name"].path == "spec.schedulerName"
    assert told["scheduler-name"].message == 'would be repaired at creation: spec.schedulerName becomes "volcano"'
    assert told["toleration"].message.startswith('would be repaired at creation: spec.tolerations gets {"key":"volc')
    assert "lowered to 15360" in told["memory-above-card"].message
    assert told["memory-above-card"].path == "spec.containers[0].resources.limits[volcano.sh/vgpu-memory]"


def test_findings_after_a_repair_are_reported_too():
    raw = placed(
        limits={names.VGPU_MEMORY: "1k"}, metadata={"annotations": {**ASSIGNED, "nvidia.com/use-gputype": "H100"}}
    )
    assert ("default-number", "deny") in found_in(raw)  # without a count it runs without isolation
    assert ("no-eligible-card", "deny") in found_in(raw)


@given(strategies.pods())
def test_a_pod_that_the_webhook_has_repaired_is_never_to_be_repaired(raw: dict[str, Any]):
    found = judge(raw, SNAPSHOT)
    assert found is not None
    repairs = [finding for finding in found.findings if finding.message.startswith("would be repaired")]
    request = strategies_request(raw)
    outcome = mutate(request, SNAPSHOT)
    assert [finding.rule for finding in repairs] == list(outcome.mutations)
    stored = judge(dict(outcome.object), SNAPSHOT)
    assert stored is not None
    assert not [finding for finding in stored.findings if finding.message.startswith("would be repaired")]


def strategies_request(raw: dict[str, Any]) -> Any:
    from webhook.offline.scan import _request

    return _request(raw, "default")


def test_an_exempt_namespace_is_named():
    exempt = snapshot({"namespaces": [{"match": ["team"], "exempt": True}]})
    assert why_left_out(placed(), exempt) == "namespace team is exempt: the policy exempts it under `namespaces`"
    assert why_left_out(placed(), snapshot({})) == ""


# --- what is scanned, and whose it is -------------------------------------------------------------------------------


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
        (owned("Job", "train", "batch.volcano.sh/v1alpha1"), "Job/train"),
        (owned("Thing", "part", controller=False), "Pod/train"),
        (placed(metadata={"ownerReferences": None}), "Pod/train"),
    ],
)
def test_pods_are_reported_under_their_owner(raw: dict[str, Any], subject: str):
    found = subject_of(raw)
    assert f"{found.kind}/{found.name}" == subject


def workload(kind: str, version: str, **metadata: Any) -> dict[str, Any]:
    template = {"spec": pod(limits=vgpus(1, 1000, 101))["spec"]}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w"} | metadata, "spec": {"template": template}}


def test_what_refuses_the_pods_of_a_workload_is_a_denial():
    found = judged(workload("Deployment", "apps/v1"))
    assert not found.is_pod
    assert found.requests_devices
    assert [(one.rule, one.level, one.path) for one in found.findings] == [
        ("cores-range", "deny", "spec.template.spec.containers[0].resources.limits[volcano.sh/vgpu-cores]")
    ]


OWNED_BY_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True}


@pytest.mark.parametrize(
    "raw, scanned",
    [
        (workload("Deployment", "apps/v1"), True),
        (workload("Deployment", "example.com/v1"), True),
        (workload("ControllerRevision", "apps/v1", ownerReferences=[OWNED_BY_SET]), False),
        (
            workload(
                "Job", "batch/v1", ownerReferences=[{"apiVersion": "batch/v1", "kind": "CronJob", "controller": True}]
            ),
            False,
        ),
        (
            workload(
                "Job", "batch/v1", ownerReferences=[{"apiVersion": "example.com/v1", "kind": "App", "controller": True}]
            ),
            True,
        ),
        (placed(), True),
        (placed() | {"status": {"phase": "Running"}}, True),
        (placed() | {"status": {"phase": "Failed"}}, False),
        (placed() | {"status": {"phase": "Succeeded"}}, False),
    ],
)
def test_what_is_scanned(raw: dict[str, Any], scanned: bool):
    assert is_scanned(raw, WORKLOAD_KINDS) is scanned
    if raw.get("status"):
        assert is_scanned(raw, WORKLOAD_KINDS, finished=True)


@pytest.mark.parametrize(
    "raw", [{"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "Pod"}]
)
def test_an_object_without_pods_is_not_judged(raw: dict[str, Any]):
    assert judge(raw, SNAPSHOT) is None


def test_an_unknown_kind_is_judged_by_what_looks_like_a_pod_template():
    found = judged(workload("Deployment", "example.com/v1"))
    assert found.unknown == "unknown kind Deployment of example.com"
    assert [(one.rule, one.level) for one in found.findings] == [("cores-range", "deny")]


# --- putting it together --------------------------------------------------------------------------------------------


def test_pods_of_one_owner_with_one_finding_are_one_row():
    tally = Tally()
    for name in ("b", "a", "c"):
        raw = owned("StatefulSet", "db")
        raw["metadata"]["name"] = f"db-{name}"
        raw["spec"]["schedulerName"] = "volcano" if name == "c" else "other"
        tally.add(judged(raw))
    for number in range(tally_module.MAX_REASONS + 2):
        tally.leave(f"namespace n{number} is exempt")
    assert [(row.finding and row.finding.rule, row.pods, row.example) for row in tally.rows()] == [
        ("foreign-scheduler", 2, "db-b"),
        (None, 1, "db-c"),
    ]
    assert (tally.pods, tally.requesting, sum(tally.left.values())) == (3, 3, tally_module.MAX_REASONS + 2)
    assert tally.left[tally_module.OTHER_REASONS] == 2
    assert tally.findings == {"deny": 2}
    assert tally.objects == {"deny": 2}


def test_many_warnings_hide_no_denial(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tally_module, "MAX_ROWS", 2)
    tally = Tally()
    for number in range(5):
        tally.add(judged(placed(tolerations=[], metadata={"name": f"p{number}", "annotations": dict(ASSIGNED)})))
    tally.add(judged(placed(schedulerName="other", metadata={"name": "z", "annotations": dict(ASSIGNED)})))
    assert [row.subject.name for row in tally.rows()] == ["p0", "p1", "z"]
    assert tally.left_out == 3
    assert tally.findings == {"warn": 5, "deny": 1}


@given(strategies.mangled(st.builds(placed)))
def test_odd_objects_are_refused_by_name_or_judged(raw: Any):
    from webhook.errors import Malformed

    try:
        if isinstance(raw.get("kind"), str) and is_scanned(raw, WORKLOAD_KINDS):
            judge(raw, SNAPSHOT)
    except Malformed:
        pass
