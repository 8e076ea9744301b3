"""Replicas start and stop while pods are created."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.e2e.balancer import Balancer
from tests.e2e.changes import attach
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.load import CLIENTS, Load
from tests.server.client import SECONDS
from tests.server.program import Authority, Program, until

DRAIN_SECONDS = 10.0  # far more than clients need on a busy machine
NOTICE_SECONDS = 1.0  # until clients know that a replica is stopping


@pytest.fixture
def replicas(serve: Serve) -> list[Program]:
    return [start_replica(serve) for _ in range(2)]


@pytest.fixture
def balancer(cluster: Cluster, replicas: list[Program], authority: Authority) -> Iterator[Balancer]:
    with Balancer([replica.port for replica in replicas]) as balancer:
        attach(cluster, balancer.port, authority.ca.certificate, *replicas)
        yield balancer


def start_replica(serve: Serve) -> Program:
    return serve("--audit-log", "", "--drain-seconds", str(DRAIN_SECONDS))


def test_a_rolling_restart_fails_no_creation(
    replicas: list[Program], balancer: Balancer, cluster: Cluster, serve: Serve, namespace: str
):
    with Load(cluster, namespace) as load:
        load.wait_for_creations()
        for old in replicas:
            new = start_replica(serve)
            balancer.replicas.append(new.port)
            old.process.send_signal(signal.SIGTERM)
            time.sleep(NOTICE_SECONDS)
            balancer.replicas.remove(old.port)
            assert old.process.wait(SECONDS) == 0, old.log()
            load.wait_for_creations()
    assert load.failed == {}
    assert load.created >= 600


def test_a_killed_worker_fails_only_calls_in_progress(
    replicas: list[Program], balancer: Balancer, cluster: Cluster, namespace: str
):
    """An API server does not retry: the calls in a killed worker fail closed, and a second attempt succeeds."""
    kills = replicas * 3
    with Load(cluster, namespace, tries=5) as load:
        for replica in kills:
            load.wait_for_creations()
            killed = replica.worker
            os.kill(killed, signal.SIGKILL)
            until(lambda killed=killed, replica=replica: replica.children not in ([], [killed]))
        load.wait_for_creations()
    assert load.failed == {}
    assert load.created >= 200 * len(kills)
    assert load.failed_calls.total() <= CLIENTS * len(kills)
    assert [message for message in load.failed_calls if "failed calling webhook" not in message] == []
