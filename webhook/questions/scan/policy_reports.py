"""Findings as PolicyReports (wgpolicyk8s.io/v1alpha2), which policy tools read."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cli.ci import ScanRow
from webhook.errors import ClusterError
from webhook.lenient import text
from webhook.pod.owners import Subject
from webhook.rules.choices import Level
from webhook.texts import shorten

if TYPE_CHECKING:
    from webhook.cluster.client import Client  # only --cluster needs the Kubernetes client

API_VERSION = "wgpolicyk8s.io/v1alpha2"
NAME = "vgpu-webhook-scan"
SOURCE = "vgpu-webhook"
LABEL = "app.kubernetes.io/managed-by"
LEFT_OUT = f"{SOURCE}/results-left-out"

MAX_RESULTS = 1000  # of a report, which then stays well below the 1.5 MiB that etcd accepts
MAX_MESSAGE = 512

_RESULTS = {Level.DENY: "fail", Level.WARN: "warn", Level.AUDIT: "warn"}
_SEVERITIES = {Level.DENY: "high", Level.WARN: "medium", Level.AUDIT: "low"}

Report = dict[str, Any]


def policy_reports(rows: Iterable[ScanRow], now: datetime) -> dict[str, Report]:
    """One report for each namespace with findings, the worst results first.

    Args:
        rows: what was found; rows without a finding are left out.
        now: when it was found.

    Returns:
        By namespace.
    """
    by_namespace: dict[str, list[ScanRow]] = {}
    for row in rows:
        if row.finding is not None:
            by_namespace.setdefault(row.subject.namespace, []).append(row)
    return {namespace: _report(namespace, some, now) for namespace, some in by_namespace.items()}


def renewed(report: Report, before: Mapping[str, Any]) -> Report | None:
    """A report that replaces an earlier one; None if nothing changes.

    Results of the earlier one keep their time: when they were found first.
    """
    known = {_key(one): one.get("timestamp") for one in before.get("results") or () if isinstance(one, dict)}
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


def _report(namespace: str, rows: list[ScanRow], now: datetime) -> Report:
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


def _result(row: ScanRow, now: datetime) -> dict[str, Any]:
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
    """Identifies a result; how many pods have it, and which, may change."""
    return json.dumps([result.get(key) for key in ("policy", "message", "resources", "result")], sort_keys=True)


_SELECTOR = {"labelSelector": f"{LABEL}={SOURCE}"}


class ReportCounts(NamedTuple):
    """How many reports were created, replaced, deleted, and kept because nothing had changed."""

    created: int = 0
    replaced: int = 0
    deleted: int = 0
    unchanged: int = 0


def existing_reports(client: "Client", namespaces: Sequence[str]) -> dict[str, Report]:
    """The reports of this program, by namespace.

    Args:
        client: of the API server.
        namespaces: none for all.

    Raises:
        ClusterError: they could not be listed.
    """
    own: dict[str, Report] = {}
    for path in [_collection(namespace) for namespace in namespaces] or [f"/apis/{API_VERSION}/policyreports"]:
        try:
            reports = list(client.list(path, _SELECTOR))
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise ClusterError(
                    f"the cluster has no PolicyReports ({API_VERSION}): install their CRD, or print them with "
                    "--report -o yaml",
                    error.status,
                ) from error
            raise
        own |= {report["metadata"]["namespace"]: report for report in reports if _is_own(report)}
    return own


def write_reports(
    client: "Client",
    wanted: Mapping[str, Report],
    existing: Mapping[str, Report],
    complain: Callable[[str], None],
    *,
    remove: bool = True,
) -> ReportCounts:
    """Make the cluster's reports equal to the wanted ones.

    Args:
        client: of the API server.
        wanted: by namespace.
        existing: as `existing_reports` found them.
        complain: called with an error message for each report that could not be written.
        remove: delete reports of other namespaces; not after a scan that could not read everything.
    """
    counts = dict.fromkeys(ReportCounts._fields, 0)

    def done(what: str, change: Callable[..., None], *arguments: Any) -> None:
        try:
            change(*arguments)
        except ClusterError as error:
            complain(str(error))
        else:
            counts[what] += 1

    for namespace, report in wanted.items():
        before = existing.get(namespace)
        if before is None:
            done("created", client.create, _collection(namespace), report)
        elif (after := renewed(report, before)) is not None:
            done("replaced", client.replace, f"{_collection(namespace)}/{NAME}", after)
        else:
            counts["unchanged"] += 1
    for namespace in existing.keys() - wanted.keys() if remove else ():
        done("deleted", client.delete, f"{_collection(namespace)}/{NAME}")
    return ReportCounts(**counts)


def _collection(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/policyreports"


def _is_own(report: Report) -> bool:
    return text(report, "metadata", "name") == NAME and bool(text(report, "metadata", "namespace"))
