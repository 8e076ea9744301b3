"""The webhook beside HAMi's own and a plain one in Go: a pod that all of them change, over TLS and through an API server.

HAMI_WEBHOOK names HAMi's scheduler, the program `scheduler` of its image projecthami/hami, which needs the API server of
`make parts`. GO_WEBHOOK names the program of tests/bench/plain_go (`go build .` there).
"""

import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from certs import pki
from tests.bench.engine import DATA
from tests.bench.processes import cpu_seconds, proportional
from tests.bench.throughput import CONNECTIONS, Load, load, start_webhook, stop, wait, write_script
from tests.e2e.cluster import ASSETS_HELP, Cluster, assets
from tests.e2e.objects import device_pod, namespace_objects
from tests.ledger import record
from tests.server.program import Authority, free_port

HAMI_CONFIG = """nvidia:
  resourceCountName: volcano.sh/vgpu-number
  resourceMemoryName: volcano.sh/vgpu-memory
  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage
  resourceCoreName: volcano.sh/vgpu-cores
  defaultGPUNum: 1
  deviceSplitCount: 10
  memoryFactor: 1
"""
BODY = DATA / "reviews" / "deployment-dep.controller-1.json"  # of a vGPU pod whose scheduler nobody chose
CREATIONS = 400  # dry runs of each kind through the API server
NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Peer:
    """A webhook that runs, with the paths of its reviews in the order of the calls, and the first of its processes."""

    name: str
    port: int
    paths: Sequence[str]
    process: subprocess.Popen

    def measure(self, script: Path, connections: int, seconds: int) -> tuple[Load, float]:
        """Rate and latencies, and the CPU time of a review in µs."""
        before = cpu_seconds(self.process.pid)
        result = load(script, self.port, connections, seconds, self.paths[0])
        return result, 1e6 * (cpu_seconds(self.process.pid) - before) / (result.rate * seconds)


def report(directory: Path, seconds: int, rounds: int) -> int:
    """Print this part of the table; returns 1 if something is missing."""
    binaries, hami, go = assets(), os.environ.get("HAMI_WEBHOOK"), os.environ.get("GO_WEBHOOK")
    if hami is None and go is None:
        print("beside other webhooks: not measured, neither HAMI_WEBHOOK= nor GO_WEBHOOK= is set (docs/performance.md)")
        return 0
    if binaries is None or shutil.which("wrk") is None:
        print(f"beside other webhooks: not measured; it needs wrk and an API server\n{ASSETS_HELP}", file=sys.stderr)
        return 1
    directory /= "peers"
    directory.mkdir()
    authority = Authority(directory)
    (directory / "cluster").mkdir()
    with ExitStack() as stack:
        cluster = Cluster(binaries, directory / "cluster")
        stack.callback(cluster.close)
        cluster.apply(*namespace_objects(NAMESPACE))
        ours = start_webhook(authority, DATA / "fleets" / "mixed.yaml", directory / "audit.log")
        stack.callback(ours.close)
        peers = [Peer("this webhook", ours.port, ("/mutate", "/validate"), ours.process)]
        if hami:
            peers.append(stack.enter_context(_hami(hami, cluster, directory)))
        if go:
            peers.append(stack.enter_context(_plain_go(go, directory)))
        ours.wait_ready()
        _compare(peers, write_script(directory, BODY), seconds, rounds)
        _through_api_server(cluster, peers, directory)
    return 0


def _compare(peers: Sequence[Peer], script: Path, seconds: int, rounds: int) -> None:
    ours = peers[0]
    print("beside other webhooks, through TLS, keep-alive, the same body, which all of them change; medians of rounds")
    print(f"  {'connections':<13}{'webhook':<16}{'reviews/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs':>9}", end="")
    print("   of this webhook's: rate   p50   p99   CPU")
    for connections in CONNECTIONS:
        rows = {peer.name: [] for peer in peers}
        for _ in range(rounds):
            for peer in peers:
                rows[peer.name].append(peer.measure(script, connections, seconds))
        figures = {
            name: (
                median(one.rate for one, _ in results),
                median(one.median for one, _ in results),
                median(one.p99 for one, _ in results),
                median(cpu for _, cpu in results),
            )
            for name, results in rows.items()
        }
        for peer in peers:
            rate, p50, p99, cpu = figures[peer.name]
            print(f"  {connections:<13}{peer.name:<16}{rate:>10.0f}{p50:>9.3f}{p99:>9.3f}{cpu:>9.0f}", end="")
            ratios = [ours / other for ours, other in zip(figures[ours.name], figures[peer.name], strict=True)]
            print("" if peer is ours else " " * 20 + "".join(f"{ratio:>6.2f}" for ratio in ratios))
            if peer is not ours:
                record("peers", f"{ratios[0]:.2f} of its rate with {connections} connections", peer.name)
    memory = ", ".join(f"{peer.name} {proportional(peer.process.pid):.0f}" for peer in peers)
    print(f"  memory after that, proportional set size in MiB: {memory}")


def _through_api_server(cluster: Cluster, peers: Sequence[Peer], directory: Path) -> None:
    """Dry-run creations, in turn; the label of a pod chooses which webhook the API server calls."""
    ours = peers[0]
    kinds = {"none": [], "repair and validation": [(ours, 0), (ours, 1)]}
    kinds |= {f"{peer.name}, repair" if peer is ours else peer.name: [(peer, 0)] for peer in peers}
    cluster.apply(
        *[
            _configuration(f"bench-{number}", peer, place, directory)
            for number, calls in enumerate(kinds.values())
            for peer, place in calls
        ]
    )
    time.sleep(3)  # until the API server uses them
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with cluster.api() as api:
        for turn in range(CREATIONS + 20):
            for number, kind in enumerate(kinds):
                pod = device_pod(
                    f"pod-{number}-{turn}", **{"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"}
                )
                pod["metadata"]["labels"] = {"bench": f"bench-{number}"}
                started = time.perf_counter()
                response = api.post(f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", pod)
                times[kind].append(1000 * (time.perf_counter() - started))
                assert response.status == 201, response.message
                changed = response.body["spec"]["schedulerName"] == "volcano"
                assert changed == (kind != "none"), kind
    print("through an API server, one creation after the other (ms)")
    for kind, found in times.items():
        tail = quantiles(found[20:], n=100)[98]
        print(f"  {kind:<24}{median(found[20:]):>8.2f}{tail:>8.2f} (99 %)")
    print()


def _configuration(name: str, peer: Peer, place: int, directory: Path) -> dict:
    kind = ("Mutating", "Validating")[place]
    webhook = {
        "name": f"{name}.bench.example",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {
            "url": f"https://127.0.0.1:{peer.port}{peer.paths[place]}",
            "caBundle": base64.b64encode((directory / pki.CA).read_bytes()).decode(),
        },
        "objectSelector": {"matchLabels": {"bench": name}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


def _hami(binary: str, cluster: Cluster, directory: Path) -> AbstractContextManager[Peer]:
    port, config, log = free_port(), directory / "hami.yaml", (directory / "hami.log").open("wb")
    config.write_text(HAMI_CONFIG)
    command = [binary, "--http_bind", f"127.0.0.1:{port}", "--scheduler-name", "volcano"]
    command += ["--cert_file", str(directory / pki.CERTIFICATE), "--key_file", str(directory / pki.KEY)]
    command += ["--device-config-file", str(config), "--metrics-bind-address", f"127.0.0.1:{free_port()}"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOOK_PATH": str(directory)}
    return _running("HAMi", port, "/webhook", "/healthz", command, stdout=log, stderr=log, env=environment)


def _plain_go(binary: str, directory: Path) -> AbstractContextManager[Peer]:
    port = free_port()
    command = [binary, "--bind", f"127.0.0.1:{port}"]
    command += ["--tls-cert", str(directory / pki.CERTIFICATE), "--tls-key", str(directory / pki.KEY)]
    return _running("plain Go", port, "/mutate", "/", command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def _running(name: str, port: int, path: str, ready: str, command: list[str], **popen: Any) -> Iterator[Peer]:
    process = subprocess.Popen(command, **popen)
    try:
        wait(port, ready)
        yield Peer(name, port, (path,), process)
    finally:
        stop(process)
