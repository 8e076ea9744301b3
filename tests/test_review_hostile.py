"""Whatever comes in: no exception but RequestError, no endless answer, no warning that the API server would drop."""

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.test_review import SNAPSHOTS, USUAL, request, snapshot
from webhook import names
from webhook.errors import Malformed, RequestError
from webhook.outcome import MAX_FINDINGS, MAX_TOLD, MAX_WARNING, Outcome
from webhook.pod.templates import WORKLOADS
from webhook.review import Snapshot, review
from webhook.rules.base import Level
from webhook.wire.codec import decode, encode

# --- any JSON -------------------------------------------------------------------------------------------------------

FIELDS = """
    metadata annotations labels name generateName spec containers initContainers ephemeralContainers resources limits
    requests env value valueFrom envFrom prefix volumeMounts mountPath volumeDevices devicePath volumes hostPath path
    securityContext privileged capabilities add hostPID schedulerName nodeName tolerations key operator effect template
    jobTemplate tasks restartPolicy
""".split()  # noqa: SIM905  # a list of forty strings would fill the page
KNOWN = [names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENTAGE, names.USE_GPUTYPE, names.VGPU_MODE]
WORDS = ["1", "50", "8Gi", "volcano", "A100,", "mig", names.NVIDIA_VISIBLE_DEVICES, "Exists", "", "/dev"]

leaves = strategies.scalars | st.sampled_from(WORDS)
any_json = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, *KNOWN]), inner, max_size=4),
    max_leaves=25,
)


@st.composite
def bent_pods(draw):
    """Right pods, in which one thing somewhere is replaced by any JSON: it goes deeper than any JSON alone."""
    pod = draw(strategies.pods())
    pod["spec"].update(tolerations=[{"operator": "Exists"}], volumes=[{"hostPath": {"path": "/dev"}}])
    first = pod["spec"]["containers"][0]
    first.update(
        env=[{"name": "A", "value": "b"}],
        envFrom=[{"prefix": "A_"}],
        volumeMounts=[{"mountPath": "/tmp"}],
        volumeDevices=[{"devicePath": "/a"}],
    )
    first.update(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}})
    places = list(_places(pod))
    parent, key = draw(st.sampled_from(places))
    parent[key] = draw(any_json)
    return pod


def _places(value: Any):
    for key, child in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(child, dict | list):
            yield from _places(child)


kinds = st.sampled_from([("", "Pod"), ("", "Pod"), *sorted(WORKLOADS), ("", "Service")])
operations = st.sampled_from([("CREATE", ""), ("CREATE", ""), ("UPDATE", ""), ("UPDATE", "ephemeralcontainers")])
objects = st.none() | bent_pods() | st.dictionaries(st.sampled_from(FIELDS), any_json, max_size=4)
workloads = bent_pods().map(lambda pod: {"spec": {"template": pod, "jobTemplate": {"spec": {"template": pod}}}})


@given(kinds, operations, objects | workloads, objects | workloads, st.sampled_from(SNAPSHOTS))
def test_any_object_gets_an_answer_or_a_request_error(
    kind: Any, operation: Any, new: Any, old: Any, settings: Snapshot
):
    asked = request(new, group=kind[0], kind=kind[1], operation=operation[0], sub_resource=operation[1], old_object=old)
    try:
        outcome = review(asked, settings)
    except RequestError:
        return
    assert json.loads(encode(asked, outcome.answer()))["response"]["uid"] == asked.uid
    _check_warnings(outcome)


mangled = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.just("admission.k8s.io/v1") | any_json,
        "kind": st.just("AdmissionReview") | any_json,
        "request": any_json
        | st.fixed_dictionaries(
            {"uid": st.just("u"), "kind": st.just({"kind": "Pod"}), "operation": st.just("CREATE")},
            optional={
                "object": bent_pods() | any_json,
                "userInfo": any_json,
                "namespace": any_json,
                "dryRun": any_json,
            },
        ),
    },
)


@given(mangled.map(orjson.dumps) | any_json.map(orjson.dumps) | st.binary(max_size=60))
def test_any_body_gets_an_answer_or_a_request_error(body: bytes):
    try:
        asked = decode(body)
        outcome = review(asked, USUAL)
    except RequestError:
        return
    assert orjson.loads(encode(asked, outcome.answer()))["kind"] == "AdmissionReview"


# --- wrong shapes ---------------------------------------------------------------------------------------------------

VGPU = {"limits": {names.VGPU_NUMBER: "1"}}


@pytest.mark.parametrize(
    "pod, says",
    [
        ({"spec": "x"}, "spec must be an object, not a string"),
        ({"spec": {"containers": "x"}}, "spec.containers must be a list, not a string"),
        ({"spec": {"containers": {}}}, "spec.containers must be a list, not an object"),
        ({"spec": {"containers": [None]}}, "spec.containers[0] must be an object, not null"),
        ({"spec": {"initContainers": ["x"]}}, "spec.initContainers[0] must be an object, not a string"),
        ({"metadata": {"annotations": []}}, "metadata.annotations must be an object, not a list"),
        (
            {"spec": {"containers": [{"resources": {"limits": []}}]}},
            "spec.containers[0].resources.limits must be an object, not a list",
        ),
        (
            {"spec": {"containers": [{"resources": {"limits": "", "requests": VGPU["limits"]}}]}},
            "spec.containers[0].resources.limits must be an object, not a string",
        ),
        (
            {"spec": {"containers": [{"resources": {"limits": VGPU["limits"], "requests": False}}]}},
            "spec.containers[0].resources.requests must be an object, not a boolean",
        ),
        ({"spec": {"containers": [{"resources": 0}]}}, "spec.containers[0].resources must be an object, not a number"),
        (
            {"spec": {"containers": [{"resources": VGPU, "env": {}}]}},
            "spec.containers[0].env must be a list, not an object",
        ),
        (
            {"spec": {"containers": [{"resources": VGPU}], "tolerations": "all"}},
            "spec.tolerations must be a list, not a string",
        ),
        (
            {"spec": {"containers": [{"resources": VGPU}], "schedulerName": 1}},
            "spec.schedulerName must be a string, not a number",
        ),
        (
            {"spec": {"containers": [{"resources": VGPU, "securityContext": {"capabilities": []}}]}},
            "spec.containers[0].securityContext.capabilities must be an object, not a list",
        ),
        (
            {"spec": {"containers": [{"resources": VGPU, "securityContext": {"capabilities": {"add": "ALL"}}}]}},
            "spec.containers[0].securityContext.capabilities.add must be a list, not a string",
        ),
        (None, "request.object must be an object, not null"),
    ],
)
def test_a_wrong_shape_is_named(pod: Any, says: str):
    with pytest.raises(Malformed) as refused:
        review(request(pod), USUAL)
    assert str(refused.value) == says


# --- bounds ---------------------------------------------------------------------------------------------------------


def crowd(size: int, **container: Any) -> dict[str, Any]:
    return {"spec": {"schedulerName": "volcano", "containers": [{"name": f"c{i}", **container} for i in range(size)]}}


def test_findings_are_capped_and_the_message_says_how_many_more():
    outcome = review(request(crowd(1000, resources={"limits": {names.VGPU_NUMBER: "0"}})), USUAL)
    assert not outcome.allowed
    assert len(outcome.violations) == MAX_FINDINGS
    lines = outcome.message().split("\n")
    assert len(lines) == MAX_TOLD + 2
    assert lines[MAX_TOLD:] == [f"and {MAX_FINDINGS - MAX_TOLD} more", f"(decision {outcome.id})"]
    answer = json.loads(encode(request({}), outcome.answer()))["response"]
    assert len(answer["status"]["details"]["causes"]) == MAX_TOLD


def test_a_denial_behind_a_thousand_warnings_is_never_lost():
    pod = crowd(1000, env=[{"name": names.NVIDIA_VISIBLE_DEVICES, "value": "all"}])
    pod["metadata"] = {"annotations": {"volcano.sh/vgpu-node": "gpu-a"}}
    outcome = review(request(pod), USUAL)
    assert not outcome.allowed
    assert [violation.rule for violation in outcome.denials] == ["reserved-annotation"]
    assert "reserved-annotation" in outcome.message()
    assert len(outcome.violations) == MAX_FINDINGS + 1
    assert outcome.warnings[MAX_TOLD:] == [f"and {MAX_FINDINGS - MAX_TOLD} more warnings"]


def test_a_denial_behind_a_thousand_notices_is_never_lost():
    pod = crowd(1000, resources={"limits": {names.VGPU_NUMBER: "1", names.VGPU_MEMORY_PERCENTAGE: "1"}})
    pod["spec"]["nodeName"] = "gpu-a"
    outcome = review(request(pod), USUAL)
    assert "node-name-set" in {violation.rule for violation in outcome.denials}
    assert len(outcome.notices) == MAX_FINDINGS
    assert len(outcome.warnings) == MAX_TOLD + 1


# --- warnings -------------------------------------------------------------------------------------------------------

HOSTILE = ["\n", "\r\n", "\u2028", "\x85", "\x00", '"', "\\", "☕" * 300, "x" * 300, "\u202e", "e\u0301" * 200]
hostile = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=5), max_size=4).map("".join)
LOUD = replace(
    USUAL, levels=replace(USUAL.levels, overrides=dict.fromkeys(USUAL.levels.of("x").levels, Level.WARN), _known={})
)


def _check_warnings(outcome: Outcome):
    for warning in outcome.warnings:
        assert len(warning.encode()) <= MAX_WARNING
        assert len(warning.splitlines()) == 1
        assert warning.isprintable()


@given(st.data())
def test_a_warning_is_one_line_of_256_bytes_whatever_stands_in_the_pod(data: st.DataObject):
    def text() -> str:
        return data.draw(hostile)

    pod = {
        "metadata": {
            "annotations": {
                f"cdi.k8s.io/{text()}": text(),
                f"huawei.com/Ascend{text()}": text(),
                names.USE_GPUTYPE: text(),
                names.NOUSE_GPUTYPE: text(),
                names.VGPU_MODE: text(),
            }
        },
        "spec": {
            "schedulerName": text() or "x",
            "nodeName": text(),
            "volumes": [{"name": text(), "hostPath": {"path": "/dev/nvidia" + text()}}],
            "containers": [
                {
                    "name": text(),
                    "resources": {
                        "limits": {names.VGPU_NUMBER: "9", names.VGPU_MEMORY: text(), names.VGPU_CORES: "101"}
                    },
                    "env": [{"name": "CUDA_DEVICE_SM_LIMIT" + text(), "value": text()}],
                    "volumeMounts": [{"mountPath": "/tmp/vgpu/" + text()}],
                    "securityContext": {"privileged": True, "capabilities": {"add": ["ALL"]}},
                },
                {"name": text(), "resources": {"limits": {names.VGPU_NUMBER: text(), names.VGPU_MEMORY: "1Gi"}}},
            ],
        },
    }
    outcome = review(request(pod, user=text()), LOUD)
    assert outcome.allowed
    assert len(outcome.warnings) > 8
    _check_warnings(outcome)


def test_a_cut_warning_ends_with_a_sign_of_it_and_never_inside_a_character():
    longest = {"name": "☕" * 80, "resources": {"limits": {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: "40k"}}}
    outcome = review(request({"spec": {"containers": [longest]}}), snapshot("rtx4090"))
    (warning,) = outcome.warnings
    assert warning.startswith('memory-above-card: container "☕☕')
    assert warning.endswith("…")
    assert MAX_WARNING - 3 <= len(warning.encode()) <= MAX_WARNING


def test_a_rule_stops_looking_when_enough_is_found():
    """What it finds beyond the cap has the level of what it found before, so the verdict is the same."""
    forged = {f"cdi.k8s.io/{number}": "x" for number in range(5000)}
    limits = {names.VGPU_NUMBER: "1"}
    pod = {
        "metadata": {"annotations": forged},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
    }
    outcome = review(request(pod), USUAL)
    assert not outcome.allowed
    assert [violation.rule for violation in outcome.violations] == ["isolation-mount"] * MAX_FINDINGS
