"""The fallback policies agree with the engine: they refuse exactly the pods that it refuses by the same rules."""

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.deploy import drawing
from tests.deploy.clusters import RENAMED, USUAL, Cluster, outcome_of, request
from tests.deploy.fallback import FallbackPolicies, shown
from tests.reviewing import RECORDED
from tests.rules import test_cases as rule_cases
from webhook import names
from webhook.manifests.fallback.isolation import BETWEEN, ISOLATION, NOT_READ
from webhook.manifests.fallback.pod import MAX_ENTRIES
from webhook.pod.quantity import whole
from webhook.policy.policy import Policy, parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.rules.choices import Level
from webhook.rules.policy_keys import DEFAULT_TRUSTED_USERS
from webhook.rules.registry import DEFAULT_LEVELS, VALIDATIONS
from webhook.settings.snapshot import SnapshotInputs
from webhook.snapshot import Snapshot
from webhook.suites.rulebook import rows

ALL_DENY = dict.fromkeys(ISOLATION, "deny")
STRICT = {"rules": ALL_DENY, "isolationEnv": {"allocators": "deny", "wholeCards": "deny"}}
MANY = {
    "rules": ALL_DENY,
    "enforcement": "warn",
    "trustedUsers": [],
    "namespaces": [
        {"match": ["team-*", "default"], "enforcement": "enforce", "rules": {"isolation-env": "off"}},
        {"match": ["team-[bc]", "*-free"], "exempt": True},
        {"match": ["team-?x", "team-[!a-y]"], "enforcement": "enforce", "rules": {"visible-devices": "warn"}},
    ],
}
NAMESPACES = ["default", "team-a", "team-b", "team-c-free", "team-bx", "team-z", "other", "kube-system", "team-"]


def canonical(pod: dict[str, Any] | None) -> None:
    """Write a pod as the API server does, which refuses containers without a name and devices that are no whole number."""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in ((pod or {}).get("spec", {}).get(kind)) or []:
            container["name"] = container.get("name") or "main"
            for amounts in container.get("resources", {}).values():
                amounts.update({name: _canonical(amount) for name, amount in amounts.items()})


def _canonical(amount: Any) -> str:
    number = whole(amount)
    if number is None or number < 0:
        return "1"
    return str(amount) if number else "0"


class Both:
    """The engine and the fallback policies with the same settings."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._snapshot = SnapshotInputs(snapshot.config, policy, None).snapshot()
        self.policies = FallbackPolicies(snapshot.config, policy)

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
        held = [found for found in denials if found.rule in ISOLATION]
        expected = {f"{found.rule}: {found.message}" for found in held}
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


def both(policy: dict[str, Any], where: Cluster = USUAL) -> Both:
    return Both(where.snapshot, parse_policy(policy, "policy"))


# Compiled when a test needs them, not by each process that only collects the tests.
strictly, in_namespaces, defaults, elsewhere = (
    cache(partial(both, *settings)) for settings in ((STRICT,), (MANY,), ({},), ({"rules": ALL_DENY}, RENAMED))
)


OF_PODS = [(rule, case) for rule, cases in rule_cases.ALL.items() for case in cases if "pod" in case]


@cache
def of_case(settings: str) -> list[Both]:
    """With the settings of a case, and with all rules that deny if it leaves them as they are."""
    case = json.loads(settings)
    policy = case.get("policy") or {}
    policies = [policy] if policy.get("rules") else [policy, policy | STRICT]
    snapshot = rule_cases.snapshot_of(case)
    return [Both(snapshot, parse_policy(each, "policy")) for each in policies]


@each_case("rule,case", OF_PODS, ids=lambda one: one[1]["name"])
def test_cases(rule: str, case: dict[str, Any]):
    """Those of other rules, whose settings matter to no fallback policy, all with the same settings."""
    admission_request = rule_cases.request_of(case)
    document = request(
        admission_request.object,
        admission_request.operation,
        subResource=admission_request.sub_resource,
        namespace=admission_request.namespace,
        oldObject=admission_request.old_object,
        userInfo={"username": admission_request.user},
    )
    read = {key: case[key] for key in ("policy", "deviceConfig", "vnpus") if key in case}
    for where in of_case(json.dumps(read, sort_keys=True)) if rule in ISOLATION else [strictly()]:
        where.assert_agree(document)


@each_case("rule", [row.id for row in rows()])
def test_examples(rule: str):
    example = next(row for row in rows() if row.id == rule).example()
    if example.request.kind == "Pod":
        admission_request = request(example.request.object)
        strictly().assert_agree(admission_request)
        assert (f"{rule}: " in strictly().policies.refusal(admission_request)) == (rule in ISOLATION)


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


@given(drawing.hazardous_pods(), st.sampled_from(NAMESPACES))
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


@pytest.mark.parametrize(("amount", "refused"), [("0", False), ("1", True)])
def test_an_init_container_has_a_device_if_it_requests_more_than_nothing(amount: str, *, refused: bool):
    limits = {"limits": {names.VGPU_NUMBER: amount}}
    pod = drawing.pod_with("initContainers", resources=limits, securityContext={"privileged": True})
    assert bool(strictly().assert_agree(request(pod))) is refused


def test_the_fallback_policies_admit_a_pod_if_no_rule_denies():
    off = both({"rules": dict.fromkeys(DEFAULT_LEVELS, "warn")})
    pod = drawing.pod_with(resources={"limits": {names.VGPU_NUMBER: "1"}}, securityContext={"privileged": True})
    assert off.assert_agree(request(pod)) == ""
    assert "privileged-device: " in strictly().assert_agree(request(pod))


WARNING_ONLY = {"isolation-env-from", "isolation-env-tuned"}


def test_the_fallback_policies_hold_every_rule_that_isolates():
    assert ISOLATION.keys() == {rule.id for rule in VALIDATIONS if rule.isolates} - WARNING_ONLY
    assert {DEFAULT_LEVELS[rule] for rule in WARNING_ONLY} == {Level.WARN}
