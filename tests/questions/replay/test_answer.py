"""A replay with the original inputs reproduces the decision; with other inputs, it reports what would change."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.audit.recording import recorded
from tests.audit.test_excerpt import rich_pods
from tests.audit.test_reader import deep_decision
from tests.cases import each_case
from tests.cli.conftest import only_rules
from tests.examples import examples
from tests.policy import test_exceptions
from tests.review import test_pod_groups
from tests.reviewing import ALL_FAMILIES, DATA, RECORDED, request, snapshot
from tests.workloads import KINDS, kind_id, kinds, workload
from webhook.audit.decision import Decision
from webhook.devices.config_file import parse_device_config
from webhook.pod.templates import changed_templates
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKind
from webhook.questions.replay.answer import (
    ENDPOINT_REVIEWS,
    PASSED_OVER,
    Direction,
    Replayed,
    Replayer,
    ReplayVerdict,
    rebuild,
)
from webhook.review.endpoints import mutate
from webhook.rules.choices import Level
from webhook.settings.snapshot import default_device_config
from webhook.snapshot import Snapshot
from webhook.suites.rulebook import example_suite
from webhook.wire import codec

known = partial(snapshot, *ALL_FAMILIES)

OLD = known()
HIDING = known(
    workloads="deny",
    namespaces=[{"match": ["kube-*"], "exempt": True}],
    config=parse_device_config({"nvidia": {"overwriteEnv": True, "defaultGPUNum": 1, "defaultMemory": 3000}}, "test"),
)
AUDITING = known(enforcement="audit")
CARDS = only_rules("card-count")
OTHER_SCHEDULER = known(schedulerName="other", schedulerNames=["other"])
WARNING = known(enforcement="warn", workloads="deny")
ENDPOINTS = st.sampled_from(sorted(ENDPOINT_REVIEWS))


def replay(decision: Any, base: Snapshot = OLD, tried: Snapshot | None = None) -> Replayed:
    return Replayer(base, tried or base).replay(decision)


def assert_reproduced(admission_request: Any, endpoint: str, used: Snapshot = OLD) -> None:
    found = replay(recorded(admission_request, used, endpoint), used)
    assert found.verdict is ReplayVerdict.SAME, (found.direction, found.reason, found.decision.findings, found.outcome)


@each_case("endpoint", ENDPOINT_REVIEWS)
@each_case("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_reviews_are_reproduced(file: Path, endpoint: str):
    assert_reproduced(codec.decode(file.read_bytes()), endpoint)


counts = st.integers(-1, 40) | st.sampled_from(["4", None, True])
policies = st.sampled_from([{}, {"podManagementPolicy": "Parallel"}, {"strategy": {"type": "Recreate"}}])


@st.composite
def gangs(draw):
    """A workload whose pods start together, some of them malformed."""
    limits = {"volcano.sh/vgpu-number": draw(st.integers(1, 9))}
    pods = [{"spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}}, {"spec": {"containers": [{}]}}]
    annotations = {"scheduling.volcano.sh/group-min-member": draw(st.sampled_from(["0", "2", "7", "many"]))}
    if draw(st.booleans()):
        annotations["scheduling.volcano.sh/queue-name"] = "research"
    if kind := draw(st.sampled_from(["", "Deployment", "StatefulSet", "ReplicaSet"])):
        spec = {"replicas": draw(counts), "template": pods[0], **draw(policies)}
        metadata = {"name": "a", "annotations": annotations}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}
    tasks = [
        {"name": name, "replicas": draw(counts), "minAvailable": draw(counts), "template": draw(st.sampled_from(pods))}
        for name in ("ps", "worker")
    ]
    if draw(st.booleans()):
        tasks[1]["dependsOn"] = {"name": ["ps"]}
    spec = {"minAvailable": draw(counts), "tasks": tasks}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "a"}, "spec": spec}


some_pods = st.lists(rich_pods(), min_size=2, max_size=2)
requests = {
    "a new pod": st.builds(
        lambda pod, namespace: request(pod, namespace=namespace),
        rich_pods(),
        st.sampled_from(["default", "kube-system"]),
    ),
    "a changed pod": st.builds(
        lambda pods, part: request(*pods, sub_resource=part),
        some_pods,
        st.sampled_from(["", "ephemeralcontainers", "status"]),
    ),
    "a workload": st.builds(
        lambda pods, kind: request(workload(kind, pods)), st.lists(rich_pods(), min_size=1, max_size=2), kinds
    ),
    "a changed workload": st.builds(
        lambda pods, old, kind: request(workload(kind, pods), workload(kind, [pods[0], old] if old else pods)),
        some_pods,
        strategies.pods() | st.none(),
        kinds,
    ),
    "another operation": st.builds(
        lambda pod, operation, part: request(pod, operation=operation, sub_resource=part),
        rich_pods(),
        st.sampled_from(["DELETE", "CONNECT"]),
        st.sampled_from(["", "status"]),
    ),
    "a gang": st.builds(request, gangs()),
    "another object": st.builds(lambda pod: request({**pod, "kind": "Service"}), rich_pods()),
}


@pytest.mark.parametrize("what", requests)
def test_any_request_is_reproduced(what: str):
    @examples(45)
    @given(requests[what], ENDPOINTS, st.sampled_from([OLD, HIDING, AUDITING, WARNING]))
    def check(admission_request: Any, endpoint: str, used: Snapshot):
        assert_reproduced(admission_request, endpoint, used)

    check()


CASES = {case.name: case for case in example_suite().cases}


@each_case("name", CASES)
@each_case("endpoint", ENDPOINT_REVIEWS)
def test_the_example_of_every_rule_is_reproduced(endpoint: str, name: str):
    suite = example_suite()
    reviewed, used = suite.run(CASES[name]).reviewed.request, suite.snapshot(CASES[name])
    assert_reproduced(reviewed, endpoint, used)
    if reviewed.kind == "Pod":
        repaired = mutate(reviewed, used).object
        assert_reproduced(reviewed._replace(object=repaired), endpoint, used)


REPLICAS = {"replicas", "parallelism", "completions", "size", "minAvailable"}


def _as_large(value: Any) -> Any:
    """A workload with many pods wherever it counts them."""
    if isinstance(value, list):
        return [_as_large(each) for each in value]
    if isinstance(value, dict):
        return {key: 90 if key in REPLICAS else _as_large(each) for key, each in value.items()}
    return value


FILES = sorted((DATA / "workloads").glob("*.yaml"))
WORKLOADS = [raw for file in FILES for raw in yaml.safe_load_all(file.read_text()) if raw is not None]
DENYING = known(workloads="deny", rules={"group-too-large": "deny", "rollout-needs-room": "deny"})


@each_case("raw", WORKLOADS, ids=lambda raw: raw["kind"])
@pytest.mark.parametrize("many", [False, True])
def test_a_workload_is_reproduced_by_what_says_how_many_pods_it_has(raw: dict[str, Any], many: bool):
    judged = request(_as_large(raw) if many else raw)
    for endpoint in ENDPOINT_REVIEWS:
        assert_reproduced(judged, endpoint, OLD)
        assert_reproduced(judged, endpoint, DENYING)
    found = replay(recorded(judged, OLD), OLD, DENYING)
    assert (found.direction is Direction.REFUSED) == (not ENDPOINT_REVIEWS["validate"](judged, DENYING).allowed)


@each_case("kind", KINDS, ids=kind_id)
def test_the_same_templates_are_reviewed(kind: WorkloadKind):
    admission_request = request(workload(kind, [pod(99), pod()]), workload(kind, [pod(), pod()]))
    new = changed_templates(kind, admission_request.object or {}, admission_request.old_object)
    again = rebuild(recorded(admission_request, OLD))
    kept = again.templates or ()
    assert [(one.path, one.whole, one.sources) for one in kept] == [(one.path, one.whole, one.sources) for one in new]
    assert (again.request.group, again.request.kind) == kind.key


@examples(60)
@given(strategies.json_objects | strategies.mangled(strategies.pods()), strategies.json_values, ENDPOINTS)
def test_no_content_of_a_line_raises(kept: Any, patch: Any, endpoint: str):
    kept, patch = orjson.loads(json.dumps([kept, patch]))
    usual = recorded(request(pod()), OLD, endpoint)
    for kind in ("Pod", "Job", "CronJob", "Service", ""):
        for held in (
            kept,
            {"pod": kept},
            {"pod": {}, "old": kept},
            {"templates": [{"path": "spec.template", "pod": kept}]},
            {"templates": [{"path": "spec.tasks[0].template", "pod": {}}], "workload": kept},
            {"templates": [{"path": "spec.template", "pod": {}}], "workload": {"spec": kept}},
            {"templates": [{"path": "spec.template", "pod": {}, "sources": kept}], "group": kept, "workload": kept},
            {"templates": kept, "group": "ray.io"},
        ):
            decision = replace(usual, kind=kind, request=held)
            replayer = Replayer(OLD, OTHER_SCHEDULER)
            replayer.replay(replace(decision, endpoint="mutate", patch=[{"op": "add", "path": "/a", "value": patch}]))
            assert replayer.replay(decision).verdict in ReplayVerdict


# --- other inputs ---------------------------------------------------------------------------------------------------


def pod(number: int = 1, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"limits": {"volcano.sh/vgpu-number": number}}}
    return {"kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [container], **spec}}


def judged(raw: dict[str, Any], used: Snapshot = OLD) -> Decision:
    """The decision of `validate` about a pod that `mutate` reviewed before."""
    return recorded(request(dict(mutate(request(raw), used).object)), used)


TRUSTED = {"rules": {"host-access": "deny"}}
AUDIT, WARN = {"enforcement": "audit"}, {"enforcement": "warn"}


@pytest.mark.parametrize(
    "raw, used, tried, direction",
    [
        (pod(hostPID=True), {}, TRUSTED, Direction.REFUSED),
        (pod(99), {}, {"rules": {"card-count": "off"}}, Direction.ALLOWED),
        (pod(1), {}, {"rules": {"card-count": "off"}}, None),
        (pod(99, hostPID=True), {}, TRUSTED, Direction.FOUND),
        (pod(hostPID=True), {}, {"rules": {"host-access": "off"}}, Direction.FOUND),
        (pod(hostPID=True), {}, {"namespaces": [{"match": ["other"], **TRUSTED}]}, None),
        (pod(hostPID=True), {"rules": {"host-access": "off"}}, {}, Direction.WARNED),
        (pod(99), CARDS, AUDIT | CARDS, Direction.ALLOWED),
        (pod(), CARDS, AUDIT | CARDS, None),
        (pod(99), AUDIT, WARN, Direction.WARNED),
    ],
)
def test_a_new_policy(raw: dict[str, Any], used: Any, tried: Any, direction: Direction | None):
    used, tried = known(**used), known(**tried)
    decision = judged(raw, used)
    for found in (replay(decision, tried), replay(decision, used, tried)):
        assert found.direction is direction
        assert found.verdict is (ReplayVerdict.SAME if direction is None else ReplayVerdict.CHANGED)
    assert (replay(decision, tried).other, replay(decision, used, tried).other) == (("policy",), ())


def test_new_warnings():
    found = replay(judged(pod(hostPID=True), known(rules={"host-access": "off"})), OLD)
    assert [violation.rule for violation in found.gained] == ["host-access"]
    assert found.lost == ()


def test_a_pod_is_validated_as_the_new_inputs_would_repair_it():
    replayer = Replayer(OLD, OTHER_SCHEDULER)
    assert replayer.replay(judged(pod())).direction is Direction.REFUSED, "its review by mutate was not seen"
    assert replayer.replay(recorded(request(pod()), OLD, "mutate")).direction is Direction.REPAIRED
    assert replayer.replay(judged(pod())).verdict is ReplayVerdict.SAME


@pytest.mark.parametrize("enforcement", ["audit", "warn"])
def test_enforcing_refuses_pods_that_were_only_recorded(enforcement: str):
    used = known(enforcement=enforcement, **CARDS)
    replayer = Replayer(used, known(**CARDS))
    repaired = replayer.replay(recorded(request(pod()), used, "mutate"))
    assert repaired.direction is Direction.REPAIRED
    gained, lost = repaired.other_operations
    assert [operation["path"] for operation in gained] == ["/spec/schedulerName", "/spec/tolerations"]
    assert lost == []
    assert replayer.replay(judged(pod(), used)).verdict is ReplayVerdict.SAME, "it is repaired first"
    refused = replayer.replay(judged(pod(99), used))
    assert refused.direction is Direction.REFUSED
    assert ("card-count", Level.DENY) in [(before.rule, after.level) for before, after in refused.level_changes]


def test_auditing_admits_pods_that_were_refused():
    used = known(**CARDS)
    replayer = Replayer(used, known(**AUDIT, **CARDS))
    assert replayer.replay(recorded(request(pod(99)), used, "mutate")).direction is Direction.REPAIRED
    assert replayer.replay(judged(pod(99), used)).direction is Direction.ALLOWED


def test_another_policy_changes_what_would_be_refused():
    tried = known(enforcement="audit", rules={"card-count": "warn"})
    found = replay(judged(pod(99), AUDITING), AUDITING, tried)
    assert found.direction is Direction.FOUND, "the author of the pod sees no difference"
    assert (found.gained, found.lost) == ((), ())
    assert [(b.rule, b.level, a.level) for b, a in found.level_changes] == [("card-count", Level.DENY, Level.WARN)]
    tried = known(enforcement="audit", repairs={"toleration": False})
    found = replay(recorded(request(pod()), AUDITING, "mutate"), AUDITING, tried)
    assert (found.direction, len(found.other_operations[1])) == (Direction.REPAIRED, 1)


def test_another_fleet():
    decision = judged(pod(99))
    found = replay(decision, snapshot())
    assert (found.direction, found.other) == (Direction.ALLOWED, ("fleet",))
    found = replay(decision, snapshot(config=default_device_config()))
    assert found.other == ("config", "fleet")


def test_a_decision_that_the_same_inputs_do_not_reproduce_is_unexplained():
    decision = replace(judged(pod()), allowed=False)
    assert replay(decision).verdict is ReplayVerdict.UNEXPLAINED
    tried = replay(decision, OLD, known(**TRUSTED))
    assert tried.verdict is ReplayVerdict.UNEXPLAINED, "the other inputs are not the cause"
    other = replace(decision, digests={**decision.digests, "fleet": "another"})
    assert replay(other).verdict is ReplayVerdict.CHANGED


# --- lines without the reviewed object ------------------------------------------------------------------------------


def test_a_pod_that_could_not_be_recorded():
    env = [{"name": f"CUDA_DEVICE_SM_LIMIT_{number:0>900}"} for number in range(50)]
    found = replay(judged({**pod(), "spec": {"containers": [{"name": "a", "env": env}]}}))
    assert (found.verdict, found.reason) == (ReplayVerdict.UNKNOWN, "the line was too long to hold the pod")
    decision = replace(judged(pod()), request={"omitted": "spec.volumes must be a list, not a string"})
    assert replay(decision).reason == "the pod could not be recorded"


EXEMPT = known(namespaces=[{"match": ["default"], "exempt": True}])


def test_pods_of_a_namespace_that_was_exempt():
    decision = recorded(request(pod(99)), EXEMPT)
    assert replay(decision, EXEMPT).verdict is ReplayVerdict.SAME
    assert replay(decision).reason == PASSED_OVER
    assert replay(decision, EXEMPT, OLD).reason == PASSED_OVER
    assert replay(judged(pod(99)), EXEMPT).direction is Direction.ALLOWED


def test_workloads_whose_templates_did_not_change():
    deployment = workload(WORKLOAD_KINDS["apps", "Deployment"], [pod(99)])
    unchanged = request(deployment, {**deployment, "metadata": {"labels": {"a": "b"}}})
    decision = recorded(unchanged, OLD)
    tried = known(**TRUSTED)
    assert replay(decision, OLD, tried).verdict is ReplayVerdict.SAME
    assert replay(decision, tried).reason == PASSED_OVER, "that policy is not known"
    decision = recorded(unchanged, EXEMPT)
    assert replay(decision, EXEMPT, OLD).reason == PASSED_OVER
    assert replay(decision, EXEMPT, known(workloads="off")).verdict is ReplayVerdict.SAME


def test_the_user_counts():
    annotated = {**pod(), "metadata": {"name": "pod", "annotations": {"volcano.sh/devices-to-allocate": "x"}}}
    trusted = known(trustedUsers=["alice"])
    for user, direction in (("alice", Direction.ALLOWED), ("bob", None)):
        decision = recorded(request(annotated, pod(), user=user), OLD)
        assert not decision.allowed
        assert replay(decision, trusted).direction is direction


def test_it_holds_to_the_day_of_the_decision():
    today = datetime.now(UTC).date()
    untils = ("2020-01-01", str(today + timedelta(2)))
    ended, lasting = (test_exceptions.settings(test_exceptions.exception(until=until)) for until in untils)
    for name in ({"name": "train-1"}, {"generateName": "train-"}):
        for used, allowed in ((ended, False), (lasting, True)):
            decision = recorded(request(test_exceptions.pod(**name), day=today), used)
            assert decision.allowed is allowed
            assert [exception["owner"] for exception in decision.exceptions] == ["gpu-team"] * allowed
            assert replay(decision, used).verdict is ReplayVerdict.SAME


@each_case("queue", ["root", "default", ""])
def test_a_pod_group_is_reproduced(queue: str):
    used = test_pod_groups.settings(workloads="off")
    group = test_pod_groups.group(queue)
    created = test_pod_groups.decoded(test_pod_groups.request(group, "CREATE", oldObject=None))
    assert replay(recorded(created, used), used).verdict is ReplayVerdict.SAME


@each_case("endpoint", ENDPOINT_REVIEWS)
@each_case("key", ["request", "patch", "digests"])
def test_a_deep_line_can_be_replayed(key: str, endpoint: str):
    decision = deep_decision(key, "[" * 250 + "0" + "]" * 250)
    assert replay(replace(decision, endpoint=endpoint), OLD, snapshot()).verdict in ReplayVerdict
