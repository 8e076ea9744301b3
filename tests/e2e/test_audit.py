"""The audit log of the API server contains the decisions of the webhook, with the ids of its audit lines."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.changes import attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.objects import device_pod, pods
from tests.e2e.serving import audit_lines
from tests.server.program import Authority, until

MUTATE, VALIDATE = "repair.vgpu-webhook.svc", "pods.vgpu-webhook.svc"


@pytest.fixture(scope="module")
def lines(cluster: Cluster, serve: Serve, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit log of the webhook that the API server calls."""
    file = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    program = serve("--audit-log", str(file))
    attach(cluster, program.port, authority.ca.certificate, program)
    return file


def audit_annotations(cluster: Cluster, namespace: str) -> dict[str, str]:
    """The annotations of the webhook on the only audit event of a namespace."""

    def events() -> list[dict[str, Any]]:
        return [event for event in cluster.audit_events() if event["objectRef"].get("namespace") == namespace]

    (event,) = until(events)
    return {key: value for key, value in event["annotations"].items() if key.startswith((MUTATE, VALIDATE))}


def decisions(log: Path, namespace: str) -> dict[str, str]:
    """The ids of the audit lines of the webhook about the only pod of a namespace, by endpoint."""
    return {line["endpoint"]: line["id"] for line in audit_lines(log, 2, namespace=namespace)}


def test_the_event_of_a_repaired_pod_has_its_rules(cluster: Cluster, lines: Path, api: Api, namespace: str):
    assert api.post(pods(namespace), device_pod("p")).status == 201
    ids = decisions(lines, namespace)
    assert audit_annotations(cluster, namespace) == {
        f"{MUTATE}/decision-id": ids["mutate"],
        f"{MUTATE}/outcome": "repaired",
        f"{MUTATE}/rules": "scheduler-name,toleration",
        f"{VALIDATE}/decision-id": ids["validate"],
        f"{VALIDATE}/outcome": "allowed",
    }


def test_the_event_of_a_refused_pod_has_the_id_in_the_message(cluster: Cluster, lines: Path, api: Api, namespace: str):
    refused = device_pod("p", env=[{"name": "LD_PRELOAD", "value": "/x"}])
    message = api.post(pods(namespace), refused).message
    match = re.search(r"\(decision (\w+)\)$", message)
    assert match, message
    assert match[1] == decisions(lines, namespace)["validate"]
    annotations = audit_annotations(cluster, namespace)
    assert annotations[f"{VALIDATE}/decision-id"] == match[1]
    assert annotations[f"{VALIDATE}/outcome"] == "refused"
    assert annotations[f"{VALIDATE}/rules"] == "isolation-env"
