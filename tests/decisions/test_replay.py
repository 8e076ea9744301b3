"""A replay with the old inputs gives the recorded decision; with others, what they would have given."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.decisions.recording import DATA, record, recorded, request, snapshot
from tests.observe.test_excerpt import rich_pods
from webhook.decisions.replay import HALVES, Replayed, Replayer, Verdict
from webhook.errors import RequestError
from webhook.review import Snapshot
from webhook.wire import codec

OLD = snapshot()
ENDPOINTS = st.sampled_from(sorted(HALVES))
REVIEWS = sorted((DATA / "reviews").glob("*.json"))


def replay(decision: Any, base: Snapshot = OLD, tried: Snapshot | None = None) -> Replayed:
    return Replayer(base, tried or base).replay(decision)


def reproduces(asked: Any, endpoint: str, used: Snapshot = OLD) -> None:
    found = replay(recorded(asked, used, endpoint), used)
    assert found.verdict is Verdict.SAME, (found.direction, found.reason, found.decision.findings, found.outcome)


@pytest.mark.parametrize("endpoint", HALVES)
@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in REVIEWS])
def test_recorded_reviews_are_reproduced(file: Path, endpoint: str):
    asked = codec.decode(file.read_bytes())
    try:
        record(asked, OLD, endpoint)
    except RequestError:
        pytest.skip("it got no verdict")
    reproduces(asked, endpoint)


@settings(max_examples=200)
@given(rich_pods(), ENDPOINTS)
def test_any_new_pod_is_reproduced(pod: dict[str, Any], endpoint: str):
    reproduces(request(pod), endpoint)


@settings(max_examples=100)
@given(rich_pods(), rich_pods(), st.sampled_from(["", "ephemeralcontainers", "status"]))
def test_any_changed_pod_is_reproduced(old: dict[str, Any], new: dict[str, Any], part: str):
    reproduces(request(new, old, sub_resource=part), "validate")


def _deployment(pod: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": pod}}


def _cron_job(pod: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": pod}}}}


def _template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PodTemplate", "template": pod}


def _job(pod: dict[str, Any]) -> dict[str, Any]:
    tasks = [{"name": "a", "template": {}}, {"name": "b", "template": pod}]
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"schedulerName": "x", "tasks": tasks}}


WORKLOADS = st.sampled_from([_deployment, _cron_job, _template, _job])


@settings(max_examples=150)
@given(rich_pods(), WORKLOADS, ENDPOINTS)
def test_any_workload_is_reproduced(pod: dict[str, Any], workload: Any, endpoint: str):
    reproduces(request(workload(pod)), endpoint)


@settings(max_examples=100)
@given(rich_pods(), strategies.pods() | st.none(), WORKLOADS)
def test_any_changed_workload_is_reproduced(pod: dict[str, Any], old: dict[str, Any] | None, workload: Any):
    reproduces(request(workload(pod), workload(pod if old is None else old)), "validate")
