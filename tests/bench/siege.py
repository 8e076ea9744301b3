"""The webhook with the memory limit of deploy/, while other clients stall connections: it responds, and is not killed.

A memory cgroup enforces the limit, which needs root; otherwise, only the peak memory is compared with the limit.
"""

import contextlib
import os
import resource
import socket
import ssl
import statistics
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.bench.processes import proportional
from tests.server.client import JSON, Connection, context, encode_request
from tests.server.conftest import SETTINGS
from tests.server.program import Authority, Program
from tests.server.reviews import admission_response, review

STALLED = 4096  # connections with a stalled body, and as many with a half-open handshake
SENT_BYTES = 64 << 10  # of each stalled body, whose Content-Length is 8 MB
SECONDS = 90.0  # at most
REVIEW_CONNECTIONS = 4  # kept connections that send reviews, like those of an API server
THREADS = 4
GROUPS = Path("/sys/fs/cgroup/memory")  # version 1
GROUPS_2 = Path("/sys/fs/cgroup")
ROOT = Path(__file__).parents[2]
STALL = encode_request("POST", "/validate", headers=JSON | {"Content-Length": "8000000"}) + b" " * SENT_BYTES
HELLO_BEGINNING = b"\x16\x03\x01\x02\x00\x01"


@dataclass
class ResponseTimes:
    """The times of all responses in seconds, and the number of failed requests."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def __str__(self) -> str:
        if not self.seconds:
            return f"0 responses, {self.failed} failed"
        worst = max(self.seconds)
        return (
            f"{len(self.seconds)} responses, {self.failed} failed, median {statistics.median(self.seconds) * 1000:.0f} ms, "
            f"slowest {worst * 1000:.0f} ms"
        )


def report(directory: Path) -> int:
    """Print the results; returns 1 if a review or probe failed, or the server was killed."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    limit = _limit()
    authority = Authority(directory)
    with _group(limit) as group:
        join = None if group is None else lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        options = [*authority.options, *SETTINGS, "--audit-log", "/dev/null"]
        program = Program(options, directory / "siege.log", directory / "ca.crt", preexec_fn=join)
        try:
            program.wait_ready()
            worker = program.worker
            probes, reviews, connection, peak = _run_load(program)
            restarted = program.worker != worker
        finally:
            program.close()
    print(f"siege: {connection:,} stalled bodies of {SENT_BYTES >> 10} KB and as many half-open handshakes")
    print(f"  probes, each on a connection of its own: {probes}")
    print(f"  reviews on {REVIEW_CONNECTIONS} kept connections: {reviews}")
    print(f"  most memory of all processes: {peak:.0f} MiB of {limit / 2**20:.0f} ({_kind(group)})")
    print(f"  restarted: {'yes' if restarted else 'no'}\n")
    return int(restarted or connection < STALLED or probes.failed > 0 or reviews.failed > 0 or peak * 2**20 > limit)


def _run_load(program: Program) -> tuple[ResponseTimes, ResponseTimes, int, float]:
    tls = context(program.ca)
    probes, reviews = ResponseTimes(), ResponseTimes()
    end = time.monotonic() + SECONDS
    peak = 0.0
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(THREADS + REVIEW_CONNECTIONS) as threads:
        holders = [threads.submit(_hold_connections, program, tls, stack, end) for _ in range(THREADS)]
        senders = [threads.submit(_send_reviews, program, tls, holders, reviews) for _ in range(REVIEW_CONNECTIONS)]
        while not all(sender.done() for sender in senders):
            started = time.monotonic()
            try:
                assert program.get("/healthz").status == 200
                probes.seconds.append(time.monotonic() - started)
            except (OSError, AssertionError):
                probes.failed += 1
            peak = max(peak, proportional(program.process.pid))
            time.sleep(0.2)
        return probes, reviews, sum(holder.result() for holder in holders), peak


def _hold_connections(program: Program, tls: ssl.SSLContext, stack: contextlib.ExitStack, end: float) -> int:
    """Hold a share of the stalled bodies and of the half-open handshakes; returns the number of each."""
    for count in range(STALLED // THREADS):
        if time.monotonic() > end:
            return count
        with contextlib.suppress(OSError):  # the server closed it
            stack.enter_context(_half_open(program))
        with contextlib.suppress(OSError):
            stack.enter_context(_stalled(program, tls))
    return STALLED // THREADS


def _send_reviews(program: Program, tls: ssl.SSLContext, holders: list[Future[int]], reviews: ResponseTimes) -> None:
    """Send reviews on a kept connection until all stalled connections are open."""
    with Connection(program.port, tls) as connection:
        while not all(holder.done() for holder in holders):
            started = time.monotonic()
            try:
                admission_response(connection.post("/validate", review()))
            except (OSError, AssertionError):
                reviews.failed += 1
                return
            reviews.seconds.append(time.monotonic() - started)
            time.sleep(0.05)


def _stalled(program: Program, tls: ssl.SSLContext) -> socket.socket:
    connection = Connection(program.port, tls, timeout=5)
    try:
        connection.send(STALL)
    except OSError:
        connection.close()
        raise
    return connection.socket


def _half_open(program: Program) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", program.port), timeout=5)
    try:
        connection.sendall(HELLO_BEGINNING)
    except OSError:
        connection.close()
        raise
    return connection


def _limit() -> int:
    """The memory limit of a pod in deploy/, in bytes."""
    deployment = yaml.safe_load((ROOT / "deploy" / "base" / "deployment.yaml").read_text())
    limits = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["memory"].endswith("Mi")
    return int(limits["memory"][:-2]) << 20


@contextlib.contextmanager
def _group(limit: int) -> Iterator[Path | None]:
    """A memory cgroup with a limit; None if it cannot be created."""
    is_version_1 = GROUPS.is_dir()
    group = (GROUPS if is_version_1 else GROUPS_2) / f"vgpu-webhook-siege-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if is_version_1 else "memory.max")).write_text(str(limit))
    except OSError as error:
        print(f"no memory cgroup ({error.strerror}): run this as root to have the limit enforced", file=sys.stderr)
        with contextlib.suppress(OSError):
            group.rmdir()
        yield None
        return
    try:
        yield group
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _kind(group: Path | None) -> str:
    return "not enforced" if group is None else "enforced by a cgroup"
