"""The fallback policies agree with the engine: they refuse exactly the pods that it refuses by the same rules."""

import copy
import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.deploy import drawing
from tests.deploy.clusters import RENAMED, USUAL, Cluster, cluster, outcome_of, request
from tests.deploy.fallback import OTHER_WORDS, FallbackPolicies, Repairs, shown
from tests.deploy.outside_fallback import NOT_IN_FALLBACK, OUTSIDE, REPAIRS
from tests.reviewing import RECORDED
from tests.rules import test_cases as rule_cases
from webhook import names
from webhook.manifests.fallback.expressions import BETWEEN
from webhook.manifests.fallback.isolation import NOT_READ
from webhook.manifests.fallback.pod import MAX_ENTRIES
from webhook.manifests.fallback.policies import FALLBACKS
from webhook.pod.quantity import whole
from webhook.policy.policy import Policy, parse_policy
from webhook.policy.schema import DEFAULT_TRUSTED_USERS
from webhook.review import mutate, validate
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS, VALIDATIONS
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot
from webhook.suites.rulebook import rows

ALL_DENY = dict.fromkeys(FALLBACKS["static"], "deny")
STRICT = {"rules": ALL_DENY, "repairs": {"toleration": "off"}}
OLD = {
    "rules": ALL_DENY,
    "target": {"volcano": "1.16.0", "devicePlugin": "1.11.0"},
    "repairs": {"toleration": "off"},
    "toleration": {"key": "gpu", "operator": "Equal", "value": "a", "effect": ""},
    "schedulerNames": ["volcano", "volcano-gpu"],
}
MANY = {
    "rules": ALL_DENY,
    "enforcement": "warn",
    "trustedUsers": [],
    "namespaces": [
        {"match": ["team-*", "default"], "enforcement": "enforce", "rules": {"isolation-env": "off"}},
        {"match": ["team-[bc]", "*-free"], "exempt": True},
        {
            "match": ["team-?x", "team-[!a-y]"],
            "enforcement": "enforce",
            "rules": {"visible-devices": "warn"},
            "repairs": {"scheduler-name": "off", "toleration": "off"},
        },
    ],
}
NAMESPACES = ["default", "team-a", "team-b", "team-c-free", "team-bx", "team-z", "other", "kube-system", "team-"]


def canonical(pod: dict[str, Any] | None) -> None:
    """Write a pod as the API server does, which refuses containers without a name and devices that are no whole number."""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in ((pod or {}).get("spec", {}).get(kind)) or []:
            container["name"] = container.get("name") or "main"
            for amounts in container.get("resources", {}).values():
                written = sorted(amounts.items())
                amounts.clear()
                amounts.update({name: _canonical(amount) for name, amount in written})


def _canonical(amount: Any) -> str:
    number = whole(amount)
    if number is None or number < 0:
        return "1"
    return str(amount) if number else "0"


class Both:
    """The engine and the fallback policies with the same settings."""

    def __init__(self, snapshot: Snapshot, policy: Policy, fallback: str = "static") -> None:
        self._held = FALLBACKS[fallback]
        self._snapshot = SnapshotInputs(snapshot.config, policy, None).snapshot()
        self.policies = FallbackPolicies(fallback, snapshot.config, policy)

    def assert_agree(self, admission_request: dict[str, Any]) -> str:
        """Compare their verdicts on a request before and after the repair by the webhook. Returns the last refusal."""
        for pod in (admission_request["object"], admission_request["oldObject"]):
            canonical(pod)
        refusal = self._assert_agree(admission_request)
        repaired = outcome_of(mutate, admission_request, self._snapshot)
        canonical(dict(repaired.object))
        if not repaired.operations:
            return refusal
        return self._assert_agree(admission_request | {"object": dict(repaired.object)})

    def _assert_agree(self, admission_request: dict[str, Any]) -> str:
        outcome = outcome_of(validate, admission_request, self._snapshot)
        denials = [] if outcome.allowed else outcome.denials
        held = [found for found in denials if found.rule in self._held]
        expected = {f"{found.rule}: {'' if found.rule in OTHER_WORDS else found.message}" for found in held}
        refusal = self.policies.refusal(admission_request)
        if NOT_READ in refusal:
            return refusal  # stricter on purpose
        assert bool(refusal) == bool(expected), f"fallback policies: {refusal!r}, engine: {expected}"
        if not refusal.endswith("…"):
            assert refusal.count(BETWEEN) + 1 >= len({found.message for found in held})
            found = shown(refusal)
            assert all(shown(sentence) in found for sentence in expected), (
                f"fallback policies: {refusal!r}, engine: {expected}"
            )
        return refusal


def both(policy: dict[str, Any], where: Cluster = USUAL, fallback: str = "static") -> Both:
    return Both(where.snapshot, parse_policy(policy, "policy"), fallback)


# Compiled when a test needs them, not by each process that only collects the tests.
strictly, in_namespaces, defaults, elsewhere, isolating = (
    cache(partial(both, *settings))
    for settings in ((STRICT,), (MANY,), ({},), (OLD, RENAMED), (STRICT, USUAL, "isolation"))
)


OF_PODS = [case for cases in rule_cases.ALL.values() for case in cases if "pod" in case]


@cache
def of_case(settings: str) -> list[Both]:
    """With the settings of a case, and with all rules that deny if it leaves them as they are."""
    case = json.loads(settings)
    policy = case.get("policy") or {}
    policies = [policy] if policy.get("rules") else [policy, policy | STRICT]
    snapshot = rule_cases._snapshot(case)
    return [Both(snapshot, parse_policy(each, "policy")) for each in policies]


@each_case("case", OF_PODS, ids=lambda case: case["name"])
def test_cases(case: dict[str, Any]):
    admission_request = rule_cases._request(case)
    document = request(
        admission_request.object,
        admission_request.operation,
        subResource=admission_request.sub_resource,
        namespace=admission_request.namespace,
        oldObject=admission_request.old_object,
        userInfo={"username": admission_request.user},
    )
    read = ("policy", "deviceConfig", "vnpus")
    for where in of_case(json.dumps({key: case[key] for key in read if key in case}, sort_keys=True)):
        where.assert_agree(document)


@each_case("rule", [row.id for row in rows()])
def test_examples(rule: str):
    example = next(row for row in rows() if row.id == rule).example()
    if example.request.kind == "Pod":
        admission_request = request(example.request.object)
        strictly().assert_agree(admission_request)
        assert (f"{rule}: " in strictly().policies.refusal(admission_request)) == (rule in FALLBACKS["static"])


@each_case("file", RECORDED, ids=lambda file: file.stem)
@each_case("where", [strictly, defaults, elsewhere], ids=["strict", "default", "renamed"])
def test_recorded_reviews(file: Any, where: Callable[[], Both]):
    admission_request = json.loads(file.read_bytes())["request"]
    if admission_request["kind"]["kind"] == "Pod":
        where().assert_agree(admission_request)


@given(
    drawing.hazardous_pods(),
    st.sampled_from([strictly, strictly, elsewhere, defaults]),
    st.sampled_from([{}, {"groups": ["system:authenticated"]}, {"groups": [names.KUBELETS]}]),
)
def test_new_pods(pod: dict[str, Any], where: Callable[[], Both], user: dict[str, Any]):
    where().assert_agree(request(pod, userInfo={"username": "alice", **user}))


@given(drawing.faulty_pods(), st.sampled_from([strictly, strictly, elsewhere, defaults, isolating]))
def test_faulty_pods(pod: dict[str, Any], where: Callable[[], Both]):
    where().assert_agree(request(pod))


@given(drawing.hazardous_pods() | drawing.faulty_pods(), st.sampled_from(NAMESPACES))
def test_namespaces(pod: dict[str, Any], namespace: str):
    in_namespaces().assert_agree(request(pod, namespace=namespace))


@given(drawing.hazardous_pods(), drawing.hazardous_pods(), st.sampled_from(["alice", DEFAULT_TRUSTED_USERS[0]]))
def test_updates(old: dict[str, Any], new: dict[str, Any], user: str):
    """Only annotations change: the API server refuses updates that add containers."""
    new = new | {"spec": old["spec"]}
    for where in (strictly(), in_namespaces()):
        where.assert_agree(request(new, "UPDATE", oldObject=old, userInfo={"username": user}))


@given(drawing.hazardous_pods(), drawing.hazardous_pods())
def test_ephemeral_containers(old: dict[str, Any], debugging: dict[str, Any]):
    added = [{**container, "name": f"debug-{i}"} for i, container in enumerate(debugging["spec"]["containers"] or [])]
    spec = old["spec"] | {"ephemeralContainers": [*old["spec"].get("ephemeralContainers", []), *added]}
    strictly().assert_agree(request(old | {"spec": spec}, "UPDATE", oldObject=old, subResource="ephemeralcontainers"))


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": "A"}] * (MAX_ENTRIES + 1)},
        {"volumeMounts": [{"name": "v", "mountPath": "/" + "a" * 900}] * 100},
    ],
    ids=["entries", "characters"],
)
def test_a_pod_that_is_too_large_is_refused(container: dict[str, Any]):
    pod = drawing.pod_with(resources={"limits": {names.VGPU_NUMBER: "1"}}, **container)
    assert strictly().policies.refusal(request(pod)).startswith("pod-too-large: ")


def test_the_fallback_policies_admit_a_pod_if_no_rule_denies():
    off = both({"rules": dict.fromkeys(DEFAULT_LEVELS, "warn")})
    pod = drawing.pod_with(resources={"limits": {names.VGPU_NUMBER: "1"}}, securityContext={"privileged": True})
    assert off.assert_agree(request(pod)) == ""
    assert "privileged-device: " in strictly().assert_agree(request(pod))


class Repairing:
    """The repairs of the fallback policies, and the engine with these repairs and with all, for the same settings."""

    def __init__(self, nvidia: dict[str, Any], policy: dict[str, Any]) -> None:
        everything = parse_policy(policy, "policy")
        off = dict.fromkeys(NOT_IN_FALLBACK, "off")
        namespaces = [entry | {"repairs": entry.get("repairs", {}) | off} for entry in policy.get("namespaces", [])]
        same = policy | {"repairs": policy.get("repairs", {}) | off, "namespaces": namespaces}
        self._all = cluster(nvidia, everything).snapshot
        self._same = cluster(nvidia, parse_policy(same, "policy")).snapshot
        self._repairs = Repairs(self._all.config, everything)

    def assert_agree(self, admission_request: dict[str, Any]) -> None:
        canonical(admission_request["object"])
        repaired = jsonpatch.apply_patch(admission_request["object"], self._repairs.patches(admission_request))
        expected = outcome_of(mutate, admission_request, self._same)
        assert _filled(repaired) == _filled(expected.object if expected.changes else admission_request["object"])
        alone, after = (
            outcome_of(mutate, admission_request | {"object": pod}, self._all)
            for pod in (admission_request["object"], repaired)
        )
        assert _filled(after.repaired) == _filled(alone.repaired)


def _filled(pod: Any) -> dict[str, Any]:
    """A pod without empty limits and requests, which the API server does not store."""
    pod = copy.deepcopy(dict(pod))
    for kind in ("containers", "initContainers"):
        for container in pod["spec"].get(kind) or []:
            resources = container.get("resources")
            if resources is not None:
                container["resources"] = {part: amounts for part, amounts in resources.items() if amounts}
    return pod


DEFAULTED = {"defaultGPUNum": 2, "defaultMemory": 1000, "defaultCores": 10, "resourceCountName": names.NVIDIA_GPU}
REPAIRING = [
    ({}, {}),
    (
        DEFAULTED,
        {
            "toleration": {"key": "gpu", "operator": "Equal", "value": "a"},
            "schedulerName": "volcano-gpu",
            "schedulerNames": ["volcano-gpu"],
        },
    ),
    (DEFAULTED, MANY | {"repairs": {"default-number": "off"}}),
    ({}, {"toleration": None, "repairs": {"limits-from-requests": "off"}}),
]


@cache
def repairing(number: int) -> Repairing:
    return Repairing(*REPAIRING[number])


@given(
    drawing.faulty_pods(),
    st.sampled_from(range(len(REPAIRING))),
    st.sampled_from([name for name in NAMESPACES if name != "kube-system"]),
)
def test_repairs(pod: dict[str, Any], settings: int, namespace: str):
    repairing(settings).assert_agree(request(pod, namespace=namespace))


def test_every_repair_is_in_the_fallback_policies_or_has_a_reason_why_not():
    assert REPAIRS.isdisjoint(NOT_IN_FALLBACK)
    assert {rule.id for rule in MUTATIONS} == REPAIRS | NOT_IN_FALLBACK.keys()


def test_every_rule_is_in_a_net_or_has_a_reason_why_not():
    held = {rule for rules in FALLBACKS.values() for rule in rules}
    assert held.isdisjoint(OUTSIDE)
    assert {rule.id for rule in VALIDATIONS} == held | OUTSIDE.keys()
