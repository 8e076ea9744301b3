"""What a rule declares to read is all that it reads: given nothing else, it finds the same."""

import copy
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.audit.test_excerpt import rich_pods
from tests.cases import check_each
from tests.examples import examples
from tests.reviewing import ALL_FAMILIES, request, snapshot
from tests.rules.test_cases import ALL, request_of, snapshot_of
from tests.strategies import json_values
from webhook import names
from webhook.audit.excerpt import Excerpt
from webhook.devices.config import VgpuConfig
from webhook.errors import Malformed
from webhook.pod.fields import paths_of
from webhook.pod.view import PodView
from webhook.policy.json_schema import json_schema
from webhook.review.endpoints import mutate, validate
from webhook.rules import registry
from webhook.rules.base import Mutation, Validation, concerns
from webhook.rules.context import ClusterFact
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

RULES = {rule.id: rule for rule in registry.RULES}
KNOWN = snapshot(*ALL_FAMILIES)
# Keys of the policy that hold for all rules; the last has to list the schedulerName.
FOR_ALL_RULES = ("rules", "namespaces", "workloads", "target", "schedulerNames")


@cache
def excerpt(rule: str) -> Excerpt:
    return Excerpt(paths_of(RULES[rule].reads))


def of_pod(raw: Any, rule: str, known: Snapshot) -> Any:
    return raw and {**excerpt(rule).of_pod(PodView(raw), known.config.resources), "kind": raw["kind"]}


def plain(raw: Any) -> Any:
    """A pod whose amounts are scalars; messages quote others, which the audit log does not keep."""
    raw = copy.deepcopy(raw)
    for container in PodView(raw).every_container() if raw else ():
        for amounts in (container.limits, container.requests):
            amounts.update({name: None for name, amount in amounts.items() if isinstance(amount, (dict, list))})
    return raw


def found(rule: Mutation | Validation, new: Any, old: Any, reviewed: Request, known: Snapshot) -> list[Any]:
    """What a rule yields for a pod that it is about."""
    context = known.context_of(reviewed)
    pod = ReviewedPod(PodView(new), context, old and PodView(old))
    function = rule.propose if isinstance(rule, Mutation) else rule.check
    return list(function(pod, context)) if concerns(rule.families, pod.requested) else []


def declared(rule: str, case: dict[str, Any]) -> Snapshot:
    """The settings of a case without the nodes and the keys of the policy that a rule does not declare."""
    read = {*paths_of(RULES[rule].reads), *(f"policy.{key}" for key in FOR_ALL_RULES)}
    read |= {"policy.fleet"} if "nodes" in read else set()
    policy = {key: value for key, value in (case.get("policy") or {}).items() if f"policy.{key}" in read}
    return snapshot_of(
        {key: value for key, value in case.items() if key != "fleet" or "nodes" in read} | {"policy": policy}
    )


def check_reads(rule: str, reviewed: Request, known: Snapshot, less: Snapshot | None = None) -> None:
    try:
        new, old = plain(reviewed.object), plain(reviewed.old_object)
        whole = found(RULES[rule], new, old, reviewed, known)
    except Malformed:
        return
    short = found(RULES[rule], of_pod(new, rule, known), of_pod(old, rule, known), reviewed, less or known)
    assert short == whole, "it reads what neither `needs` nor `reads` names"


def check_workload(rule: str, reviewed: Request, known: Snapshot, less: Snapshot) -> None:
    """Of a workload, and of the pods of its templates."""
    whole = validate(reviewed, known)
    templates = [
        replace(each.template, pod=of_pod({"kind": "Pod", **each.received.raw}, rule, known))
        for each in whole.pods
        if each.template is not None
    ]
    paths = {template.path for template in templates}
    short = validate(reviewed._replace(object=excerpt(rule).of_workload(reviewed.object or {}, paths)), less, templates)
    assert [one for one in short.violations if one.rule == rule] == [
        one for one in whole.violations if one.rule == rule
    ]


def _check_case(rule: str, case: dict[str, Any]) -> None:
    reviewed, known, less = request_of(case), snapshot_of(case), declared(rule, case)
    if "workload" in case:
        check_workload(rule, reviewed, known, less)
    elif isinstance(RULES[rule], Mutation):
        check_reads(rule, reviewed, known, less)
    else:
        repaired = mutate(reviewed, known)
        raw = reviewed.object if case.get("unmutated") or not repaired.reviewed else dict(repaired.object)
        check_reads(rule, reviewed._replace(object=raw), known, less)


BESIDE_THE_OBJECT = {"deviceClasses", "deviceConfig", "nodes", "request.user", *ClusterFact}
BESIDE_THE_OBJECT |= {f"policy.{key}" for key in json_schema()["properties"]}
BESIDE_THE_OBJECT |= {f"deviceConfig.{key}" for key in TypeAdapter(VgpuConfig).json_schema()["properties"]}
# Fields of containers begin with `containers[*]`: those below `spec.containers[*]` are not kept.
OF_THE_OBJECT = re.compile(
    r"(metadata\.(annotations|labels)\[|spec\.(?!\w*[cC]ontainers\[)|containers\[\*\]\.|workload\.)"
)


def test_rules_read_fields_and_settings_that_there_are():
    read = {path for rule in RULES.values() for path in paths_of(rule.reads)}
    assert {path for path in read if not OF_THE_OBJECT.match(path)} <= BESIDE_THE_OBJECT


@pytest.mark.parametrize("rule", ALL)
def test_a_rule_finds_the_same_in_what_it_declares_to_read(rule: str):
    check_each(_check_case, [(case["name"], (rule, case)) for case in ALL[rule]])


@examples(40)
@given(rich_pods(), rich_pods())
def test_every_rule_finds_the_same_in_what_it_declares_to_read(old: dict[str, Any], new: dict[str, Any]):
    for reviewed in (request(new), request(new, old)):
        for rule in RULES:
            check_reads(rule, reviewed, KNOWN)


@given(st.dictionaries(st.sampled_from([*names.MINDCLUSTER_LABELS, "team"]), json_values | st.just("x" * 2000)))
def test_labels_of_any_type_give_the_same_findings(labels: dict[str, Any]):
    rule, pod = "ascend-core-invalid", {"kind": "Pod", "metadata": {"labels": labels}}
    pod["spec"] = {"containers": [{"resources": {"limits": {names.NPU_CORE: "4"}}}]}
    for mode in ({}, {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}):
        labels.update(mode)
        whole, short = (
            [finding.path for finding in found(RULES[rule], raw, None, request(pod), KNOWN)]
            for raw in (pod, of_pod(pod, rule, KNOWN))
        )
        assert short == whole
