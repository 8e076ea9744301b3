"""Properties of the whole pipeline, whatever comes in."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from webhook import names
from webhook.cluster.files import load_device_config, load_nodes
from webhook.cluster.snapshot import build_snapshot
from webhook.devices.nodes import read_node
from webhook.outcome import Outcome
from webhook.policy import parse_policy
from webhook.review import Snapshot, mutate, review, validate
from webhook.wire.models import Request

DATA = Path(__file__).parent / "data"
CONFIG = load_device_config(DATA / "config" / "device-config.yaml")


def snapshot(fleet: str | None = "mixed", **policy: Any) -> Snapshot:
    nodes = load_nodes(DATA / "fleets" / f"{fleet}.yaml", CONFIG) if fleet else None
    return build_snapshot(CONFIG, parse_policy(policy, "the test's policy"), nodes)


USUAL = snapshot()
FLEET_RULES = {"card-count", "no-eligible-card", "memory-above-card", "split-count", "fits-no-node"}
SNAPSHOTS = [
    USUAL,
    snapshot(None),
    snapshot("rtx4090", memoryAboveCard="deny", target={"volcano": "1.16.0"}),
    snapshot("mixed", percentage={"mixedCards": "deny"}, workloads="deny", toleration=None),
    replace(USUAL, config=replace(CONFIG, vgpu=replace(CONFIG.vgpu, default_memory=2000, overwrite_env=True))),
]


def request(pod: Any, **changes: Any) -> Request:
    usual = Request("uid", "admission.k8s.io/v1", "CREATE", "", "Pod", "", "team-a", "", "alice", False, pod, None)
    return replace(usual, **changes)


# --- patches --------------------------------------------------------------------------------------------------------

extras = st.dictionaries(st.sampled_from(["x-new", "affinity", "overhead"]), strategies.json_values, max_size=2)


@st.composite
def pods_with_extras(draw):
    """Pods with fields that this project does not know, in every place where it edits, and tolerations and env."""
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
def test_the_patch_makes_the_api_server_repeat_the_mutation(pod: dict[str, Any], settings_: Snapshot):
    before = orjson.dumps(pod)
    outcome = mutate(request(pod), settings_)
    assert jsonpatch.apply_patch(json.loads(before), list(outcome.operations)) == outcome.object
    assert orjson.dumps(pod) == before, "the request's own object is never touched"
    assert bool(outcome.operations) == bool(outcome.mutations)


@given(pods_with_extras(), st.sampled_from(SNAPSHOTS))
def test_a_second_mutation_changes_nothing(pod: dict[str, Any], settings_: Snapshot):
    once = mutate(request(pod), settings_)
    twice = mutate(request(dict(once.object)), settings_)
    assert twice.operations == ()
    assert twice.notices == ()


@given(pods_with_extras(), st.sampled_from(SNAPSHOTS))
def test_what_is_not_known_stays_bit_for_bit(pod: dict[str, Any], settings_: Snapshot):
    after = mutate(request(pod), settings_).object
    assert orjson.dumps(_unknown(after)) == orjson.dumps(_unknown(pod))


def _unknown(pod: Any) -> Any:
    """A pod without what mutations may write; the order of keys counts."""
    spec = {key: value for key, value in pod["spec"].items() if key not in ("schedulerName", "tolerations")}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [{k: v for k, v in c.items() if k not in ("resources", "env")} for c in spec[kind]]
    kept = [t for t in pod["spec"].get("tolerations") or [] if t != {"key": names.VGPU_TAINT} | _EXISTS]
    return {**pod, "spec": {**spec, "tolerations": kept}}


_EXISTS = {"operator": "Exists", "effect": "NoSchedule"}


# --- verdicts -------------------------------------------------------------------------------------------------------

wishes = st.fixed_dictionaries(
    {},
    optional={
        names.VGPU_NUMBER: st.integers(1, 4).map(str),
        names.VGPU_MEMORY: st.sampled_from(["1", "3k", "4Ki", "16160", "24564", "400k", "1Gi"]),
        names.VGPU_CORES: st.integers(0, 100).map(str),
        names.VGPU_MEMORY_PERCENTAGE: st.integers(1, 100).map(str),
        "cpu": st.just("500m"),
    },
)
schedulers = st.sampled_from([None, "", "default-scheduler", "volcano"])


@given(wishes, st.sampled_from(["limits", "requests"]), schedulers)
def test_a_right_wish_is_admitted_after_mutation(wish: dict[str, str], part: str, scheduler: str | None):
    """At most four cards of a node, which the largest cards of the fleet are, too: whatever is lowered still fits."""
    pod = {"spec": {"containers": [{"name": "c", "resources": {part: wish}}]}}
    if scheduler is not None:
        pod["spec"]["schedulerName"] = scheduler
    outcome = review(request(pod), USUAL)
    assert outcome.allowed, outcome.message()
    assert outcome.violations == ()


@given(strategies.pods(), strategies.fleets())
def test_one_more_node_never_makes_a_placeable_pod_impossible(pod: dict[str, Any], raw: list[dict[str, Any]]):
    """Judged on the same, mutated pod: what a percentage becomes may well change with the fleet."""
    nodes = [node for node in (read_node(item, CONFIG) for item in raw) if node]
    policy = parse_policy({"memoryAboveCard": "deny"}, "the test's policy")
    fewer, more = (build_snapshot(CONFIG, policy, some) for some in (nodes[:-1], nodes))
    mutated = request(dict(mutate(request(pod), more).object))
    if _fleet_denies(validate(mutated, more)):
        assert _fleet_denies(validate(mutated, fewer))


def _fleet_denies(outcome: Outcome) -> bool:
    return not FLEET_RULES.isdisjoint(violation.rule for violation in outcome.denials)


def test_an_unknown_fleet_never_denies():
    wish = {names.VGPU_NUMBER: "999", names.VGPU_MEMORY: "999k", names.VGPU_CORES: "100"}
    pod = {"spec": {"containers": [{"name": "c", "resources": {"limits": wish, "requests": wish}}]}}
    assert not review(request(pod), USUAL).allowed
    outcome = review(request(pod), snapshot(None))
    assert (outcome.allowed, outcome.violations) == (True, ())


# --- what is whose business -----------------------------------------------------------------------------------------

PRIVILEGED = {
    "metadata": {"annotations": {names.USE_GPUTYPE: "H100"}},
    "spec": {
        "nodeName": "n",
        "containers": [
            {
                "name": "c",
                "resources": {"limits": {names.VGPU_NUMBER: "0"}},
                "securityContext": {"privileged": True},
            }
        ],
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
        {"operation": "UPDATE", "sub_resource": "status"},
        {"operation": "UPDATE", "sub_resource": "resize"},
        {"group": "apps", "kind": "Deployment", "sub_resource": "scale"},
        {"namespace": "kube-system"},
    ],
)
def test_what_no_rule_names_is_allowed_untouched(changes: dict[str, Any]):
    settings = snapshot("mixed", namespaces=[{"match": ["kube-*"], "exempt": True}])
    for half in (mutate, validate, review):
        outcome = half(request(PRIVILEGED, **changes), settings)
        assert (outcome.touched, outcome.allowed, outcome.operations) == (False, True, ())
        assert outcome.answer().audit is None


def test_every_finding_is_told_at_once_and_in_the_order_of_the_registry():
    outcome = validate(request(PRIVILEGED), USUAL)
    rules = [violation.rule for violation in outcome.violations]
    assert rules == ["number-zero", "foreign-scheduler", "node-name-set", "privileged-device", "gputype-unknown"]
    lines = outcome.message().split("\n")
    assert [line.partition(":")[0] for line in lines[:-1]] == rules[:-1]
    assert lines[-1] == f"(decision {outcome.id})"
