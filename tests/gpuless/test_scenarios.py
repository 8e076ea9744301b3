"""The engine answers to the pods of `make life` what the scenarios say, and they cover the rules; no cluster is needed."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.gpuless import life
from tests.gpuless.assets import MEMORY_FACTOR
from tests.reviewing import CONFIG, request, snapshot
from webhook.document_review import review_document
from webhook.inputs.documents import Document
from webhook.outcome import Outcome
from webhook.review.endpoints import review
from webhook.rules.choices import Level
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.snapshot import Snapshot

SCENARIOS = life.load()
READABLE = [scenario for scenario in SCENARIOS if scenario.get("rule") != "queue-missing"]  # which needs the queues

# Rules without a scenario, and why.
_NO_PLUGIN = "the device plugins of the other families cannot be had without their devices"
WITHOUT = {
    "ascend-memory-template": _NO_PLUGIN,
    "ascend-memory-oversize": _NO_PLUGIN,
    "ascend-partial-several": _NO_PLUGIN,
    "ascend-core-invalid": _NO_PLUGIN,
    "split-count": "the pod would need more than ten slices of each of eight cards",
    "queue-not-leaf": "the scheduler stops: shown by make proof",
    "queue-capability": "a queue of its own is needed: shown by make proof",
    "status-too-large": "the cards of the node have fewer units: shown by tests/gpuless/test_limits.py",
    "outside-limits": "the pod runs; only the policy of its namespace refuses it",
    "gang-too-large": "a workload, not a pod: shown by make proof",
}


def answer(scenario: dict[str, Any]) -> Outcome:
    return review(request(life.manifest(scenario), namespace=namespace_of(scenario)), settings_of(scenario))


def in_a_file(scenario: dict[str, Any]) -> Outcome:
    """What `review` finds in a file with the pod, which nobody has dropped fields of."""
    return review_document(
        Document("life", life.manifest(scenario)), settings_of(scenario), namespace_of(scenario)
    ).outcome


def namespace_of(scenario: dict[str, Any]) -> str:
    name: str = scenario.get("namespace", life.REVIEWED)
    return name


def settings_of(scenario: dict[str, Any]) -> Snapshot:
    vgpu = replace(CONFIG.vgpu, memory_factor=MEMORY_FACTOR, overwrite_env=True)
    settings = scenario.get("config", {})
    vgpu = replace(vgpu, default_memory=settings.get("defaultMemory", 0), default_cores=settings.get("defaultCores", 0))
    return snapshot("mock-a100", config=replace(CONFIG, vgpu=vgpu), **life.POLICY)


@pytest.mark.parametrize("scenario", READABLE, ids=lambda scenario: scenario["title"])
def test_the_engine_answers_as_on_the_cluster(scenario: dict[str, Any]):
    outcome, expected = answer(scenario), scenario["webhook"]
    denied = [found.rule for found in outcome.violations if found.level is Level.DENY]
    told = [rule for rule, _ in outcome.notices] + [
        each.rule for each in outcome.violations if each.level is Level.WARN
    ]
    if "refused" in expected:
        assert scenario["rule"] in denied  # the API server refuses it first
    else:
        assert set(denied) == set(expected.get("refuses", ()))
    assert set(expected.get("repairs", ())) <= set(outcome.mutations)
    assert set(expected.get("warns", ())) <= set(told)
    recorded = {each.rule for each in outcome.violations if each.level is Level.AUDIT}
    assert set(expected.get("records", ())) <= recorded
    in_file = {each.rule for each in in_a_file(scenario).violations}
    assert set(scenario.get("file", ())) <= in_file


def seen(expected: dict[str, Any]) -> life.Seen:
    """What a run of `make life` sees where reality is as a part of a scenario says."""
    if "refused" in expected:
        return life.Seen("Refused", expected["refused"])
    values = {name: value for name, value in expected.get("env", {}).items() if value is not None}
    return life.Seen(expected["phase"], expected.get("message", ""), environment=values)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["title"])
def test_a_row_of_the_table_says_what_the_scenario_does(scenario: dict[str, Any]):
    answer = scenario["webhook"]
    refused = {"refused": "denied the request"} if "refuses" in answer else answer if "refused" in answer else None
    line = life.row(scenario, seen(scenario["without"]), seen(scenario.get("then") or refused or {"phase": "Running"}))
    page = re.sub(f", ({life.WHY})", "", life.PAGE.read_text())  # the scenario does not have all of the message
    line = re.sub(f", ({life.WHY})", "", line)
    if f"\n| {scenario['title']} |" in page:
        assert line in page.splitlines()
    assert life.with_row(page, scenario["title"], line).count(f"\n{line}\n") == 1


def test_every_repair_and_every_rule_that_refuses_has_a_scenario():
    shown = {rule for scenario in SCENARIOS for rules in scenario["webhook"].values() for rule in rules}
    shown |= {scenario["rule"] for scenario in SCENARIOS if "rule" in scenario}
    rules = {rule.id for rule in MUTATIONS} | {rule.id for rule in VALIDATIONS if rule.level is Level.DENY}
    assert rules - shown == WITHOUT.keys()
    assert len(SCENARIOS) >= 45


def test_the_pods_of_a_group_whose_head_requests_no_device_are_those_that_are_counted():
    (scenario,) = [each for each in SCENARIOS if "head" in each]
    head, *workers = life.made(scenario)
    counted = sum(int(number) for number in re.findall(r"\d+", scenario["then"]["phase"]))
    assert len({pod["metadata"]["name"] for pod in (head, *workers)}) == counted
    assert not head["spec"]["containers"][0]["resources"]
    assert "schedulerName" not in head["spec"]
    assert workers[0]["spec"] == life.manifest(scenario)["spec"]["workerGroupSpecs"][0]["template"]["spec"]
