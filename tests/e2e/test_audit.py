"""The API server's own audit log says what the webhook decided, under the ids of the webhook's audit lines."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.changes import attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.objects import device_pod, pods
from tests.server.program import Authority, until

MUTATE, VALIDATE = "repair.vgpu-webhook.svc", "pods.vgpu-webhook.svc"


@pytest.fixture(scope="module")
def lines(cluster: Cluster, serve: Serve, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit log of the webhook that the API server calls."""
    file = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    program = serve("--audit-log", str(file))
    attach(cluster, program.port, authority.ca.certificate, program)
    return file


def noted(cluster: Cluster, namespace: str) -> dict[str, str]:
    """What the webhook noted on the only event of a namespace."""

    def found() -> list[dict[str, Any]]:
        return [event for event in cluster.audit_events() if event["objectRef"].get("namespace") == namespace]

    (event,) = until(found)
    return {key: value for key, value in event["annotations"].items() if key.startswith((MUTATE, VALIDATE))}


def decisions(lines: Path, namespace: str) -> dict[str, str]:
    """The ids of the webhook's own lines, by endpoint."""
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    return {line["endpoint"]: line["id"] for line in written if line["namespace"] == namespace}


def test_the_line_of_a_repaired_pod_has_the_rules(cluster: Cluster, lines: Path, api: Api, namespace: str):
    assert api.post(pods(namespace), device_pod("p")).status == 201
    own = decisions(lines, namespace)
    assert noted(cluster, namespace) == {
        f"{MUTATE}/decision-id": own["mutate"],
        f"{MUTATE}/outcome": "mutated",
        f"{MUTATE}/rules": "scheduler-name,toleration",
        f"{VALIDATE}/decision-id": own["validate"],
        f"{VALIDATE}/outcome": "allowed",
    }


def test_the_line_of_a_refused_pod_has_the_id_that_its_author_saw(
    cluster: Cluster, lines: Path, api: Api, namespace: str
):
    refused = device_pod("p", env=[{"name": "LD_PRELOAD", "value": "/x"}])
    message = api.post(pods(namespace), refused).message
    found = re.search(r"\(decision (\w+)\)$", message)
    assert found, message
    assert found[1] == decisions(lines, namespace)["validate"]
    annotations = noted(cluster, namespace)
    assert annotations[f"{VALIDATE}/decision-id"] == found[1]
    assert annotations[f"{VALIDATE}/outcome"] == "denied"
    assert annotations[f"{VALIDATE}/rules"] == "isolation-env"
