"""The certificates of a cluster: who puts them in order, who mounts them, and what API servers trust."""

import base64
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certs import pki as store
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster

KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
SYNC_SECONDS = 0.2


def ensure(cluster: Cluster, *options: str) -> str:
    """Run `python -m certs ensure` as its CronJob does, with no more rights; returns what it prints."""
    done = certs(cluster, "ensure", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def certs(
    cluster: Cluster, command: str, *options: str, namespace: str = "vgpu-webhook", prefix: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `python -m certs` as its CronJob does, with no more rights."""
    kubeconfig = cluster.kubeconfig_of_account(namespace, f"{prefix}vgpu-webhook-certs")
    place = ["--namespace", namespace, "--name", f"{prefix}vgpu-webhook", "--kubeconfig", str(kubeconfig)]
    words = [sys.executable, "-m", "certs", command, *place, *options]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


@contextmanager
def mounted(cluster: Cluster, directory: Path, namespace: str = "vgpu-webhook") -> Iterator[None]:
    """Let a directory follow the Secret, as a kubelet does."""
    ended, secret = threading.Event(), f"/api/v1/namespaces/{namespace}/secrets/vgpu-webhook-tls"
    with cluster.api() as api:
        seen = _write(api.get(secret).body["data"], directory)

        def follow() -> None:
            nonlocal seen
            while not ended.wait(SYNC_SECONDS):
                data = api.get(secret).body["data"]
                seen = seen if data == seen else _write(data, directory)

        kubelet = threading.Thread(target=follow)
        kubelet.start()
        try:
            yield
        finally:
            ended.set()
            kubelet.join()


def _write(data: dict[str, str], directory: Path) -> dict[str, str]:
    for name, mode in ((store.CA, 0o644), (store.KEY, 0o600), (store.CERTIFICATE, 0o644)):
        store.replace(directory / name, base64.b64decode(data[name]), mode)
    return data


def bundle(api: Api) -> bytes:
    """What API servers trust, the same for all entries; empty without any."""
    found: set[Any] = {
        webhook["clientConfig"].get("caBundle", "")
        for kind in KINDS
        for webhook in api.get(f"/apis/admissionregistration.k8s.io/v1/{kind}/vgpu-webhook").body["webhooks"]
    }
    (only,) = found
    return base64.b64decode(only)
