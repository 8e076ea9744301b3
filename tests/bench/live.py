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
from tests.bench.processes import cpu_seconds, proportional
from tests.cluster.apiserver import NODES, ApiServer, config_map, config_maps
from tests.server.program import Authority, Program, until

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
    print(f"live: {SIZE} nodes of some 15 KiB, each changed every {CHANGE_SECONDS:.0f} s (aim: 5 % of a core, 20 ms)")
    print(f"  {'':<28}{'share of a core':>17}{'longest review in ms':>22}{'99.9 %':>9}")
    options = ["--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key"), "--cluster"]
    options += ["--kubeconfig", str(directory / "kubeconfig"), "--audit-log", os.devnull]
    with _run_api_server(directory) as set_mode:
        webhook = Program(options, directory / "live.log", directory / "ca.crt")
        try:
            until(lambda: webhook.is_ready() and f"fleet: {SIZE} nodes" in webhook.readyz())
            for name, mode in MODES:
                set_mode(mode)
                time.sleep(5)
                before = cpu_seconds(webhook.process.pid)
                time.sleep(seconds)
                cpu_percent = 100 * (cpu_seconds(webhook.process.pid) - before) / seconds
                latencies = _latencies(webhook, seconds)
                tail = latencies[-1 - len(latencies) // 1000]
                print(f"  {name:<28}{cpu_percent:>15.1f} %{latencies[-1]:>22.1f}{tail:>9.1f}")
            set_mode("still")
            memory = proportional(webhook.process.pid)
            print(f"  memory of all serving processes, proportional set size: {memory:.0f} MiB (aim: 100)")
        finally:
            webhook.close()


def _latencies(webhook: Program, seconds: float) -> list[float]:
    """Latencies of reviews in ms, ascending: about 300 a second, one after the other."""
    body, times = (DATA / "reviews" / "gpu-pod1.json").read_bytes(), []
    end = time.perf_counter() + seconds
    with webhook.connect() as connection:
        while time.perf_counter() < end:
            started = time.perf_counter()
            connection.post("/validate", body)
            times.append(1000 * (time.perf_counter() - started))
            time.sleep(0.002)
    return sorted(times)


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
