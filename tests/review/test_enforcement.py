"""A policy that does not enforce admits pods unchanged, and records what enforcing would do."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests import strategies
from tests.cases import each_case
from tests.reviewing import ALL_FAMILIES, RECORDED, at_both_endpoints, request, snapshot
from webhook.audit.decision import soften
from webhook.outcome import MAX_WARNING, Violation
from webhook.review.endpoints import review, validate
from webhook.rules.choices import Enforcement, Level
from webhook.wire import codec
from webhook.wire.models import Request

ENFORCING = snapshot(*ALL_FAMILIES)
WARNING = snapshot(*ALL_FAMILIES, enforcement="warn")
AUDITING = snapshot(*ALL_FAMILIES, enforcement="audit")

TOLERATION = '{"key":"volcano.sh/vgpu","operator":"Exists","effect":"NoSchedule"}'


def pod(**limits: Any) -> dict[str, Any]:
    named = {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in limits.items()}
    container = {"name": "train", "image": "i", "resources": {"limits": named}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}


def deployment(template: dict[str, Any]) -> Request:
    return request({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}})


def check_observed(admission_request: Request) -> None:
    """Compare the three settings: the records are equal, and only enforcing changes or refuses a pod."""
    enforced = at_both_endpoints(admission_request, ENFORCING)
    for settings in (WARNING, AUDITING):
        for outcome, expected in zip(at_both_endpoints(admission_request, settings), enforced, strict=True):
            assert outcome.allowed
            assert outcome.violations == expected.violations
            assert (outcome.mutations, outcome.operations) == (expected.mutations, expected.operations)
            assert outcome.object == (admission_request.object or {})
            response = outcome.answer()
            assert (response.allowed, list(response.operations)) == (True, [])
            assert (outcome.word == "would-be-refused") is bool(expected.denials)
            assert settings is WARNING or not response.warnings
            assert all(len(text.encode()) <= MAX_WARNING and "\n" not in text for text in response.warnings)


@each_case("file", RECORDED, ids=lambda file: file.stem)
def test_the_record_equals_that_of_enforcing(file: Path):
    check_observed(codec.decode(file.read_bytes()))


@given(strategies.pods())
def test_any_pod_is_reviewed_after_its_repairs(raw: dict[str, Any]):
    check_observed(request(raw))


def test_warn_lists_repairs_and_refusals():
    repaired, validated = at_both_endpoints(request(pod(number=9, cores=150)), WARNING)
    assert repaired.warnings == [
        'scheduler-name: would be repaired: spec.schedulerName becomes "volcano"',
        f"toleration: would be repaired: spec.tolerations gets {TOLERATION}",
    ]
    assert [text.partition(" container")[0] for text in validated.warnings if "would be" in text] == [
        "cores-range: would be refused:",
        "card-count: would be refused:",
    ]
    assert validated.word == "would-be-refused"
    assert repaired.word == "would-be-repaired"


def test_warn_warns_the_author_of_a_workload():
    outcome = validate(deployment(pod(memory=3000, cores=150)), WARNING)
    warnings = outcome.warnings
    assert any(
        text.startswith("default-number: would be repaired: spec.template: spec.containers[0].") for text in warnings
    )
    assert any(text.startswith("cores-range: spec.template: container") for text in warnings)  # as with enforcement
    assert outcome.word == "warned"


def test_audit_does_not_warn_the_author_of_a_workload():
    outcome = validate(deployment(pod(number=9)), AUDITING)
    assert (outcome.warnings, outcome.word) == ([], "allowed")
    assert {v.level for v in outcome.violations} == {Level.WARN}  # the default is `workloads: warn`


def test_a_workload_that_enforcing_denies_is_admitted():
    for enforcement, warning in (("warn", "would be refused: spec.template"), ("audit", "")):
        outcome = validate(deployment(pod(number=9)), snapshot("mixed", enforcement=enforcement, workloads="deny"))
        assert (outcome.allowed, outcome.word) == (True, "would-be-refused")
        assert warning in "".join(outcome.warnings)
        assert bool(warning) is bool(outcome.warnings)


def test_the_last_entry_that_matches_decides():
    entries = [
        {"match": ["team-*"], "enforcement": "enforce"},
        {"match": ["team-b"], "rules": {"card-count": "warn"}},  # without enforcement: the global one
        {"match": ["kube-*"], "exempt": True, "enforcement": "enforce"},
        {"match": ["lab"], "enforcement": "warn"},
    ]
    settings = snapshot("mixed", enforcement="audit", namespaces=entries)
    for name, word in (
        ("team-a", "refused"),
        ("team-b", "would-be-repaired"),
        ("kube-system", "not-reviewed"),
        ("lab", "would-be-refused"),
        ("other", "would-be-refused"),
    ):
        assert (name, review(request(pod(number=9), namespace=name), settings).word) == (name, word)


@pytest.mark.parametrize(
    "enforcement, softened",
    [
        (Enforcement.ENFORCE, ("deny", "warn", "audit")),
        (Enforcement.WARN, ("warn", "warn", "audit")),
        (Enforcement.AUDIT, ("audit", "audit", "audit")),
    ],
)
def test_enforcement_softens_the_level_of_a_finding(enforcement: Enforcement, softened: tuple[str, ...]):
    findings = tuple(Violation("a-rule", level, "", "") for level in (Level.DENY, Level.WARN, Level.AUDIT))
    assert tuple(each.level for each in soften(findings, enforcement)) == softened
