"""The audit log of the API server contains the decisions of the webhook, with the ids of its audit lines."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.changes import attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.objects import device_pod, pods
from tests.server.program import Authority, until

MUTATE, VALIDATE = "repair.vgpu-webhook.svc", "pods.vgpu-webhook.svc"


def test_the_events_of_the_api_server_name_rules_and_audit_lines(
    cluster: Cluster, serve: Serve, authority: Authority, namespace: str, tmp_path: Path
):
    log = tmp_path / "audit.jsonl"
    program = serve("--audit-log", str(log))
    attach(cluster, program.port, authority.ca.certificate, program)
    with cluster.api() as api:
        assert api.post(pods(namespace), device_pod("p")).status == 201
        message = api.post(pods(namespace), device_pod("q", env=[{"name": "LD_PRELOAD", "value": "/x"}])).message
    program.record()
    ids = [line["id"] for line in map(json.loads, log.read_text().splitlines()) if line["namespace"] == namespace]
    assert message.endswith(f"(decision {ids[-1]})")

    def events() -> list[dict[str, Any]]:
        found = [event for event in cluster.audit_events() if event["objectRef"].get("namespace") == namespace]
        return found if len(found) == 2 else []

    assert [
        {key: value for key, value in event["annotations"].items() if key.startswith((MUTATE, VALIDATE))}
        for event in until(events)
    ] == [
        {
            f"{MUTATE}/decision-id": ids[0],
            f"{MUTATE}/outcome": "repaired",
            f"{MUTATE}/rules": "scheduler-name,toleration",
            f"{VALIDATE}/decision-id": ids[1],
            f"{VALIDATE}/outcome": "allowed",
        },
        {
            f"{MUTATE}/decision-id": ids[2],
            f"{MUTATE}/outcome": "repaired",
            f"{MUTATE}/rules": "scheduler-name,toleration",
            f"{VALIDATE}/decision-id": ids[3],
            f"{VALIDATE}/outcome": "refused",
            f"{VALIDATE}/rules": "isolation-env",
        },
    ]
