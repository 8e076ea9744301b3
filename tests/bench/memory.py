"""Memory that stays in use after closed connections and finished reviews."""

import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bench import throughput
from tests.server.client import Connection, context
from tests.server.conftest import SETTINGS
from tests.server.program import Authority, Program

CONNECTIONS = 20_000
REVIEWS = 500_000
WARM_UP = 20  # 1/WARM_UP of each load runs before the first measurement
THREADS = 4
KEPT = 16  # connections of the reviews
SLICE_SECONDS = 5
AIM = 10.0  # MB


def report(directory: Path) -> int:
    """Print the growth of the resident memory of the worker; returns 1 if it is above the aim."""
    authority = Authority(directory)
    loads = {
        f"{CONNECTIONS:,} x GET /healthz": _short_connections,
        f"{CONNECTIONS:,} bare handshakes": _bare_handshakes,
        f"{REVIEWS:,} reviews": _reviews,
    }
    print(f"growth of resident memory, in MB (aim: below {AIM:.0f})")
    options = [*authority.options, *SETTINGS, "--audit-log", "/dev/null"]
    program = Program(options, directory / "memory.log", directory / "ca.crt")
    try:
        program.wait_ready()
        growth = [load(program, directory) for load in loads.values()]
    finally:
        program.close()
    for name, megabytes in zip(loads, growth, strict=True):
        print(f"  {name:<30}{megabytes:>8.1f}")
    print()
    return int(max(growth) > AIM)


def _short_connections(program: Program, _directory: Path) -> float:
    def request(tls: ssl.SSLContext) -> None:
        with Connection(program.port, tls) as connection:
            connection.request("GET", "/healthz", headers={"Connection": "close"})

    return _growth(program, lambda times: _in_threads(program, request, times), CONNECTIONS)


def _bare_handshakes(program: Program, _directory: Path) -> float:
    def request(tls: ssl.SSLContext) -> None:
        with socket.create_connection(("127.0.0.1", program.port), timeout=10) as raw:
            tls.wrap_socket(raw, server_hostname="localhost").close()

    return _growth(program, lambda times: _in_threads(program, request, times), CONNECTIONS)


def _reviews(program: Program, directory: Path) -> float:
    script = throughput.write_script(directory)

    def run(times: int) -> None:
        while times > 0:
            times -= int(throughput.load(script, program.port, KEPT, SLICE_SECONDS).rate * SLICE_SECONDS)

    return _growth(program, run, REVIEWS)


def _in_threads(program: Program, request: Callable[[ssl.SSLContext], None], times: int) -> None:
    with ThreadPoolExecutor(THREADS) as threads:
        tls = context(program.ca)
        for future in [threads.submit(request, tls) for _ in range(times)]:
            future.result()


def _growth(program: Program, load: Callable[[int], None], times: int) -> float:
    load(times // WARM_UP)
    before = program.memory()
    load(times)
    return (program.memory() - before) / 1e6
