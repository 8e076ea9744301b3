"""One cluster for all tests; without CLUSTER_ASSETS they are skipped."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gpuless.assets import MissingError, find_assets
from tests.gpuless.cluster import GpuCluster, in_own_directory
from tests.ledger import figure, record
from tests.server.program import until


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("ledger") == "cluster" and "CLUSTER_ASSETS" in os.environ:
        record("cluster", figure(terminalreporter))


@pytest.fixture(scope="session")
def gpu_cluster() -> Iterator[GpuCluster]:
    """A cluster of a node with A100 and one with T4, and the webhook."""
    with start("a100", "t4") as running:
        running.install_webhook(console={"enabled": True})
        yield running


@contextmanager
def start(*profiles: str, **settings: Any) -> Iterator[GpuCluster]:
    """Run a cluster; nothing of it may stay behind."""
    try:
        find_assets()
    except MissingError as missing:
        if "CLUSTER_ASSETS" in os.environ:
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    with in_own_directory(*profiles, **settings) as (directory, running):
        yield running
        interfaces = [node.namespace.interface for node in running.nodes]
    until(lambda: not any(path.exists() for path in interfaces))
    assert traces(directory.name) == []


def traces(name: str) -> list[str]:
    """What a cluster that has ended left on this machine."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if name in line]
    processes = [str(path.parent) for path in Path("/proc").glob("[0-9]*/cmdline") if name.encode() in _read(path)]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{name}*")]
    return mounts + processes + groups


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended
        return b""
