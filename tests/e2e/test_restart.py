"""Replicas that come and go while pods are created."""

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
from tests.server.program import Authority, Program, until

DRAIN_SECONDS = 3.0
NOTICE_SECONDS = 1.0  # until everybody knows that a replica is about to end


@pytest.fixture
def replicas(serve: Serve) -> list[Program]:
    return [start_replica(serve) for _ in range(2)]


@pytest.fixture
def balancer(cluster: Cluster, replicas: list[Program], authority: Authority) -> Iterator[Balancer]:
    with Balancer([replica.port for replica in replicas]) as made:
        attach(cluster, made.port, authority.ca.certificate, *replicas)
        yield made


def start_replica(serve: Serve) -> Program:
    return serve("--audit-log", "", "--drain-seconds", str(DRAIN_SECONDS))


def test_a_rolling_restart_fails_no_creation(
    replicas: list[Program], balancer: Balancer, cluster: Cluster, serve: Serve, namespace: str
):
    with Load(cluster, namespace) as load:
        load.go_on()
        for old in replicas:
            new = start_replica(serve)
            balancer.replicas.append(new.port)
            old.process.send_signal(signal.SIGTERM)
            time.sleep(NOTICE_SECONDS)
            balancer.replicas.remove(old.port)
            assert old.process.wait(DRAIN_SECONDS + 5) == 0, old.log()
            load.go_on()
    assert load.failed == {}
    assert load.created >= 600


def test_a_killed_worker_breaks_no_more_calls_than_were_under_way(
    replicas: list[Program], balancer: Balancer, cluster: Cluster, namespace: str
):
    """An API server tries no webhook twice: what a killed worker had in hand fails, closed. Who asks again, succeeds."""
    kills = replicas * 3
    with Load(cluster, namespace, tries=5) as load:
        for replica in kills:
            load.go_on()
            killed = replica.worker
            os.kill(killed, signal.SIGKILL)
            until(lambda killed=killed, replica=replica: replica.children not in ([], [killed]))
        load.go_on()
    assert load.failed == {}
    assert load.created >= 200 * len(kills)
    assert load.broken.total() <= CLIENTS * len(kills)
    assert [message for message in load.broken if "failed calling webhook" not in message] == []
