"""Rows as PolicyReports (wgpolicyk8s.io/v1alpha2), the objects in which policy tools look for findings."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from webhook.rules.base import Level
from webhook.scan.stored import Subject
from webhook.scan.tally import Row
from webhook.texts import shorten

API_VERSION = "wgpolicyk8s.io/v1alpha2"
NAME = "vgpu-webhook"
SOURCE = "vgpu-webhook"
LABEL = "app.kubernetes.io/managed-by"
LEFT_OUT = f"{SOURCE}/results-left-out"

MAX_RESULTS = 1000  # of a report; with them it stays well below the 1.5 MiB that etcd takes
MAX_MESSAGE = 512

_RESULTS = {Level.DENY: "fail", Level.WARN: "warn", Level.AUDIT: "warn"}
_SEVERITIES = {Level.DENY: "high", Level.WARN: "medium", Level.AUDIT: "low"}

Report = dict[str, Any]


def policy_reports(rows: Iterable[Row], now: datetime) -> dict[str, Report]:
    """One report for each namespace with findings, the worst results first.

    Args:
        rows: what was found; rows without a finding are left out.
        now: when it was found.

    Returns:
        By namespace.
    """
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.finding is not None:
            found.setdefault(row.subject.namespace, []).append(row)
    return {namespace: _report(namespace, some, now) for namespace, some in found.items()}


def renewed(report: Report, before: Mapping[str, Any]) -> Report | None:
    """A report in place of one before it; None if it says nothing new.

    Results that were there before keep their time: when they were found first.
    """
    known = {
        _key(result): result.get("timestamp") for result in before.get("results") or () if isinstance(result, dict)
    }
    kept = [result | {"timestamp": known.get(_key(result)) or result["timestamp"]} for result in report["results"]]
    metadata = before.get("metadata") or {}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LEFT_OUT}
    annotations |= report["metadata"]["annotations"]
    same = (
        kept == before.get("results")
        and report["summary"] == before.get("summary")
        and annotations == (metadata.get("annotations") or {})
    )
    if same:
        return None
    labels = (metadata.get("labels") or {}) | report["metadata"]["labels"]
    return {**before, **report, "metadata": {**metadata, "annotations": annotations, "labels": labels}, "results": kept}


def _report(namespace: str, rows: list[Row], now: datetime) -> Report:
    rows = sorted(rows, key=lambda row: row.finding is None or row.finding.level is not Level.DENY)  # stable
    counts = Counter(_RESULTS[row.finding.level] for row in rows if row.finding)
    left_out = len(rows) - MAX_RESULTS
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyReport",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {LABEL: SOURCE},
            "annotations": {LEFT_OUT: str(left_out)} if left_out > 0 else {},
        },
        "summary": {word: counts[word] for word in ("pass", "fail", "warn", "error", "skip")},
        "results": [_result(row, now) for row in rows[:MAX_RESULTS]],
    }


def _result(row: Row, now: datetime) -> dict[str, Any]:
    finding = row.finding
    if finding is None:
        raise ValueError("a row without a finding has no result")
    message = finding.message
    properties = {"level": str(finding.level), "field": finding.path}
    if row.pods:
        properties |= {"pods": str(row.pods), "pod": row.example}
    return {
        "source": SOURCE,
        "policy": finding.rule,
        "rule": finding.rule,
        "result": _RESULTS[finding.level],
        "severity": _SEVERITIES[finding.level],
        "message": shorten(message, MAX_MESSAGE),
        "resources": [_reference(row.subject)],
        "properties": properties,
        "timestamp": {"seconds": int(now.timestamp()), "nanos": 0},
    }


def _reference(subject: Subject) -> dict[str, str]:
    named = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {key: value for key, value in named.items() if value}


def _key(result: Mapping[str, Any]) -> str:
    """What makes two results the same; not how many pods have it now, nor which."""
    return json.dumps([result.get(key) for key in ("policy", "message", "resources", "result")], sort_keys=True)
