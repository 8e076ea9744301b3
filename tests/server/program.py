"""The real program in a process of its own, on a free port of the loopback address."""

import os
import random
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from typing import Any

from certs import pki
from tests.server.client import SECONDS, Connection, Response, context
from tests.tuned import tuned
from webhook.cluster.pace import PACE, Pace
from webhook.server.limits import LIMITS, ServerLimits

DATA = Path(__file__).parents[1] / "data"
COMMAND = Path(sys.executable).with_name("vgpu-webhook")
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
PORTS = 12_000 // WORKERS  # for each process of the tests
# A client of a test may be stopped for longer than the server's own limits allow.
PATIENT = ServerLimits(
    **dict.fromkeys(("handshake_seconds", "head_seconds", "body_seconds", "write_blocked_seconds"), SECONDS),
    **dict.fromkeys(("close_seconds", "finish_seconds", "catch_up_seconds"), SECONDS),
)
NUMBERS = count(random.SystemRandom().randrange(PORTS))  # Hypothesis sets the seed of the usual one


def until(holds: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Wait until something holds, and return it.

    Raises:
        AssertionError: it does not in time.
    """
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, f"did not come true within {seconds} s"
        time.sleep(0.03)
    return found


def free_port() -> int:
    """A port below those of outgoing connections, in a range of this process of the tests: others find other ports."""
    for number in islice(NUMBERS, PORTS):
        port = 20_000 + PORTS * WORKER + number % PORTS
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Authority:
    """A CA and a pair that it signed, in a directory that a program serves from."""

    hosts = ("localhost", "127.0.0.1")

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = pki.make_ca("test CA")
        self.renew()

    def leaf(self) -> pki.Pair:
        return pki.make_leaf(self.ca, self.hosts, datetime.now(UTC) - timedelta(seconds=1))

    def renew(self) -> pki.Pair:
        leaf = self.leaf()
        pki.write(self.directory, leaf, self.ca.certificate)
        return leaf

    @property
    def certificate(self) -> Path:
        return self.directory / pki.CERTIFICATE

    @property
    def key(self) -> Path:
        return self.directory / pki.KEY

    @property
    def options(self) -> list[str]:
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]


class Program:
    """`vgpu-webhook serve`, started; ends with `close`."""

    def __init__(
        self,
        options: Sequence[str],
        log: Path,
        ca: Path,
        *,
        host: str = "localhost",
        port: int | None = None,
        limits: ServerLimits = LIMITS,
        pace: Pace = PACE,
        starts: type[subprocess.Popen[Any]] = subprocess.Popen,
        **popen: Any,
    ) -> None:
        """Start it.

        Args:
            options: more than `serve --bind`.
            log: where standard error goes.
            ca, host: to verify with.
            port: where to listen; a free one if None.
            limits, pace: others, so that a test need not wait for minutes.
            starts: the process, with `popen`.
        """
        self.port = port or free_port()
        self.log_path = log
        self.ca, self.host = ca, host
        command = [str(COMMAND), "serve"]
        if (limits, pace) != (LIMITS, PACE):
            command = [sys.executable, *tuned("serve", limits=limits, pace=pace)]
        popen.setdefault("stdout", subprocess.DEVNULL)
        with log.open("wb") as stderr:
            self.process = starts(
                [*command, "--bind", f"127.0.0.1:{self.port}", *options], **({"stderr": stderr} | popen)
            )

    def wait_ready(self) -> None:
        until(self.is_ready)

    def is_ready(self) -> bool:
        """Whether it reports that it is ready; False if it does not respond."""
        assert self.process.poll() is None, self.log()
        try:
            return self.get("/readyz").status == 200
        except (OSError, ssl.SSLError):  # no file of the CA yet, no listener yet
            return False

    def connect(self, host: str = "") -> Connection:
        return Connection(self.port, context(self.ca), host or self.host)

    def get(self, path: str) -> Response:
        with self.connect() as connection:
            return connection.request("GET", path)

    def post(self, path: str, document: Any) -> Response:
        with self.connect() as connection:
            return connection.post(path, document)

    def metric(self, name: str, **labels: str) -> float:
        """One sample of /metrics, 0 if it is not there; labels that are not given match anything."""
        return sum(
            value
            for found, has, value in samples(self.get("/metrics").body.decode())
            if found == f"vgpu_webhook_{name}" and labels.items() <= has.items()
        )

    def record(self) -> None:
        """Wait until the decisions that were answered are in the audit log: a line is written after its answer."""
        self.get("/metrics")

    def readyz(self) -> str:
        return self.get("/readyz").body.decode()

    def log(self) -> str:
        return self.log_path.read_text()

    @property
    def worker(self) -> int:
        (child,) = self.children
        return child

    @property
    def children(self) -> list[int]:
        """The master's children; none for a moment after a worker was lost."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in listed.split()]

    def open_files(self) -> int:
        """How many files, connections among them, the worker has open."""
        return len(list(Path(f"/proc/{self.worker}/fd").iterdir()))

    def settled_files(self) -> int:
        """How many files the worker has open once no connection is being closed any more."""
        seen: list[int] = []

        def settled() -> bool:
            time.sleep(0.1)
            seen.append(self.open_files())
            return len(seen) > 5 and len(set(seen[-5:])) == 1

        until(settled)
        return seen[-1]

    def memory(self) -> int:
        pages = Path(f"/proc/{self.worker}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def close(self) -> bytes:
        """End it; returns the rest of its standard output if that is a pipe."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is None or self.process.stdout.closed:
            return b""
        with self.process.stdout as output:
            return output.read()


def with_files(count: int | None) -> list[str]:
    """What a command begins with to have at most so many files open; nothing for None."""
    return ["sh", "-c", f'ulimit -n {count}; exec "$@"', "sh"] if count is not None else []


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
