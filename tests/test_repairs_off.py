"""Each repair, switched off: a validation answers for pods that cannot run without it, or Volcano alone copes."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import each_case
from tests.reviewing import ALL_FAMILIES, CONFIG, request, snapshot
from tests.test_enforcement import pod
from tests.workloads import PARTIAL_KINDS, kind_id, workload
from webhook.outcome import Outcome
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKind
from webhook.policy.warnings import CHECKS_OF_REPAIRS
from webhook.review import Snapshot, mutate, review
from webhook.rules.registry import MUTATIONS


def sized(**limits: Any) -> dict[str, Any]:
    return pod(number=1, memory=3000, cores=10, **limits)


REQUESTED = sized()
REQUESTED["spec"]["containers"][0]["resources"] = {
    "requests": REQUESTED["spec"]["containers"][0]["resources"]["limits"]
}
ASCEND = sized()
ASCEND["spec"]["containers"][0]["resources"]["limits"] = {
    "huawei.com/Ascend910B3": "1",
    "huawei.com/Ascend910B3-memory": "5000",
}
OTHER = sized()
OTHER["spec"]["containers"].append({"name": "log", "image": "i"})

# A pod that the repair would change, and the rules that answer when it is off; none where the pod runs all the same.
SWITCHED_OFF = {
    "limits-from-requests": (REQUESTED, {"limits-missing"}),
    "default-number": (pod(memory=3000, cores=10), {"count-missing"}),
    "percentage-to-memory": (pod(**{"number": 1, "cores": 10, "memory-percentage": 50}), {"percentage-unresolved"}),
    "default-memory": (pod(number=1, cores=10), set()),  # a whole card's memory
    "default-cores": (pod(number=1, memory=3000), set()),  # no limit of cores
    "memory-above-card": (pod(number=1, memory=10**6, cores=10), {"memory-above-card"}),
    "ascend-memory-template": (ASCEND, set()),  # the scheduler rounds up by itself
    "scheduler-name": (sized(), {"foreign-scheduler"}),
    "toleration": (sized(), {"toleration-missing"}),
    "hide-devices": (OTHER, set()),  # as without `overwriteEnv: true`
}


def using(**policy: Any) -> Snapshot:
    vgpu = replace(CONFIG.vgpu, default_number=1, default_memory=2000, default_cores=20, overwrite_env=True)
    made = snapshot(*ALL_FAMILIES, **policy)
    return replace(made, config=replace(made.config, vgpu=vgpu))


def test_every_repair_is_listed():
    assert list(SWITCHED_OFF) == [rule.id for rule in MUTATIONS]


@each_case("rule", SWITCHED_OFF)
@each_case("enforcement", ["enforce", "audit"])
def test_a_repair_that_is_off(rule: str, enforcement: str):
    raw, answers = SWITCHED_OFF[rule]
    usual = review(request(raw), using())
    assert rule in usual.mutations, "the pod needs it"
    assert usual.denials == []
    off = review(request(raw), using(repairs={rule: "off"}, enforcement=enforcement))
    assert rule not in off.mutations
    assert {violation.rule for violation in off.violations} - {v.rule for v in usual.violations} == answers


def test_off_in_some_namespaces():
    entries = [
        {"match": ["a*"], "repairs": {"toleration": "off"}},
        {"match": ["ab"], "repairs": {"scheduler-name": "off", "toleration": "on"}},
    ]
    used = using(repairs={"scheduler-name": False}, namespaces=entries)

    def made(namespace: str) -> set[str]:
        return {"scheduler-name", "toleration"} & set(mutate(request(sized(), namespace=namespace), used).mutations)

    assert made("b") == {"toleration"}
    assert made("a") == set()
    assert made("ab") == {"toleration"}


def test_policy_check_knows_the_answer_to_each_repair():
    answered = {rule: answer for rule, (_, answers) in SWITCHED_OFF.items() for answer in answers}
    assert answered == CHECKS_OF_REPAIRS


@pytest.mark.parametrize("kind", PARTIAL_KINDS, ids=kind_id)
def test_a_part_of_a_pod_lacks_nothing(kind: WorkloadKind):
    """What repairs would add to it, its controller may add."""
    used = using(repairs={"toleration": "off", "scheduler-name": "off"})

    def reviewed(kind: WorkloadKind) -> Outcome:
        return review(request(workload(kind, [sized()]), group=kind.group, kind=kind.kind), used)

    deployment = reviewed(WORKLOAD_KINDS["apps", "Deployment"])
    assert {violation.rule for violation in deployment.violations} == {"toleration-missing", "foreign-scheduler"}
    part = reviewed(kind)
    assert part.touched
    assert part.violations == ()
