"""PolicyReports: their content, their size, and the changes of a second scan."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from webhook.cli.ci import ScanRow
from webhook.outcome import Violation
from webhook.pod.owners import Subject
from webhook.questions.scan.policy_reports import LEFT_OUT, MAX_MESSAGE, MAX_RESULTS, policy_reports, renewed
from webhook.rules.choices import Level

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)

DENIED = Violation("cores-range", Level.DENY, "spec.x", "too many")
WARNED = Violation("host-access", Level.WARN, "spec.hostPID", "hostPID")


def row(finding: Violation | None = DENIED, namespace: str = "team", name: str = "web", pods: int = 2) -> ScanRow:
    return ScanRow(Subject(namespace, "apps/v1", "Deployment", name, ""), finding, pods, "web-1" if pods else "")


def test_a_report_has_a_result_for_each_object_and_rule():
    reports = policy_reports([row(WARNED, pods=0), row(), row(None), row(namespace="other")], NOW)
    assert list(reports) == ["team", "other"]
    usual = {
        "source": "vgpu-webhook",
        "resources": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "team", "name": "web"}],
        "timestamp": {"seconds": 1767323045, "nanos": 0},
    }
    denied, warned = (dict.fromkeys(("policy", "rule"), rule) for rule in ("cores-range", "host-access"))
    denied |= {"result": "fail", "severity": "high", "message": "too many"}
    warned |= {"result": "warn", "severity": "medium", "message": "hostPID"}
    assert reports["team"] == {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {
            "name": "vgpu-webhook-scan",
            "namespace": "team",
            "labels": {"app.kubernetes.io/managed-by": "vgpu-webhook"},
            "annotations": {},
        },
        "summary": {"pass": 0, "fail": 1, "warn": 1, "error": 0, "skip": 0},
        "results": [
            {**usual, **denied, "properties": {"level": "deny", "field": "spec.x", "pods": "2", "pod": "web-1"}},
            {**usual, **warned, "properties": {"level": "warn", "field": "spec.hostPID"}},
        ],
    }


def test_a_report_is_bounded_and_counts_what_it_leaves_out():
    long = Violation("host-access", Level.WARN, "spec.hostPID", "x" * 10_000)
    rows = [row(long, name=f"{'n' * 60}{number}") for number in range(MAX_RESULTS + 4)]
    report = policy_reports([*rows, row()], NOW)["team"]
    assert len(report["results"]) == MAX_RESULTS
    assert report["results"][0]["result"] == "fail", "denials come first"
    assert report["metadata"]["annotations"] == {LEFT_OUT: "5"}
    assert report["summary"]["warn"] == MAX_RESULTS + 4
    assert len(report["results"][1]["message"]) == MAX_MESSAGE
    assert len(json.dumps(report)) < 1_200_000, "etcd takes 1.5 MiB"


def stored(report: dict[str, Any]) -> dict[str, Any]:
    """A report as the API server returns it, with the keys in another order."""
    metadata = report["metadata"] | {"resourceVersion": "7", "uid": "u", "managedFields": []}
    if not metadata["annotations"]:
        del metadata["annotations"]
    return json.loads(json.dumps(report | {"metadata": metadata}, sort_keys=True))


def test_the_same_findings_later_change_nothing():
    before = stored(policy_reports([row(), row(WARNED)], NOW)["team"])
    assert renewed(policy_reports([row(), row(WARNED)], LATER)["team"], before) is None


def test_old_results_keep_their_time_and_the_object_its_version():
    before = stored(policy_reports([row()], NOW)["team"])
    before["metadata"]["labels"]["team"] = "platform"
    after = renewed(policy_reports([row(pods=3), row(WARNED)], LATER)["team"], before)
    assert after is not None
    assert [result["timestamp"]["seconds"] for result in after["results"]] == [NOW.timestamp(), LATER.timestamp()]
    assert after["metadata"]["resourceVersion"] == "7"
    assert after["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "vgpu-webhook", "team": "platform"}
    assert after["results"][0]["properties"]["pods"] == "3"


def test_a_report_that_is_complete_again_is_a_change():
    rows = [row(name=f"n{number}") for number in range(MAX_RESULTS)]
    before = stored(policy_reports([*rows, row(WARNED, name="z")], NOW)["team"])
    after = renewed(policy_reports(rows, LATER)["team"], before)
    assert after is not None
    assert after["metadata"]["annotations"] == {}


def test_a_malformed_report_is_replaced():
    report = policy_reports([row()], NOW)["team"]
    for mangled in ({"results": None}, {"results": ["x"]}, {"summary": None}):
        after = renewed(report, stored(report) | mangled)
        assert after is not None
        assert after["results"] == report["results"]
