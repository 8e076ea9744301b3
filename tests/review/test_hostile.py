"""Any input: no exception except RequestError, a bounded response, and no warning that the API server drops."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.cli.conftest import only_rules
from tests.hostile_bodies import hard_template
from tests.review.test_review import SNAPSHOTS, USUAL
from tests.reviewing import RECORDED, calls_of, refusals, request, snapshot
from tests.timing import within
from tests.workloads import workload
from webhook import names
from webhook.audit.writer import Exchange, line
from webhook.devices.verdict import WORK_LIMIT, SearchBudget
from webhook.devices.vgpu.eligibility import Constraints
from webhook.errors import Malformed, RequestError
from webhook.outcome import MAX_FINDINGS, MAX_SHOWN, MAX_WARNING, Outcome
from webhook.pod.patch import Edit
from webhook.pod.size import MAX_CONTAINERS, MAX_ENTRIES, MAX_LOOKS, MAX_TEMPLATES
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import mutate, review, validate
from webhook.review.repair import describe
from webhook.review.workloads import validate_workload
from webhook.rules.choices import Level
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot
from webhook.wire.codec import API_VERSION, MAX_STRUCTURAL_CHARS, decode, encode

# --- any JSON -------------------------------------------------------------------------------------------------------

REVIEWED = [found for path in RECORDED if (found := json.loads(path.read_bytes())["request"]["object"])]
mangled_objects = strategies.mangled(st.sampled_from(REVIEWED) | strategies.pods())
kinds = st.sampled_from([("", "Pod"), ("", "Pod"), *sorted(WORKLOAD_KINDS), ("", "Service")])
operations = st.sampled_from([("CREATE", ""), ("CREATE", ""), ("UPDATE", ""), ("UPDATE", "ephemeralcontainers")])
objects = st.none() | mangled_objects | strategies.json_objects
workloads = strategies.mangled(strategies.pods()).flatmap(
    lambda pod: st.sampled_from([workload(kind, [pod]) for kind in WORKLOAD_KINDS.values()])
)


@given(kinds, operations, objects | workloads, objects | workloads, st.sampled_from(SNAPSHOTS))
def test_any_object_gets_a_response_or_a_request_error(
    kind: Any, operation: Any, new: Any, old: Any, settings: Snapshot
):
    admission_request = request(
        new, group=kind[0], kind=kind[1], operation=operation[0], sub_resource=operation[1], old_object=old
    )
    try:
        outcome = review(admission_request, settings)
    except RequestError:
        return
    assert json.loads(encode(admission_request, outcome.answer()))["response"]["uid"] == admission_request.uid
    _check_warnings(outcome)


def test_a_malformed_object_is_refused_with_its_path():
    """tests/pod/test_view.py has the fields that every rule reads."""

    def capable(capabilities: Any) -> dict[str, Any]:
        resources = {"limits": {names.VGPU_NUMBER: "1"}}
        return {"spec": {"containers": [{"resources": resources, "securityContext": {"capabilities": capabilities}}]}}

    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
    workflow |= {"spec": {"templates": [{"container": {"resources": {"limits": []}}}]}}
    for raw, message in (
        (None, "request.object must be an object, not null"),
        (workflow, "spec.templates[0].container.resources.limits must be an object, not a list"),
        ({"spec": {"containers": [{"resources": 0}]}}, "spec.containers[0].resources must be an object, not a number"),
        (capable([]), "spec.containers[0].securityContext.capabilities must be an object, not a list"),
        (capable({"add": "A"}), "spec.containers[0].securityContext.capabilities.add must be a list, not a string"),
    ):
        with pytest.raises(Malformed, match=rf"^{re.escape(message)}$"):
            review(request(raw), USUAL)


# --- bounds ---------------------------------------------------------------------------------------------------------


def pod_of(size: int, **container: Any) -> dict[str, Any]:
    return {"spec": {"schedulerName": "volcano", "containers": [{"name": f"c{i}", **container} for i in range(size)]}}


ZERO, ONE = ({"resources": {"limits": {names.VGPU_NUMBER: number}}} for number in "01")


def test_findings_are_bounded_and_the_message_counts_the_rest():
    outcome = review(request(pod_of(1000, **ZERO)), USUAL)
    assert not outcome.allowed
    assert len(outcome.violations) == MAX_FINDINGS
    lines = outcome.message().split("\n")
    assert len(lines) == MAX_SHOWN + 2
    assert lines[MAX_SHOWN:] == [f"and {MAX_FINDINGS - MAX_SHOWN} more", f"(decision {outcome.id})"]
    answer = json.loads(encode(request({}), outcome.answer()))["response"]
    assert len(answer["status"]["details"]["causes"]) == MAX_SHOWN


def test_a_denial_after_a_thousand_warnings_is_reported():
    pod = pod_of(1000, env=[{"name": names.NVIDIA_VISIBLE_DEVICES, "value": "all"}])
    pod["metadata"] = {"annotations": {"volcano.sh/vgpu-node": "gpu-a"}}
    outcome = review(request(pod), USUAL)
    assert refusals(outcome) == {"reserved-annotation"}
    assert "reserved-annotation" in outcome.message()
    assert len(outcome.violations) == MAX_FINDINGS + 1
    assert outcome.warnings[MAX_SHOWN:] == [f"and {MAX_FINDINGS - MAX_SHOWN} more warnings"]


def test_a_denial_after_a_thousand_milder_findings_of_the_same_rule_is_reported():
    pod = pod_of(1000, env=[{"name": "LD_PRELOAD", "value": "libjemalloc.so"}])
    pod["spec"]["containers"][-1] |= {**ONE, "env": [{"name": "LD_AUDIT", "value": "x"}]}
    assert refusals(review(request(pod), USUAL)) == {"isolation-env"}


def test_a_denial_after_a_thousand_notices_is_reported():
    pod = pod_of(1000, resources={"limits": {names.VGPU_NUMBER: "1", names.VGPU_MEMORY_PERCENTAGE: "1"}})
    pod["spec"]["nodeName"] = "gpu-a"
    outcome = review(request(pod), USUAL)
    assert "node-name-set" in refusals(outcome)
    assert (len(outcome.notices), len(outcome.warnings)) == (MAX_FINDINGS, MAX_SHOWN + 1)


def test_the_fields_of_causes_show_what_a_terminal_would_obey_or_hide():
    kinds = [{"group": "x.io", "version": "v1", "kind": "Roles", "templates": ["spec.roles.*.template"]}]
    policy = parse_policy({"workloads": "deny", "workloadKinds": kinds}, "")
    roles = {"a\u202e\u200b\x1b[2J": {"template": pod_of(1, **ZERO)}}
    asked = request({"apiVersion": "x.io/v1", "kind": "Roles", "spec": {"roles": roles}})
    answer = json.loads(encode(asked, review(asked, SnapshotInputs.of({"policy": policy}).snapshot()).answer()))
    (field,) = {cause["field"] for cause in answer["response"]["status"]["details"]["causes"]}
    assert field.startswith("spec.roles[a\\u202e\\u200b\\x1b[2J].template")


# --- warnings -------------------------------------------------------------------------------------------------------

HOSTILE = ["\n", "\r\n", "\u2028", "\x85", "\x00", '"', "\\", "☕" * 300, "x" * 300, "\u202e", "e\u0301" * 200]
hostile = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=4).map("".join)
ONLY_WARNINGS = replace(USUAL, policy=parse_policy({"rules": dict.fromkeys(DEFAULT_LEVELS, Level.WARN)}, "the test"))


def _check_warnings(outcome: Outcome):
    for warning in outcome.warnings:
        assert len(warning.encode()) <= MAX_WARNING
        assert len(warning.splitlines()) == 1
        assert warning.isprintable()


def test_the_name_of_a_container_is_shown_in_a_sentence_about_its_annotation():
    """In /mutate, the API server has not yet looked at the names."""
    annotations = {"nvidia.com/container.a\n\u202eb.gpu-memory.limit": "1Gi"}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "a\n\u202eb"}]}}
    for use in ("warn", "translate"):
        outcome = review(request(pod), snapshot("mixed", dialects={"kai": use}))
        assert outcome.notices or outcome.violations
        _check_warnings(outcome)
        assert all(text.isprintable() for _, text in outcome.notices)
        assert all(found.message.isprintable() for found in outcome.violations)


@given(st.data())
def test_a_warning_is_one_line_of_256_bytes_for_any_pod(data: st.DataObject):
    def text() -> str:
        return data.draw(hostile)

    keys = (
        f"cdi.k8s.io/{text()}",
        f"huawei.com/Ascend{text()}",
        names.USE_GPUTYPE,
        names.NOUSE_GPUTYPE,
        names.VGPU_MODE,
    )
    container = {
        "name": text(),
        "resources": {"limits": {names.VGPU_NUMBER: "9", names.VGPU_MEMORY: text(), names.VGPU_CORES: "101"}},
        "env": [{"name": "CUDA_DEVICE_SM_LIMIT" + text(), "value": text()}],
        "volumeMounts": [{"mountPath": "/tmp/vgpu/" + text()}],
        "securityContext": {"privileged": True, "capabilities": {"add": ["ALL"]}},
    }
    other = {"name": text(), "resources": {"limits": {names.VGPU_NUMBER: text(), names.VGPU_MEMORY: "1Gi"}}}
    spec = {"schedulerName": text() or "x", "nodeName": text(), "containers": [container, other]}
    spec["volumes"] = [{"name": text(), "hostPath": {"path": "/dev/nvidia" + text()}}]
    pod = {"metadata": {"annotations": {key: text() for key in keys}}, "spec": spec}
    outcome = review(request(pod, user=text()), ONLY_WARNINGS)
    assert outcome.allowed
    assert len(outcome.warnings) > 8
    _check_warnings(outcome)


def test_a_truncated_warning_ends_with_an_ellipsis_after_a_whole_character():
    longest = {"name": "☕" * 80, "resources": {"limits": {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: "40k"}}}
    outcome = review(request({"spec": {"containers": [longest]}}), snapshot("rtx4090", **only_rules()))
    (warning,) = outcome.warnings
    assert warning.startswith('lower-memory: container "☕☕')
    assert warning.endswith("…")
    assert MAX_WARNING - 3 <= len(warning.encode()) <= MAX_WARNING


def test_a_rule_stops_at_the_maximum_of_findings():
    """Further findings have the same level, so the verdict does not change."""
    forged = {f"cdi.k8s.io/{number}": "x" for number in range(5000)}
    outcome = review(request({"metadata": {"annotations": forged}, **pod_of(1, **ONE)}), USUAL)
    assert not outcome.allowed
    assert [violation.rule for violation in outcome.violations] == ["isolation-mount"] * MAX_FINDINGS


# --- one request, one budget ----------------------------------------------------------------------------------------


BAD = pod_of(1, **ZERO)
ZEROS = snapshot("mixed", **only_rules("number-zero"))


def vcjob(*templates: dict[str, Any], operation: str = "CREATE") -> Any:
    tasks = [{"name": f"t{number}", "template": template} for number, template in enumerate(templates)]
    return request({"spec": {"tasks": tasks}}, group="batch.volcano.sh", kind="Job", operation=operation)


def validated(steps: int, *templates: dict[str, Any]) -> tuple[Outcome, int]:
    """The outcome of a job with so many steps, and how many it takes."""
    budget = SearchBudget(steps)
    return validate_workload(vcjob(*templates), USUAL, USUAL.policy.of("default"), None, budget), steps - budget.left


def test_a_budget_lasts_for_its_last_step():
    budget = SearchBudget(2)
    assert [budget.spend(1) for _ in range(3)] == [True, True, False]


def test_all_templates_of_a_request_share_one_budget():
    """Templates beyond the budget are unknown, so they have no findings."""
    limit = WORK_LIMIT // 3
    templates = [hard_template(variant) for variant in range(400)]
    alone = [validated(limit, template) for template in templates[:40]]
    assert sum(spent for _, spent in alone) / 40 * 400 > 2 * limit, "the templates are too cheap for this test"
    outcome, spent = validated(limit, *templates)
    assert outcome.allowed
    assert limit < spent < 2 * limit, "templates beyond the budget cost little"
    assert {violation.rule for violation in outcome.violations} <= {
        v.rule for each, _ in alone for v in each.violations
    }


def test_equal_templates_are_reviewed_once_and_each_has_the_findings():
    one, other = hard_template(0), hard_template(1)
    spent = [validated(WORK_LIMIT, *templates)[1] for templates in ([one, other, one, one], [one], [other])]
    assert spent[0] == spent[1] + spent[2] > 0
    outcome = validate(vcjob(BAD, pod_of(1, **ONE), BAD, BAD), ZEROS)
    (found,) = validate(vcjob(BAD), ZEROS).violations
    assert [(violation.rule, violation.path) for violation in outcome.violations] == [
        (found.rule, found.path.replace("tasks[0]", f"tasks[{number}]")) for number in (0, 2, 3)
    ]
    assert [each.path for each in outcome.pods] == [f"spec.tasks[{number}].template" for number in range(4)]


def test_templates_beyond_the_limit_are_not_reviewed_and_a_warning_names_them():
    outcome = validate(vcjob(*[{"spec": {}}] * MAX_TEMPLATES, BAD, BAD), USUAL)
    assert outcome.allowed
    assert outcome.violations == ()
    (warning,) = outcome.warnings
    assert warning == (
        "not-reviewed: spec.tasks[500].template and what follows it are not reviewed now, but when the pods are created: "
        "502 templates are too many, at most 500 are reviewed"
    )


def test_templates_before_a_large_one_are_reviewed():
    outcome = validate(vcjob(BAD, pod_of(MAX_CONTAINERS)), ZEROS)
    assert [violation.rule for violation in outcome.violations] == ["number-zero"]
    assert outcome.warnings[0] == (
        "not-reviewed: spec.tasks[1].template is not reviewed now, but when the pods are created: 1001 containers are too "
        "many, at most 1000 are reviewed"
    )


def unlike(node: str) -> dict[str, Any]:
    """An affinity to all nodes but one."""
    term = {"matchExpressions": [{"key": "name", "operator": "NotIn", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    "choose",
    [
        lambda number: {"metadata": {"annotations": {names.NOUSE_GPUTYPE: f"K{number:04}"}}},
        lambda number: {"spec": {**pod_of(1, **ONE)["spec"], "affinity": unlike(f"n{number}")}},
    ],
)
def test_templates_that_choose_in_too_many_ways_are_not_reviewed(choose: Callable[[int], Any]):
    """Each way to choose cards or nodes looks at every kind of node."""
    kinds, most = 1000, MAX_LOOKS // 1000
    types = [f"NVIDIA-K{number:04}" for number in range(kinds)]
    nodes = [strategies.node_json(f"n{at}", strategies.register([(each, 20_000)])) for at, each in enumerate(types)]
    for node in nodes:
        node["metadata"]["labels"] = {"name": node["metadata"]["name"]}
    settings = snapshot(raw=nodes)
    job = vcjob(*[pod_of(1, **ONE) | choose(number) for number in range(most + 9)])
    outcomes: list[Outcome] = []
    looks = calls_of(Constraints.accepts_type, lambda: outcomes.append(validate(job, settings)))
    assert kinds * (most - 1) <= looks <= MAX_LOOKS
    assert len(outcomes[0].pods) == most
    ((rule, notice),) = outcomes[0].notices
    assert rule == "not-reviewed"
    assert notice == (
        f"spec.tasks[{most}].template and what follows it are not reviewed now, but when the pods are created: the templates "
        f"choose among {kinds} kinds of nodes in more than {most} ways"
    )


TOO_LARGE = [
    (pod_of(MAX_CONTAINERS + 1), "1001 containers are too many, at most 1000 are reviewed"),
    ({"spec": {"initContainers": [{}] * MAX_CONTAINERS, "containers": [{}]}}, "1001 containers are too many"),
    (pod_of(1, env=[{"name": "A"}] * (MAX_ENTRIES + 1)), "20001 environment variables, mounts, volumes, resources"),
    (pod_of(1, volumeMounts=[{"mountPath": "/a"}] * (MAX_ENTRIES + 1)), "20001 environment variables"),
    (pod_of(1, resources={"limits": {f"a{i}": "1" for i in range(MAX_ENTRIES + 1)}}), "20001 environment variables"),
    (pod_of(1, securityContext={"capabilities": {"add": ["A"] * (MAX_ENTRIES + 1)}}), "20001 environment variables"),
    ({"metadata": {"annotations": {f"a{i}": "" for i in range(MAX_ENTRIES + 1)}}, "spec": {}}, "20001 environment"),
    ({"spec": {"tolerations": [{}] * MAX_ENTRIES, "volumes": [{}]}}, "20001 environment variables"),
]


@pytest.mark.parametrize("pod, message", TOO_LARGE)
def test_a_pod_that_is_too_large_is_refused(pod: dict[str, Any], message: str):
    """A rule would miss the part that is not read."""
    assert mutate(request(pod), USUAL).word == "not-reviewed"
    outcome = validate(request(pod), USUAL)
    assert outcome.word == "refused"
    (violation,) = outcome.violations
    assert violation.rule == "pod-too-large"
    assert violation.message.startswith(f"the pod is too large: {message}")
    assert violation.message.endswith("are reviewed; make several pods")


DEBUGGER = {"name": "debug", "image": "busybox"}


@pytest.mark.parametrize("pod", [pod for pod, _ in TOO_LARGE])
def test_a_pod_that_exists_is_not_refused_for_its_size(pod: dict[str, Any]):
    """It was created before the webhook, or while no replica answered; what an update adds to it is judged."""

    def denied(annotations: dict[str, str], sub_resource: str = "", **container: Any) -> set[str]:
        had = pod.get("metadata", {}).get("annotations", {})
        new = {**pod, "metadata": {"annotations": {**had, **annotations}}}
        if container:
            new["spec"] = {**pod["spec"], "ephemeralContainers": [{**DEBUGGER, **container}]}
        update = request(new, operation="UPDATE", sub_resource=sub_resource, old_object=pod)
        return {found.rule for found in validate(update, USUAL).denials}

    assert not denied({"example.com/note": "new"}) | denied({}, "status") | denied({}, "ephemeralcontainers", tty=True)
    assert denied({names.VGPU_NODE: "gpu-a"}) == {"reserved-annotation"}
    assert denied({}, "ephemeralcontainers", env=[{"name": "A"}] * (MAX_ENTRIES + 1)) == {"pod-too-large"}
    assert denied({names.USE_GPUTYPE: "T4"}) == {"pod-too-large"}


@pytest.mark.parametrize("enforcement, warned", [("warn", True), ("audit", False)])
def test_a_pod_that_is_too_large_is_recorded_without_enforcement(enforcement: str, warned: bool):
    settings = snapshot("every-family", enforcement=enforcement)
    outcome = review(request(pod_of(MAX_CONTAINERS + 1)), settings)
    assert (outcome.allowed, outcome.word) == (True, "would-be-refused")
    assert bool(outcome.warnings) == warned
    record = orjson.loads(line(Exchange("validate", 1), request(pod_of(MAX_CONTAINERS + 1)), outcome, settings))
    assert [finding["rule"] for finding in record["findings"]] == ["pod-too-large"]
    assert record["request"] == {"omitted": "too large"}


def review_of_many_values(**request: Any) -> bytes:
    """A review of a pod with more values than the webhook parses, encoded as an API server encodes it."""
    usual = {"uid": "u", "kind": {"group": "", "kind": "Pod"}, "namespace": "team-a", "operation": "CREATE"}
    large = {"object": {"metadata": {"object": 1}, "args": [1] * MAX_STRUCTURAL_CHARS}}
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": API_VERSION, "request": usual | request | large})


@pytest.mark.parametrize(
    "fields, outcome_word",
    [
        ({}, "refused"),
        ({"operation": "UPDATE"}, "refused"),
        ({"namespace": "observed"}, "would-be-refused"),
        ({"namespace": "kube-system"}, "not-reviewed"),
        ({"operation": "DELETE"}, "not-reviewed"),
        ({"kind": {"group": "apps", "kind": "Deployment"}}, "not-reviewed"),
    ],
)
def test_a_pod_with_too_many_values_is_refused_in_a_response_with_its_uid(fields: dict[str, Any], outcome_word: str):
    entries = [{"match": ["observed"], "enforcement": "warn"}, {"match": ["kube-*"], "exempt": True}]
    decoded = decode(review_of_many_values(**fields))
    outcome = review(decoded, snapshot("every-family", namespaces=entries))
    response = json.loads(encode(decoded, outcome.answer()))["response"]
    assert outcome.word == outcome_word
    assert (response["uid"], response["allowed"]) == ("u", outcome_word != "refused")
    if outcome_word == "refused":
        remedy = "write less at a time" if "operation" in fields else "make several pods"
        assert f"managedFields aside; {remedy}" in response["status"]["message"]
    if "kind" in fields:
        assert "not reviewed now, but when the pods are created" in response["warnings"][0]


def test_a_rule_reads_the_last_entry_of_the_largest_pod():
    harmless = [{"name": "A", "value": "b"}] * (MAX_ENTRIES - MAX_CONTAINERS - 1)
    pod = pod_of(MAX_CONTAINERS, **ONE)
    pod["spec"]["containers"][-1]["env"] = [*harmless, {"name": "CUDA_DISABLE_CONTROL", "value": "true"}]
    outcome = validate(request(pod), USUAL)
    assert "isolation-env" in {violation.rule for violation in outcome.denials}


def test_a_value_of_megabytes_is_truncated_in_a_message():
    """Only the part that the message shows is encoded."""
    huge = [[1] * 1000] * 1000
    limits = dict.fromkeys((names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES), huge)
    outcome = within(0.1, lambda: validate(request(pod_of(1, resources={"limits": limits})), USUAL))
    assert '"[[1, 1, 1,' in outcome.message()


def test_the_description_of_a_repair_truncates_a_value_of_megabytes():
    """Without enforcement, a warning shows the value that a repair would write."""
    huge = [[1] * 1000] * 2000
    edits = [Edit(("spec", "x"), huge)]
    assert within(0.05, lambda: describe(edits)) == f"spec.x becomes [[{'1,' * 38}1…"
