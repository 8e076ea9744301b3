"""The webhook on a cluster of 5,000 nodes that change all the time: its CPU usage, and the latency of reviews."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench import fleets
from tests.bench.engine import DATA
from tests.bench.processes import cpu_seconds, family, proportional
from tests.cluster.apiserver import NODES, ApiServer, config_map, config_maps
from tests.server.client import Connection, context
from tests.server.program import Authority, free_port, until

SIZE = 5_000
CHANGE_SECONDS = 30.0  # seconds between two changes of a node
MODES = (
    ("no node changes", "still"),
    ("heartbeats change", "beat"),
    ("cards change", "cards"),
    ("all listed anew every 10 s", "list"),
)
REGISTER = "volcano.sh/node-vgpu-register"


def report(directory: Path, seconds: int) -> None:
    """Print the live part of the table."""
    print(f"live: {SIZE} nodes of some 15 KiB, each changed every {CHANGE_SECONDS:.0f} s (aim: 5 % of a core, 20 ms)")
    print(f"  {'':<28}{'share of a core':>17}{'longest review in ms':>22}{'99.9 %':>9}")
    with _run_api_server(directory) as set_mode, _run_webhook(directory) as webhook:
        for name, mode in MODES:
            set_mode(mode)
            time.sleep(5)
            cpu_percent = webhook.cpu_percent(seconds)
            latencies = webhook.latencies(seconds)
            print(
                f"  {name:<28}{cpu_percent:>15.1f} %{latencies[-1]:>22.1f}{latencies[-1 - len(latencies) // 1000]:>9.1f}"
            )
        set_mode("still")
        print(f"  memory of all serving processes, proportional set size: {webhook.memory() / 1024:.0f} MiB (aim: 100)")


class _Webhook:
    def __init__(self, process: subprocess.Popen, port: int, ca: Path) -> None:
        self._process, self._port, self._ca = process, port, ca
        self._body = (DATA / "reviews" / "gpu-pod1.json").read_bytes()

    def get(self, path: str) -> str:
        with Connection(self._port, context(self._ca)) as connection:
            return connection.request("GET", path).body.decode()

    def is_synced(self) -> bool:
        try:
            return f"fleet: {SIZE} nodes" in self.get("/readyz")
        except OSError:
            return False

    def cpu_percent(self, seconds: float) -> float:
        """CPU usage in percent of a core, without any review."""
        before = self._cpu()
        time.sleep(seconds)
        return 100 * (self._cpu() - before) / seconds

    def latencies(self, seconds: float) -> list[float]:
        """Latencies of reviews in ms, ascending: about 300 a second, one after the other."""
        times = []
        end = time.perf_counter() + seconds
        with Connection(self._port, context(self._ca)) as connection:
            while time.perf_counter() < end:
                started = time.perf_counter()
                connection.post("/validate", self._body)
                times.append(1000 * (time.perf_counter() - started))
                time.sleep(0.002)
        return sorted(times)

    def memory(self) -> int:
        return sum(proportional(pid) for pid in family(self._process.pid))

    def _cpu(self) -> float:
        return cpu_seconds(self._process.pid)


@contextmanager
def _run_webhook(directory: Path) -> Iterator[_Webhook]:
    port = free_port()
    command = [sys.executable, "-m", "webhook.cli.main", "serve", "--cluster", "--bind", f"127.0.0.1:{port}"]
    command += ["--kubeconfig", str(directory / "kubeconfig"), "--audit-log", "/dev/null"]
    command += ["--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        webhook = _Webhook(process, port, directory / "ca.crt")
        until(webhook.is_synced, 60)
        yield webhook
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def _run_api_server(directory: Path) -> Iterator[Callable[[str], None]]:
    """Run the API server in its own process; yields a function that sets how its nodes change."""
    command = [sys.executable, "-m", "tests.bench.live", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        process.stdout.readline()
        yield lambda mode: process.stdin.write(mode + "\n")
        process.stdin.close()


def _node(number: int) -> dict[str, Any]:
    """A node of realistic size, most of which the webhook does not read."""
    node = fleets.node(number, 20)
    fields = {f"f:{name}": {".": {}, "f:type": {}} for name in range(100)}
    node["metadata"]["managedFields"] = [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}]
    node["metadata"]["labels"] |= {f"nvidia.com/gpu.{mode}": f"{mode}-{number % 20}" for mode in range(25)}
    digest = "0123456789abcdef" * 4
    node["status"]["images"] = [
        {"names": [f"registry/image-{image}@sha256:{digest}", f"registry/image-{image}:v1"], "sizeBytes": image << 20}
        for image in range(50)
    ]
    return node


def _change(node: dict[str, Any], mode: str, turn: int) -> dict[str, Any]:
    annotations = dict(node["metadata"]["annotations"])
    if mode != "cards":
        annotations["volcano.sh/node-vgpu-handshake"] = f"Requesting_{turn}"
    else:
        annotations[REGISTER] = annotations[REGISTER].replace("true", "false" if turn % 2 else "true")
    return node | {"metadata": node["metadata"] | {"annotations": annotations}}


def _serve(directory: Path) -> None:
    """Run the API server; its standard input sets how its nodes change."""
    with ApiServer(Authority(directory)) as api:
        api.kubeconfig(directory / "kubeconfig")
        nodes = [_node(number) for number in range(SIZE)]
        api.put(NODES, *nodes)
        config = (DATA / "config" / "device-config.yaml").read_text()
        api.put(config_maps("kube-system"), config_map("volcano-vgpu-device-config", {"device-config.yaml": config}))
        print("ready", flush=True)
        os.set_blocking(0, False)
        mode, number = "still", 0
        while True:
            due = time.monotonic() + CHANGE_SECONDS / SIZE
            received = sys.stdin.buffer.raw.read(100)
            if received == b"":
                return
            mode = received.decode().split()[-1] if received else mode
            if mode == "list" and number % (10 * SIZE // int(CHANGE_SECONDS)) == 0:
                api.compact()
                api.break_watches()
            if mode != "still":
                api.put(NODES, _change(nodes[number % SIZE], mode, 1 + number // SIZE))
                number += 1
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
