"""A repair that is off: a validation reports pods that cannot run without it, or the pods run anyway."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import each_case
from tests.review.test_enforcement import pod
from tests.reviewing import ALL_FAMILIES, CONFIG, request, snapshot
from tests.workloads import PARTIAL_KINDS, kind_id, workload
from webhook.pod.workload_kinds import WORKLOAD_KINDS, WorkloadKind
from webhook.review.endpoints import mutate, review
from webhook.rules.registry import MUTATIONS
from webhook.snapshot import Snapshot


def sized_pod(**limits: Any) -> dict[str, Any]:
    return pod(number=1, memory=3000, cores=10, **limits)


def pod_with(**resources: Any) -> dict[str, Any]:
    raw = sized_pod()
    raw["spec"]["containers"][0]["resources"] = resources
    return raw


REQUESTED = pod_with(requests=sized_pod()["spec"]["containers"][0]["resources"]["limits"])
ASCEND = pod_with(limits={"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "5000"})
FOREIGN = pod_with(limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"})
OTHER = sized_pod()
OTHER["spec"]["containers"].append({"name": "log", "image": "i"})

# A pod that the repair changes, and the rules that report it if the repair is off; none if the pod runs anyway.
SWITCHED_OFF = {
    "translate-dialect": (FOREIGN, {"foreign-dialect"}),
    "limits-from-requests": (REQUESTED, {"limits-missing"}),
    "default-number": (pod(memory=3000, cores=10), {"count-missing"}),
    "percentage-to-memory": (pod(**{"number": 1, "cores": 10, "memory-percentage": 50}), {"percentage-unresolved"}),
    "lower-memory": (pod(number=1, memory=10**6, cores=10), {"memory-above-card"}),
    "default-memory": (pod(number=1, cores=100), set()),  # a whole card's memory
    "default-cores": (pod(number=1, memory=3000), set()),  # no limit of cores
    "ascend-memory-template": (ASCEND, set()),  # the scheduler itself rounds up
    "scheduler-name": (sized_pod(), {"foreign-scheduler"}),
    "toleration": (sized_pod(), {"toleration-missing"}),
    "hide-devices": (OTHER, set()),  # same as without `overwriteEnv: true`
}


def settings_with(**policy: Any) -> Snapshot:
    vgpu = replace(CONFIG.vgpu, default_number=1, default_memory=2000, default_cores=20, overwrite_env=True)
    base = snapshot(*ALL_FAMILIES, dialects={"hami": "translate"}, **policy)
    return replace(base, config=replace(base.config, vgpu=vgpu))


def test_every_repair_is_listed():
    assert SWITCHED_OFF.keys() == {rule.id for rule in MUTATIONS}, "add a pod for the new one"


@each_case("rule", SWITCHED_OFF)
@each_case("enforcement", ["enforce", "audit"])
def test_a_check_reports_a_pod_whose_repair_is_off(rule: str, enforcement: str):
    raw, rules = SWITCHED_OFF[rule]
    repaired = review(request(raw), settings_with())
    assert rule in repaired.mutations, "the pod needs the repair"
    assert repaired.denials == []
    off = review(request(raw), settings_with(repairs={rule: "off"}, enforcement=enforcement))
    assert rule not in off.mutations
    assert {violation.rule for violation in off.violations} - {v.rule for v in repaired.violations} == rules


def test_a_repair_can_be_off_in_some_namespaces():
    entries = [
        {"match": ["a*"], "repairs": {"toleration": "off"}},
        {"match": ["ab"], "repairs": {"scheduler-name": "off", "toleration": "on"}},
    ]
    settings = settings_with(repairs={"scheduler-name": False}, namespaces=entries)

    def repairs_in(namespace: str) -> set[str]:
        return {"scheduler-name", "toleration"} & set(
            mutate(request(sized_pod(), namespace=namespace), settings).mutations
        )

    assert repairs_in("b") == {"toleration"}
    assert repairs_in("a") == set()
    assert repairs_in("ab") == {"toleration"}


@pytest.mark.parametrize("kind", PARTIAL_KINDS, ids=kind_id)
def test_a_partial_pod_is_not_reported_if_repairs_are_off(kind: WorkloadKind):
    """Its controller can add what a repair adds to a pod."""
    on, off = settings_with(), settings_with(repairs={"toleration": "off", "scheduler-name": "off"})
    whole = WORKLOAD_KINDS["apps", "Deployment"]

    def found(kind: WorkloadKind, settings: Snapshot) -> set[str]:
        outcome = review(request(workload(kind, [sized_pod()]), group=kind.group, kind=kind.kind), settings)
        assert outcome.reviewed
        return {violation.rule for violation in outcome.violations}

    sound = found(whole, on)  # what rules find in the pod whatever is repaired
    assert found(whole, off) - sound == {"toleration-missing", "foreign-scheduler"}
    assert found(kind, off) - sound <= {"gpus-counted-by-name"}, "which no repair mends"
