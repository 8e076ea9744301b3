"""Exceptions of the policy: which findings about which pods they lower, until when, and what a pod's author cannot do."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.audit.test_metrics import value
from tests.reviewing import refusals, request, snapshot
from tests.server.reviews import review as admission_review
from tests.server.test_rule_that_raises import AuditLog
from tests.timing import within
from webhook.policy.schema import exception_name
from webhook.review.endpoints import review, validate
from webhook.rules.choices import Level
from webhook.server.admission import Admission
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.texts import matches

LAST = date(2026, 12, 31)
SPEC = {
    "schedulerName": "volcano",
    "containers": [{"name": "main", "resources": {"limits": {"volcano.sh/vgpu-number": 9}}}],
    "hostPID": True,
}


def exception(**fields):
    default = {"namespace": "default", "names": ["train-*"], "rules": ["card-count"], "until": str(LAST)}
    return default | {"reason": "GPU-123", "owner": "gpu-team"} | fields


def settings(*exceptions, **policy):
    return snapshot("mixed", exceptions=[*exceptions] or [exception()], **policy)


def pod(**metadata):
    return {"metadata": metadata, "spec": SPEC}


def levels(raw, used, **fields):
    outcome = review(request(raw, **{"day": LAST} | fields), used)
    return {violation.rule: violation.level for violation in outcome.violations}


def test_a_finding_is_lowered_to_audit_and_its_exception_is_known():
    outcome = review(request(pod(name="train-1"), day=LAST), settings(exception(rules=["card-count", "host-access"])))
    assert outcome.allowed
    excepted = [rule for rule, _ in outcome.exceptions]
    assert sorted(excepted) == ["card-count", "host-access"]
    assert {violation.level for violation in outcome.violations if violation.rule in excepted} == {Level.AUDIT}
    assert {used.owner for _, used in outcome.exceptions} == {"gpu-team"}
    assert not [text for text in outcome.warnings if "card-count" in text or "host-access" in text]


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        (pod(name="train-1"), {"day": LAST + timedelta(1)}),
        (pod(name="train-1"), {"day": None}),
        (pod(name="train-1"), {"namespace": "other"}),
        (pod(name="other"), {}),
        (pod(name="other", generateName="train-"), {}),
        (pod(name=["train-1"]), {}),
    ],
)
def test_nothing_else_is_lowered(raw, fields):
    assert levels(raw, settings(), **fields)["card-count"] is Level.DENY
    assert levels(pod(name="train-1"), settings())["host-access"] is Level.WARN, "another rule"


@pytest.mark.parametrize(
    ("metadata", "glob", "found"),
    [
        ({"name": "debug"}, "debug", True),
        ({"name": "debug-1"}, "debug", False),
        ({"generateName": "debug"}, "debug", False),  # pods without number, of which none is called debug
        ({"generateName": "debug-"}, "debug-*", True),
        ({"generateName": "debug-"}, "debug-?????", True),
        ({"generateName": "debug-"}, "debug-????", False),
        ({"generateName": "debug-"}, "debug-*a", False),
        ({"generateName": f"{'a' * 58}-debug"}, "*-debug*", False),  # the API server cuts it
        ({"name": "a" * 254}, "a*", False),
        ({"generateName": {}}, "debug*", False),
    ],
)
def test_a_name_that_is_not_complete_matches_only_whatever_it_becomes(metadata, glob, found):
    assert matches(exception_name(metadata, ""), [glob]) is found


def test_the_pods_of_a_workload_are_excepted_by_its_name():
    def deployment(name):
        spec = {"template": {"spec": SPEC}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}

    denying = settings(workloads="deny")
    assert refusals(review(request(deployment("train"), day=LAST), denying)) == set()
    assert refusals(review(request(deployment("training"), day=LAST), denying)) == {"card-count"}
    assert validate(request(deployment("train"), day=LAST), settings()).pods_refused == ()
    exact = settings(exception(names=["train"]), workloads="deny")  # its pods are not called so
    assert refusals(review(request(deployment("train"), day=LAST), exact)) == {"card-count"}


def test_an_update_is_excepted_by_the_name_of_the_pod():
    raw = pod(name="train-1", annotations={"volcano.sh/vgpu-ids-new": "x"})
    update = request(raw, pod(name="train-1"), name="train-1", day=LAST)
    assert refusals(validate(update, settings())) == {"reserved-annotation"}
    assert refusals(validate(update, settings(exception(rules=["reserved-annotation"])))) == set()


def test_a_rule_that_is_off_stays_off():
    assert "card-count" not in levels(pod(name="train-1"), settings(rules={"card-count": "off"}))


@pytest.mark.parametrize(("days", "allowed"), [(1, True), (-1, False)])
def test_the_server_records_and_counts_each_use_and_knows_the_day(days, allowed):
    until = str(datetime.now(UTC).date() + timedelta(days))
    metrics, log = Metrics(), AuditLog()
    state = ServerState(settings(exception(until=until)))
    body = json.dumps(admission_review(object=pod(name="train-1"), namespace="default")).encode()
    Admission(state, [log], metrics).answer("/validate", body, client_verified=True)
    metrics.in_use(state)
    line = json.loads(log.lines[0])
    used = {"rule": "card-count", "until": until, "reason": "GPU-123", "owner": "gpu-team"}
    assert (line["allowed"], line.get("exceptions")) == (allowed, [used] if allowed else None)
    assert value(metrics, "exceptions_used_total", namespace="default", rule="card-count") == allowed
    assert value(metrics, "policy_exceptions", state="expired") == (not allowed)
    assert value(metrics, "policy_exceptions", state="active") == allowed


def test_exceptions_of_other_namespaces_cost_nothing():
    many = settings(*[exception(namespace=f"team-{number}", names=["*" * 200]) for number in range(1000)])
    assert many.policy.of("default") == settings(exception(namespace="other")).policy.of("default")
    within(0.5, lambda: [levels(pod(name="train-1"), many) for _ in range(20)])
