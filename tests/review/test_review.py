"""Properties of the whole pipeline for random pods and fleets."""

import json
from dataclasses import replace
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.cases import each_case
from tests.cli.conftest import only_rules
from tests.reviewing import ALL_FAMILIES, CONFIG, request, snapshot
from tests.timing import within
from webhook import names
from webhook.pod.size import MAX_CONTAINERS
from webhook.review.endpoints import mutate, review, validate
from webhook.rules.choices import Level
from webhook.rules.registry import VALIDATIONS
from webhook.rules.validate import memory_whole
from webhook.snapshot import Snapshot

USUAL = snapshot("mixed")
# Without the rules that only warn, if they are not about amounts or nodes.
MADE = [rule.id for rule in VALIDATIONS if rule.needs or rule.fleet or rule.level is Level.DENY]
AMOUNTS = snapshot("mixed", **only_rules(*MADE))
FOUND = ("number-zero", "foreign-scheduler", "node-name-set", "privileged-device", "gputype-unknown")
EVERY_FAMILY = snapshot(*ALL_FAMILIES)
SNAPSHOTS = [
    USUAL,
    EVERY_FAMILY,
    snapshot(),
    snapshot("rtx4090", memoryAboveCard="deny", target={"volcano": "1.16.0"}),
    snapshot("mixed", percentage={"mixedCards": "deny"}, workloads="deny", toleration=None),
    replace(USUAL, config=replace(CONFIG, vgpu=replace(CONFIG.vgpu, default_memory=2000, overwrite_env=True))),
]


# --- updates of workloads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "old_spec", "old_status", "allowed"),
    [
        ("Job", {"suspend": True}, {}, False),
        ("Job", {"suspend": True}, {"active": 0}, False),
        ("Job", {"suspend": True}, {"active": 1}, True),  # suspended a moment ago
        ("Job", {"suspend": False}, {}, True),
        ("Job", {"suspend": "yes"}, {}, True),
        ("Job", {}, {}, True),
        ("ReplicaSet", {"suspend": True}, {}, True),  # it has no such field
    ],
)
def test_only_of_a_suspended_job_an_update_is_refused(
    kind: str, old_spec: dict[str, Any], old_status: dict[str, Any], allowed: bool
):
    spec = {"schedulerName": "volcano", "containers": [{"resources": {"limits": {names.VGPU_NUMBER: "1"}}}]}
    job = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "train", "annotations": {names.GROUP_MIN_MEMBER: "900"}},
        "spec": {"parallelism": 900, "replicas": 900, "template": {"spec": spec}},
    }
    before = {"spec": {"template": {"spec": {**spec, "priority": 1}}, **old_spec}, "status": old_status}
    outcome = validate(
        request(job, {**job, **before}), snapshot("mixed", workloads="deny", **only_rules("gang-too-large"))
    )
    assert {violation.rule for violation in outcome.violations} == {"gang-too-large"}
    assert outcome.allowed is allowed


# --- patches --------------------------------------------------------------------------------------------------------

extras = st.dictionaries(st.sampled_from(["x-new", "affinity", "overhead"]), strategies.json_values, max_size=2)


@st.composite
def pods_with_extras(draw):
    """Pods with unknown fields in every place that mutations edit, and with tolerations and env."""
    pod = draw(strategies.pods())
    pod.update(draw(extras))
    pod["spec"].update(draw(extras))
    pod["spec"].update(
        draw(st.fixed_dictionaries({}, optional={"schedulerName": st.sampled_from(["", "volcano", "x"])}))
    )
    if draw(st.booleans()):
        operators = st.sampled_from(["Exists", "Equal"])
        known = {"key": st.sampled_from(["", names.VGPU_TAINT]), "operator": operators, "x-new": strategies.json_values}
        pod["spec"]["tolerations"] = draw(st.lists(st.fixed_dictionaries({}, optional=known), max_size=3))
    for container in pod["spec"]["containers"]:
        container.update(draw(extras))
        values = st.sampled_from([{"value": "all"}, {"value": "none"}, {"valueFrom": {}}])
        env = values.map(lambda value: {"name": names.NVIDIA_VISIBLE_DEVICES, **value})
        container.update(draw(st.fixed_dictionaries({}, optional={"env": st.none() | st.lists(env, max_size=2)})))
    return pod


@given(pods_with_extras(), st.sampled_from(SNAPSHOTS))
def test_a_mutation_is_its_patch_happens_once_and_changes_no_unknown_field(pod: dict[str, Any], settings: Snapshot):
    before = orjson.dumps(pod)
    once = mutate(request(pod), settings)
    assert jsonpatch.apply_patch(json.loads(before), list(once.operations)) == once.object
    assert orjson.dumps(pod) == before, "the object of the request is never changed"
    assert bool(once.operations) == bool(once.mutations)
    assert orjson.dumps(_unknown(once.object)) == orjson.dumps(_unknown(pod))
    twice = mutate(request(dict(once.object)), settings)
    assert (twice.operations, twice.notices) == ((), ())


def _unknown(pod: Any) -> Any:
    """A pod without the fields that mutations write; the order of keys counts."""
    spec = {key: value for key, value in pod["spec"].items() if key not in ("schedulerName", "tolerations")}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{k: v for k, v in c.items() if k not in ("resources", "env")} for c in spec[kind]]
    kept = [t for t in pod["spec"].get("tolerations") or [] if t != {"key": names.VGPU_TAINT} | _EXISTS]
    return {**pod, "spec": {**spec, "tolerations": kept}}


_EXISTS = {"operator": "Exists", "effect": "NoSchedule"}


# --- verdicts -------------------------------------------------------------------------------------------------------

valid_limits = st.fixed_dictionaries(
    {},
    optional={
        names.VGPU_NUMBER: st.integers(1, 4).map(str),
        names.VGPU_MEMORY: st.sampled_from(["128", "3k", "4Ki", "16160", "24564", "400k"]),
        names.VGPU_CORES: st.integers(0, 100).map(str),
        names.VGPU_MEMORY_PERCENTAGE: st.integers(1, 100).map(str),
        "cpu": st.just("500m"),
    },
)
ABOUT_NODES = {rule.id for rule in VALIDATIONS if rule.fleet}
schedulers = st.sampled_from([None, "", "default-scheduler", "volcano"])


@given(valid_limits, st.sampled_from(["limits", "requests"]), schedulers)
def test_a_valid_request_is_admitted_after_mutation(limits: dict[str, str], part: str, scheduler: str | None):
    """The largest cards of the fleet are on a node with four cards, so lowered requests still fit. `1Gi` is bytes: refused."""
    pod = {"spec": {"containers": [{"name": "c", "resources": {part: limits}}]}}
    if scheduler is not None:
        pod["spec"]["schedulerName"] = scheduler
    outcome = review(request(pod), AMOUNTS)
    assert outcome.allowed, outcome.message()
    found = {violation.rule for violation in outcome.violations}
    assert found <= {memory_whole.check.id}, "it reports a valid request: mend the rule, or name it here"


IMPOSSIBLE = {
    "vgpu": {names.VGPU_NUMBER: "999", names.VGPU_MEMORY: "999k", names.VGPU_CORES: "100"},
    "gpushare": {names.GPUSHARE_NUMBER: "999"},
    "ascend": {"huawei.com/Ascend910B3": "999"},
    "mindcluster": {names.NPU_CORE: "800"},
}


DECLARED = [
    {"name": "v", "cards": [{"type": "NVIDIA-A", "memory": 1000}]},
    {"name": "g", "family": "gpushare", "cards": [{"type": "any", "memory": 1000}]},
    {"name": "a", "family": "ascend", "cards": [{"type": "Ascend910B3", "memory": 65536}]},
]


@pytest.mark.parametrize("limits", [pytest.param(limits, id=family) for family, limits in IMPOSSIBLE.items()])
def test_an_unknown_fleet_never_denies_a_pod(limits: dict[str, str]):
    pod = {
        "metadata": {"labels": {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}},
        "spec": {"nodeSelector": {"zone": "moon"}, "containers": [{"name": "c", "resources": {"limits": limits}}]},
    }
    assert not review(request(pod), EVERY_FAMILY).allowed
    for unknown in (snapshot(), snapshot(fleet={"declared": DECLARED})):
        outcome = review(request(pod), unknown)
        assert outcome.allowed
        assert not [found for found in outcome.violations if found.rule in ABOUT_NODES]


@st.composite
def valid_pods(draw):
    """A pod that fits on the fleet with every family."""
    chip, most = draw(st.sampled_from([("huawei.com/Ascend910B3", 8), ("huawei.com/Ascend310P", 2)]))
    number = draw(st.integers(1, most))
    memory = {f"{chip}-memory": draw(st.sampled_from(["128", "3k", "12289", "21527"]))} if number == 1 else {}
    limits, labels = draw(
        st.sampled_from(
            [
                ({names.GPUSHARE_NUMBER: draw(st.integers(1, 3).map(str))}, {}),
                ({names.GPUSHARE_MEMORY: draw(st.sampled_from(["1", "16k", "15360"]))}, {}),
                ({chip: str(number), **memory}, {}),
                (
                    {names.NPU_CORE: draw(st.sampled_from(["1", "2", "4", "8", "20", "32"]))},
                    {names.RING_CONTROLLER: names.RING_CONTROLLER_310P, names.VNPU_LEVEL: "high"},
                ),
            ]
        )
    )
    containers = [{"name": "c", "resources": {draw(st.sampled_from(["limits", "requests"])): limits}}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers, **draw(strategies.selectors)}}


@given(valid_pods())
def test_a_valid_request_for_other_devices_is_admitted_after_mutation(pod: dict[str, Any]):
    outcome = review(request(pod), EVERY_FAMILY)
    assert outcome.allowed, outcome.message()
    assert {violation.rule for violation in outcome.violations} <= {"node-selector-unmatched"}


# --- objects that are not reviewed -----------------------------------------------------------------------------------

PRIVILEGED = {
    "metadata": {"annotations": {names.USE_GPUTYPE: "H100"}},
    "spec": {
        "nodeName": "n",
        "containers": [{"resources": {"limits": {names.VGPU_NUMBER: "0"}}, "securityContext": {"privileged": True}}],
    },
}


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT", "sub_resource": "exec", "kind": "PodExecOptions"},
        {"kind": "Service"},
        {"group": "example.com"},
        {"sub_resource": "binding"},
        {"operation": "UPDATE", "sub_resource": "resize"},
        {"group": "apps", "kind": "Deployment", "sub_resource": "scale"},
        {"namespace": "kube-system"},
    ],
)
def test_an_object_that_no_rule_reviews_is_allowed_unchanged(changes: dict[str, Any]):
    settings = snapshot("mixed", namespaces=[{"match": ["kube-*"], "exempt": True}])
    for endpoint in (mutate, validate, review):
        outcome = endpoint(request(PRIVILEGED, **changes), settings)
        assert (outcome.reviewed, outcome.allowed, outcome.operations) == (False, True, ())
        assert outcome.answer().audit is None


def test_all_findings_are_reported_in_the_order_of_the_registry():
    outcome = validate(request(PRIVILEGED), snapshot("mixed", **only_rules(*FOUND)))
    rules = [violation.rule for violation in outcome.violations]
    assert rules == [*FOUND]
    lines = outcome.message().split("\n")
    assert [line.partition(":")[0] for line in lines[:-1]] == rules[:-1]
    assert lines[-1] == f"(decision {outcome.id})"


@pytest.mark.parametrize(
    ("url", "links"),
    [
        ("https://gpu.example.org/help", ["help: https://gpu.example.org/help"]),
        (
            "https://a/?{rule}#{rule}",
            ["help: https://a/?number-zero#number-zero", "help: https://a/?privileged-device#privileged-device"],
        ),
    ],
)
def test_a_refusal_ends_with_each_link_of_the_policy_once(url, links):
    pod = {"spec": {"containers": PRIVILEGED["spec"]["containers"] * 2}}
    outcome = validate(request(pod), snapshot("mixed", helpURL=url, rules={"foreign-scheduler": "warn"}))
    assert outcome.message().split("\n")[-1 - len(links) :] == [f"(decision {outcome.id})", *links]
    large = validate(request({"spec": {"containers": [{}] * (MAX_CONTAINERS + 1)}}), snapshot(helpURL=url))
    assert large.message().endswith(f"\nhelp: {url.replace('{rule}', 'pod-too-large')}")


def test_the_rules_of_a_review_begin_with_the_repairs():
    limits = {names.VGPU_NUMBER: "1", names.VGPU_MEMORY_PERCENTAGE: "50"}
    pod = {"spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"limits": limits}}]}}
    outcome = review(request(pod), snapshot("mixed", **only_rules(*FOUND)))
    assert outcome.rules == ["percentage-to-memory", "scheduler-name", "toleration", "node-name-set"]


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded() -> Snapshot:
    """5,000 nodes of all families in 200 shapes."""
    models = [
        lambda i: strategies.node_json(f"n{i}", strategies.register([("NVIDIA-A", 1000 + i % 50)] * 8)),
        lambda i: strategies.gpushare_node(f"n{i}", 8, 8 * (15360 + i % 50)),
        lambda i: strategies.ascend_node(f"n{i}", [(9, 65536 + i % 50 + kind, 20) for kind in range(8)] * 2),
        lambda i: strategies.mindcluster_node(f"n{i}", 64 + i % 50, "Ascend310P-8"),
    ]
    raw = [model(i) for i in range(1250) for model in models]
    for number, node in enumerate(raw):
        node["metadata"]["labels"] = {"zone": str(number % 97), "size": str(number % 900)}
    return snapshot(raw=raw, target={"volcano": "1.16.0"})


@each_case(
    "limits",
    [
        {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: "{}", names.VGPU_CORES: "1"},
        {names.GPUSHARE_MEMORY: "{}"},
        {"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "{}", "huawei.com/Ascend910B3-core": "1"},
        {"huawei.com/Ascend910B3-memory": "{}"},
        {names.NPU_CORE: "{}"},
    ],
    ids=["vgpu", "gpushare", "ascend", "ascend-memory", "mindcluster"],
)
@each_case("number", [1, 16, MAX_CONTAINERS])
@each_case("mode", ["hami-core", "x"])
def test_an_expensive_pod_is_reviewed_quickly(crowded: Snapshot, limits: dict[str, str], number: int, mode: str):
    """Many containers with different requests, and a node affinity of the maximum size."""
    amounts = [{name: amount.format(1000 + i) for name, amount in limits.items()} for i in range(number)]
    expressions = [{"key": "size", "operator": "Gt", "values": ["-1"]} for _ in range(3)]
    some = {"key": "zone", "operator": "NotIn", "values": [str(i) for i in range(30)]}
    pod = {
        "metadata": {
            "labels": {names.RING_CONTROLLER: names.RING_CONTROLLER_310P},
            "annotations": {names.VNPU_MODE: mode},
        },
        "spec": {
            "affinity": strategies.affinity([{"matchExpressions": [*expressions, some]}]),
            "containers": [{"name": "c", "resources": {"limits": each, "requests": each}} for each in amounts],
        },
    }
    within(0.5, lambda: review(request(pod), crowded))  # a quarter of a second for each of mutate and validate
