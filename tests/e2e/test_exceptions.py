"""An exception of the policy: the pods that the API server lets in, in which namespace, and until when."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import Api
from tests.e2e.changes import attach, changed_config_map
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.objects import namespace_objects, pod, pods
from tests.e2e.serving import audit_lines
from tests.e2e.test_live import POLICY
from tests.server.program import Authority, Program, until

EXCEPTED, OTHER = "exceptions-here", "exceptions-elsewhere"
TOO_MANY = {"volcano.sh/vgpu-number": "9"}


def exception(days: int, *names: str) -> dict[str, Any]:
    last = datetime.now(UTC).date() + timedelta(days)
    who = {"reason": "GPU-123", "owner": "gpu-team"}
    return {"namespace": EXCEPTED, "names": [*names], "rules": ["card-count"], "until": str(last)} | who


@pytest.fixture(scope="module")
def excepting(
    cluster: Cluster, serve: Serve, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Program, Path]]:
    """The webhook with exceptions, and its audit log."""
    file = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    program = serve("--audit-log", str(file))
    attach(cluster, program.port, authority.ca.certificate, program)
    for namespace in (EXCEPTED, OTHER):
        cluster.apply(*namespace_objects(namespace))
    policy = {"exceptions": [exception(1, "train-*", "debug"), exception(-1, "old-*")]}
    with cluster.api() as api, changed_config_map(api, POLICY, "policy.yaml", yaml.safe_dump(policy)):
        dry = f"{pods(EXCEPTED)}?dryRun=All"
        until(lambda: api.post(dry, pod("train-0", TOO_MANY)).status == 201)
        yield program, file


def generated(prefix: str) -> dict[str, Any]:
    made = pod("", TOO_MANY)
    made["metadata"] = {"generateName": prefix}
    return made


def test_an_exception_holds_for_its_pods_and_for_no_others(api: Api, excepting: tuple[Program, Path]):
    program, log = excepting
    for manifest in (pod("train-1", TOO_MANY), pod("debug", TOO_MANY), generated("train-")):
        response = api.post(pods(EXCEPTED), manifest)
        assert (response.status, "card-count" in "".join(response.warnings)) == (201, False), response.message
    for namespace, manifest in (
        (OTHER, pod("train-1", TOO_MANY)),
        (EXCEPTED, pod("serve-1", TOO_MANY)),
        (EXCEPTED, pod("old-1", TOO_MANY)),
        (EXCEPTED, generated("debug")),
    ):
        response = api.post(pods(namespace), manifest)
        assert "card-count: " in response.message, (namespace, manifest["metadata"])
    until(lambda: program.metric("exceptions_used_total", namespace=EXCEPTED, rule="card-count") >= 4)
    assert program.metric("policy_exceptions", state="expired") == 1
    (line,) = audit_lines(log, 1, namespace=EXCEPTED, name="debug", endpoint="validate")
    assert [(used["rule"], used["reason"], used["owner"]) for used in line["exceptions"]] == [
        ("card-count", "GPU-123", "gpu-team")
    ]
    assert [finding["level"] for finding in line["findings"] if finding["rule"] == "card-count"] == ["audit"]
