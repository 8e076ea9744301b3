"""Runs tests/rules/cases/<rule-id>.yaml: the exact patches and messages of each rule.

A case has a name, a short pod and the expected result. The runner adds the fields that no rule reports: names and images,
requests equal to limits (as the API server does), Volcano's schedulerName, and a toleration of everything.

    deviceConfig, vnpus   keys over tests/data/config/device-config.yaml's `nvidia:` and `vnpus:`; null: without this section
    policy                the policy file
    fleet                 a file in tests/data/fleets; absent: the fleet is unknown
    scheduler             the scheduler's plugins; absent: they are unknown
    classes               the resource that each DeviceClass serves; absent: they are unknown. `null` is one that is no text
    quotas                the `hard` of each ResourceQuota of the namespace; absent: they are unknown
    queues                short queues: name, annotations, parent, state, capability; absent: they are unknown
    operation, subResource, user, namespace   of the request; absent: CREATE, of a pod, by alice in team-a
    workload              the object; each template of pods in it is short like a pod
    pod, old              {annotations, labels, containers, init, ephemeral: [...], and any other field of the spec}
    patch, notices        the exact patch and notices of /mutate; `by` lists the rules that write, if not only this one
    unmutated             true: the validating endpoint gets the original pod
    finds                 the findings of this rule: path, message, and level if it is not the default
    also                  other rules that have findings; absent: none. `python -m tests.rules` writes it
"""

import json
from dataclasses import replace
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.cases import check_each
from webhook.devices.config_file import parse_device_config
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.rules.context import Collections
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.settings.table import FLEET
from webhook.snapshot import Snapshot
from webhook.volcano.device_classes import DeviceClass, DeviceClasses
from webhook.volcano.queues import Queue, Queues, read_queue
from webhook.volcano.quotas import Quota, Quotas, read_quota
from webhook.volcano.scheduler import parse_scheduler_conf
from webhook.wire.models import Request

CASES = Path(__file__).parent / "cases"
DATA = Path(__file__).parents[1] / "data"
ALL = {file.stem: yaml.safe_load(file.read_text()) for file in sorted(CASES.glob("*.yaml"))}
SETTINGS = {"policy", "deviceConfig", "vnpus", "fleet", "scheduler", "queues", "quotas", "classes"}
KEYS = SETTINGS | {"name", "operation", "subResource", "user", "namespace", "workload", "pod", "old", "unmutated"}
KEYS |= {"patch", "notices", "by", "finds", "also"}

DEVICE_CONFIG = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())


@pytest.mark.parametrize("rule", ALL)
def test_rule(rule: str):
    check_each(_check, [(case["name"], (rule, case)) for case in ALL[rule]])


def _check(rule: str, case: dict[str, Any]):
    assert set(case) <= KEYS
    assert {"patch", "finds"} & set(case), "a case that expects nothing cannot fail"
    request, snapshot = request_of(case), snapshot_of(case)
    repaired = mutate(request, snapshot)
    assert repaired.operations == mutate(request, _reading_anew(snapshot)).operations, (
        "a rule marked `independent` is read"
    )
    if "patch" in case:
        _check_patch(rule, case, request, repaired)
    if "finds" in case:
        _check_findings(rule, case, validated(request, repaired, case))


def validated(request: Request, repaired: Outcome, case: dict[str, Any]) -> Outcome:
    """What /validate finds in a case, by default after its repairs."""
    if repaired.reviewed and not case.get("unmutated"):
        request = request._replace(object=dict(repaired.object))
    return validate(request, snapshot_of(case))


def also_found(rule: str, case: dict[str, Any]) -> list[str]:
    """The other rules that have findings in a case of a rule."""
    request = request_of(case)
    outcome = validated(request, mutate(request, snapshot_of(case)), case)
    return sorted({violation.rule for violation in outcome.violations} - {rule})


def _check_patch(rule: str, case: dict[str, Any], request: Request, outcome: Outcome):
    assert list(outcome.operations) == case["patch"]
    assert [detail for _, detail in outcome.notices] == case.get("notices", [])
    assert {reporting_rule for reporting_rule, _ in outcome.notices} <= {rule, *case.get("by", [])}
    assert list(outcome.mutations) == (case.get("by", [rule]) if case["patch"] else [])
    assert jsonpatch.apply_patch(request.object, case["patch"]) == outcome.object


def _check_findings(rule: str, case: dict[str, Any], outcome: Outcome):
    findings = [
        {"path": v.path, "message": v.message, "level": v.level.value} for v in outcome.violations if v.rule == rule
    ]
    assert findings == [{"level": DEFAULT_LEVELS[rule].value, **finding} for finding in case["finds"]]
    others = sorted({v.rule for v in outcome.violations} - {rule})
    assert others == sorted(case.get("also", [])), "`python -m tests.rules` writes what else is found"
    assert outcome.allowed == all(v.level.value != "deny" for v in outcome.violations)


def snapshot_of(case: dict[str, Any]) -> Snapshot:
    return _snapshot(json.dumps({key: value for key, value in case.items() if key in SETTINGS}))


@cache
def _snapshot(settings: str) -> Snapshot:
    """Cases with equal settings share a snapshot."""
    case = json.loads(settings)
    document = {
        section: {**DEVICE_CONFIG[section], **(case.get(key) or {})}
        for section, key in (("nvidia", "deviceConfig"), ("vnpus", "vnpus"))
        if case.get(key, {}) is not None
    }
    config = parse_device_config(document, "the case's device config")
    nodes = read_nodes(_fleet(case["fleet"]), config) if "fleet" in case else None
    tiers = {"tiers": [{"plugins": case["scheduler"]}]} if "scheduler" in case else None
    conf = parse_scheduler_conf(tiers, "the case's scheduler") if tiers else None
    queues = Queues([_queue(**queue) for queue in case["queues"]]) if "queues" in case else None
    quotas = Quotas([_quota(index, hard) for index, hard in enumerate(case["quotas"])]) if "quotas" in case else None
    classes = DeviceClasses(starmap(DeviceClass, case["classes"].items())) if "classes" in case else None
    policy = parse_policy(case.get("policy", {}), "the case's policy")
    return SnapshotInputs(config, policy, nodes, conf, Collections(queues, quotas, classes)).snapshot()


@cache
def _fleet(name: str) -> Any:
    return FLEET.load(DATA / "fleets" / f"{name}.yaml")


def _reading_anew(snapshot: Snapshot) -> Snapshot:
    """The same, but the pod is read again after every repair."""
    other = replace(snapshot)
    object.__setattr__(other, "mutations", tuple([replace(rule, independent=False) for rule in snapshot.mutations]))
    return other


def _quota(index: int, hard: dict[str, Any]) -> Quota:
    quota = read_quota({"metadata": {"name": f"quota-{index}", "namespace": "team-a"}, "spec": {"hard": hard}})
    assert quota is not None
    return quota


def _queue(name: str, state: str = "Open", annotations: Any = None, **spec: Any) -> Queue:
    metadata = {"name": name, "annotations": annotations or {}}
    queue = read_queue({"metadata": metadata, "spec": spec, "status": {"state": state}})
    assert queue is not None
    return queue


def request_of(case: dict[str, Any]) -> Request:
    new = _templates(case["workload"]) if "workload" in case else whole_pod(case["pod"])
    group = new["apiVersion"].rpartition("/")[0].removesuffix("/v1")
    return Request(
        uid="705ab4f5-6393-11e8-b7cc-42010a800002",
        api_version="admission.k8s.io/v1",
        operation=case.get("operation", "CREATE"),
        group=group,
        kind=new["kind"],
        sub_resource=case.get("subResource", ""),
        namespace=case.get("namespace", "team-a"),
        name="pod",
        user=case.get("user", "alice"),
        dry_run=False,
        object=new,
        old_object=whole_pod(case["old"]) if "old" in case else None,
    )


def _templates(short: Any) -> Any:
    """A workload with its templates in full."""
    if isinstance(short, list):
        return [_templates(each) for each in short]
    if not isinstance(short, dict):
        return short
    return {key: whole_pod(value) if _is_template(key, value) else _templates(value) for key, value in short.items()}


def _is_template(key: str, value: Any) -> bool:
    """Whether it is the template of a pod, not that of the Jobs of a JobSet."""
    return key in ("template", "leaderTemplate", "workerTemplate") and "spec" not in value


def whole_pod(short: dict[str, Any]) -> dict[str, Any]:
    """A pod as the API server sends it, in which what a case does not say is valid for all rules."""
    short = dict(short)
    metadata = {"name": "pod", "annotations": short.pop("annotations", {}), "labels": short.pop("labels", {})}
    spec = {"schedulerName": "volcano", "tolerations": [{"operator": "Exists"}]}
    for key, kind in (("init", "initContainers"), ("containers", "containers"), ("ephemeral", "ephemeralContainers")):
        if key in short:
            spec[kind] = [_container(container, key, index) for index, container in enumerate(short.pop(key))]
    spec.update(short)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _without_none(spec)}


def _container(short: dict[str, Any], key: str, index: int) -> dict[str, Any]:
    short = dict(short)
    names = {"containers": ["main", "second", "third"], "init": ["warm-up"], "ephemeral": ["debug"]}[key]
    full = {"name": names[index] if index < len(names) else f"{key}-{index}", "image": "example.com/cuda"}
    limits, requests = _amounts(short.pop("limits", None)), _amounts(short.pop("requests", None))
    if limits is not None and requests is None:
        requests = dict(limits)
    resources = {"limits": limits, "requests": requests}
    return {**full, "resources": _without_none(resources), **short}


def _amounts(short: Any) -> Any:
    """Numbers as the API server sends them: as strings."""
    if not isinstance(short, dict):
        return short
    return {name: str(value) if isinstance(value, int) else value for name, value in short.items()}


def _without_none(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item is not None}
