"""Keeps the PolicyReports of a cluster as they should be: writes what changed, removes what is stale."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from webhook.cluster.client import NOT_FOUND, Client
from webhook.errors import ClusterError
from webhook.scan.policy_report import API_VERSION, LABEL, NAME, SOURCE, Report, renewed

_SELECTOR = {"labelSelector": f"{LABEL}={SOURCE}"}


class Written(NamedTuple):
    """How many reports were created, replaced, deleted, and left because nothing had changed."""

    created: int = 0
    replaced: int = 0
    deleted: int = 0
    unchanged: int = 0


def existing_reports(client: Client, namespaces: Sequence[str]) -> dict[str, Report]:
    """Our reports, by namespace.

    Args:
        client: of the API server.
        namespaces: none for all.

    Raises:
        ClusterError: they could not be listed.
    """
    found: dict[str, Report] = {}
    for path in [_collection(namespace) for namespace in namespaces] or [f"/apis/{API_VERSION}/policyreports"]:
        try:
            reports = list(client.list(path, _SELECTOR))
        except ClusterError as error:
            if error.status == NOT_FOUND:
                raise ClusterError(
                    f"the cluster knows no PolicyReports ({API_VERSION}): install their CRD, or print them with "
                    "--report -o yaml",
                    error.status,
                ) from error
            raise
        found |= {report["metadata"]["namespace"]: report for report in reports if _is_ours(report)}
    return found


def write_reports(
    client: Client,
    wanted: Mapping[str, Report],
    existing: Mapping[str, Report],
    complain: Callable[[str], None],
    *,
    remove: bool = True,
) -> Written:
    """Make the cluster's reports the wanted ones.

    Args:
        client: of the API server.
        wanted: by namespace.
        existing: as `existing_reports` found them.
        complain: takes a sentence about each that could not be written.
        remove: delete those in no wanted namespace; not after a scan that could not read everything.
    """
    counts = dict.fromkeys(Written._fields, 0)

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
    return Written(**counts)


def _collection(namespace: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/policyreports"


def _is_ours(report: Report) -> bool:
    metadata = report.get("metadata")
    return isinstance(metadata, dict) and metadata.get("name") == NAME and isinstance(metadata.get("namespace"), str)
