"""A policy that does not enforce: pods pass unchanged, and what is recorded is what enforcing would have done."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests import strategies
from tests.cases import each_case
from tests.reviewing import ALL_FAMILIES, DATA, RECORDED, request, snapshot
from webhook.outcome import MAX_WARNING, Outcome
from webhook.review import Snapshot, mutate, review, validate
from webhook.rules.base import Enforcement, Level
from webhook.wire import codec
from webhook.wire.models import Request

ENFORCING = snapshot(*ALL_FAMILIES)
WARNING = snapshot(*ALL_FAMILIES, enforcement="warn")
AUDITING = snapshot(*ALL_FAMILIES, enforcement="audit")

TOLERATION = '{"key":"volcano.sh/vgpu","operator":"Exists","effect":"NoSchedule"}'


def recorded(name: str) -> Request:
    return codec.decode((DATA / "reviews" / f"{name}.json").read_bytes())


def pod(**limits: Any) -> dict[str, Any]:
    named = {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in limits.items()}
    container = {"name": "train", "image": "i", "resources": {"limits": named}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}


def deployment(template: dict[str, Any]) -> Request:
    raw = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}}
    return request(raw, group="apps", kind="Deployment")


def both(asked: Request, used: Snapshot) -> tuple[Outcome, Outcome]:
    """What each endpoint answers, the second one about what the first one left."""
    repaired = mutate(asked, used)
    return repaired, validate(asked._replace(object=dict(repaired.object)) if repaired.touched else asked, used)


def observes(asked: Request) -> None:
    """Compare all three: the records are the same, what the API server gets is not."""
    enforced = both(asked, ENFORCING)
    for used in (WARNING, AUDITING):
        for outcome, wanted in zip(both(asked, used), enforced, strict=True):
            assert outcome.allowed
            assert outcome.violations == wanted.violations
            assert (outcome.mutations, outcome.operations) == (wanted.mutations, wanted.operations)
            assert outcome.object == (asked.object or {})
            answer = outcome.answer()
            assert (answer.allowed, list(answer.operations)) == (True, [])
            assert (outcome.word == "would-be-denied") is bool(wanted.denials)
            assert used is WARNING or not answer.warnings
            assert all(len(text.encode()) <= MAX_WARNING and "\n" not in text for text in answer.warnings)


@each_case("file", RECORDED, ids=lambda file: file.stem)
def test_what_is_recorded_is_what_enforcing_would_have_done(file: Path):
    asked = codec.decode(file.read_bytes())
    observes(asked)


@given(strategies.pods())
def test_any_pod_is_judged_as_it_would_be_after_its_repairs(raw: dict[str, Any]):
    observes(request(raw))


def test_a_pod_that_repairs_would_save_would_not_be_refused():
    asked = recorded("percentage-only")
    assert not validate(asked, ENFORCING).allowed  # it was not sent to /mutate
    assert validate(asked, AUDITING).denials == []


def test_warn_lists_what_would_be_repaired_and_refused():
    repaired, judged = both(request(pod(number=9, cores=150)), WARNING)
    assert repaired.warnings == [
        'scheduler-name: would be repaired: spec.schedulerName becomes "volcano"',
        f"toleration: would be repaired: spec.tolerations gets {TOLERATION}",
    ]
    assert [text.partition(" container")[0] for text in judged.warnings] == [
        "cores-range: would be refused:",
        "card-count: would be refused:",
    ]
    assert judged.word == "would-be-denied"
    assert repaired.word == "would-be-mutated"


def test_warn_words_a_repair_as_its_notice():
    (told,) = [text for text in mutate(request(pod(number=1, memory=10**6)), WARNING).warnings if "above" in text]
    assert told.startswith(
        'memory-above-card: would be repaired: container "train": volcano.sh/vgpu-memory 1000000 is above'
    )


def test_warn_warns_the_author_of_a_workload():
    outcome = validate(deployment(pod(memory=3000, cores=150)), WARNING)
    told = outcome.warnings
    assert any(
        text.startswith("default-number: would be repaired: spec.template: spec.containers[0].") for text in told
    )
    assert any(text.startswith("cores-range: spec.template: container") for text in told)  # a warning as ever
    assert outcome.word == "warned"


def test_audit_gives_the_author_of_a_workload_no_warning():
    outcome = validate(deployment(pod(number=9)), AUDITING)
    assert (outcome.warnings, outcome.word) == ([], "allowed")
    assert {v.level for v in outcome.violations} == {Level.WARN}  # as `workloads: warn` has it


def test_a_workload_that_would_be_denied():
    for enforcement, told in (("warn", "would be refused: spec.template"), ("audit", "")):
        outcome = validate(deployment(pod(number=9)), snapshot("mixed", enforcement=enforcement, workloads="deny"))
        assert (outcome.allowed, outcome.word) == (True, "would-be-denied")
        assert told in "".join(outcome.warnings)
        assert bool(told) is bool(outcome.warnings)


@pytest.mark.parametrize("name", ["gpu-pod1.ephemeral", "forged-assignment", "gpu-pod1.update"])
def test_updates_and_ephemeral_containers(name: str):
    observes(recorded(name))


def test_the_last_entry_that_matches_decides():
    entries = [
        {"match": ["team-*"], "enforcement": "enforce"},
        {"match": ["team-b"], "rules": {"card-count": "warn"}},  # without a word on enforcement: as everywhere
        {"match": ["kube-*"], "exempt": True, "enforcement": "enforce"},
        {"match": ["lab"], "enforcement": "warn"},
    ]
    used = snapshot("mixed", enforcement="audit", namespaces=entries)
    words = {
        name: review(request(pod(number=9), namespace=name), used).word
        for name in ("team-a", "team-b", "kube-system", "lab", "other")
    }
    assert words == {
        "team-a": "denied",
        "team-b": "would-be-mutated",
        "kube-system": "untouched",
        "lab": "would-be-denied",
        "other": "would-be-denied",
    }


def test_an_autoscaled_fleet_softens_first():
    used = snapshot("mixed", enforcement="warn", fleet={"autoscaled": True})
    outcome = validate(request(pod(number=9)), used)
    assert [text.partition(" container")[0] for text in outcome.warnings] == ["card-count:"]
    assert outcome.word == "warned"


def test_the_api_servers_audit_log_has_it():
    asked = recorded("cores-over-100")
    repaired, judged = both(asked, AUDITING)
    assert repaired.answer().audit["outcome"] == "would-be-mutated"
    assert judged.answer().audit["outcome"] == "would-be-denied"
    assert "cores-range" in judged.answer().audit["rules"]


def test_the_answer_has_neither_patch_nor_refusal():
    asked = recorded("cores-over-100")
    for outcome in both(asked, AUDITING):
        response = json.loads(codec.encode(asked, outcome.answer()))["response"]
        assert response["allowed"] is True
        assert response.keys() <= {"uid", "allowed", "auditAnnotations"}


@pytest.mark.parametrize(
    "enforcement, softened",
    [
        (Enforcement.ENFORCE, ("deny", "warn", "audit")),
        (Enforcement.WARN, ("warn", "warn", "audit")),
        (Enforcement.AUDIT, ("audit", "audit", "audit")),
    ],
)
def test_the_level_at_which_a_finding_takes_effect(enforcement: Enforcement, softened: tuple[str, ...]):
    assert tuple(map(enforcement.soften, (Level.DENY, Level.WARN, Level.AUDIT))) == softened
