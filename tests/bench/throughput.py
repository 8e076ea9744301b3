"""The webhook compared with a minimal server (the floor): TLS, one worker, keep-alive connections, wrk as the client."""

import os
import re
import shutil
import ssl
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import orjson

from certs import pki
from tests.bench import fleets
from tests.bench.engine import DATA
from tests.bench.processes import proportional
from tests.server.program import Authority, Program, free_port, until

CONNECTIONS = (1, 16, 64)
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}

LUA = """wrk.method = "POST"
local file = io.open("{body}", "rb"); wrk.body = file:read("*a"); file:close()
wrk.headers["Content-Type"] = "application/json"
"""


@dataclass(frozen=True, slots=True)
class Load:
    """The result of wrk: requests a second, latencies in ms."""

    rate: float
    median: float
    p99: float


def report(directory: Path, seconds: int, rounds: int) -> int:
    """Print this part of the table; returns 1 if wrk is missing."""
    authority = Authority(directory)
    if shutil.which("wrk") is None:
        print("throughput and latency: not measured, wrk is missing (Debian: apt-get install wrk)")
        _memory_and_start(authority)
        return 1
    script = write_script(directory)
    webhook, floor_port = start_webhook(authority, DATA / "fleets" / "mixed.yaml"), free_port()
    floor = _start_floor(authority, floor_port)
    try:
        webhook.wait_ready()
        wait(floor_port, "/")
        print(
            "through TLS, one worker, keep-alive, POST /mutate (aim at 16: rate ratio at least 0.40, p99 ratio under 3)"
        )
        print(f"  {'':<12}{'requests a second':^27}{'p99 in ms':^27}")
        print(f"  {'connections':<12}" + f"{'floor':>9}{'webhook':>11}{'ratio':>7}" * 2)
        for connections in CONNECTIONS:
            _compare(script, (floor_port, webhook.port), connections, seconds, rounds)
    finally:
        webhook.close()
        stop(floor)
    print()
    _memory_and_start(authority)
    return 0


def _compare(script: Path, ports: tuple[int, int], connections: int, seconds: int, rounds: int) -> None:
    loads = [[load(script, port, connections, seconds) for port in ports] for _ in range(rounds)]  # in turn: A B A B …
    rates = [statistics.median(each.rate for each in of_one) for of_one in zip(*loads, strict=True)]
    tails = [statistics.median(each.p99 for each in of_one) for of_one in zip(*loads, strict=True)]
    print(
        f"  {connections:<12}{rates[0]:>9.0f}{rates[1]:>11.0f}{rates[1] / rates[0]:>7.2f}"
        f"{tails[0]:>9.2f}{tails[1]:>11.2f}{tails[1] / tails[0]:>7.2f}"
    )


def write_script(directory: Path, body: Path = DATA / "reviews" / "gpu-pod1.json") -> Path:
    script = directory / "post.lua"
    script.write_text(LUA.format(body=body))
    return script


def load(script: Path, port: int, connections: int, seconds: int, path: str = "/mutate") -> Load:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    output = subprocess.run(
        [*command, f"https://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True
    ).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        sys.exit(f"errors under load, figures would mean nothing:\n{output}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])
    return Load(rate, _latency(output, "50%"), _latency(output, "99%"))


def _latency(output: str, percentile: str) -> float:
    number, unit = re.search(rf"{percentile}\s+([\d.]+)(us|ms|s)", output).groups()
    return float(number) * UNITS[unit]


def _memory_and_start(authority: Authority) -> None:
    big = authority.directory / "fleet.json"
    big.write_bytes(orjson.dumps(fleets.fleet(5_000)))
    starts = []
    for _ in range(3):
        started = time.perf_counter()
        webhook = start_webhook(authority, big)
        try:
            webhook.wait_ready()
            starts.append(time.perf_counter() - started)
            memory = proportional(webhook.process.pid)
        finally:
            webhook.close()
    print("with a fleet of 5,000 nodes in 20 shapes")
    print(f"  memory of all serving processes, proportional set size: {memory:.0f} MiB (aim: 100)")
    print(f"  start to ready: {statistics.median(starts):.2f} s (aim: 1.5)")


def start_webhook(authority: Authority, fleet: Path, audit_log: Path = Path(os.devnull)) -> Program:
    options = [
        *authority.options,
        "--fleet",
        str(fleet),
        "--device-config",
        str(DATA / "config" / "device-config.yaml"),
    ]
    directory = authority.directory
    return Program([*options, "--audit-log", str(audit_log)], directory / "webhook.log", directory / pki.CA)


def _start_floor(authority: Authority, port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "gunicorn", "-k", "asgi", "--asgi-lifespan", "off", "--keep-alive", "300"]
    command += ["--certfile", str(authority.certificate), "--keyfile", str(authority.key)]
    command += ["--no-control-socket", "-b", f"127.0.0.1:{port}", "tests.bench.floor:app"]
    # As long as the response of the webhook, so that both servers write the same amount.
    environment = {"FLOOR_BODY": '{"canned": "' + "x" * 420 + '"}', "PATH": "/usr/bin:/bin"}
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=root)


def wait(port: int, path: str) -> None:
    """Wait until a server answers, whatever it answers, but that it is not ready."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"https://127.0.0.1:{port}{path}", timeout=2, context=context).close()
        except urllib.error.HTTPError as error:
            return error.code != HTTPStatus.SERVICE_UNAVAILABLE
        except OSError:
            return False
        return True

    until(answers)


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    process.wait(30)
