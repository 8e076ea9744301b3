"""The certificates of a cluster: the command that writes them, their mounted files, and the published CA bundle."""

import base64
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from certs import pki
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.server.client import SECONDS

KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
SYNC_SECONDS = 0.2


def ensure(cluster: Cluster, *options: str) -> str:
    """Run `python -m certs ensure` with the permissions of its CronJob; returns its output."""
    result = certs(cluster, "ensure", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def certs(
    cluster: Cluster, command: str, *options: str, namespace: str = "vgpu-webhook", prefix: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `python -m certs` with the permissions of its CronJob."""
    kubeconfig = cluster.kubeconfig_for_account(namespace, f"{prefix}vgpu-webhook-certs")
    common = ["--namespace", namespace, "--name", f"{prefix}vgpu-webhook", "--kubeconfig", str(kubeconfig)]
    command_line = [sys.executable, "-m", "certs", command, *common, *options]
    return subprocess.run(command_line, capture_output=True, text=True, timeout=SECONDS, check=False)


@contextmanager
def mounted(cluster: Cluster, directory: Path, namespace: str = "vgpu-webhook") -> Iterator[None]:
    """Copy each change of the Secret to a directory, as a kubelet does."""
    stop, secret = threading.Event(), f"/api/v1/namespaces/{namespace}/secrets/vgpu-webhook-tls"
    with cluster.api() as api:
        mounted_data = _write(api.get(secret).body["data"], directory)

        def follow() -> None:
            nonlocal mounted_data
            while not stop.wait(SYNC_SECONDS):
                data = api.get(secret).body["data"]
                mounted_data = mounted_data if data == mounted_data else _write(data, directory)

        kubelet = threading.Thread(target=follow)
        kubelet.start()
        try:
            yield
        finally:
            stop.set()
            kubelet.join()


def _write(data: dict[str, str], directory: Path) -> dict[str, str]:
    for name, mode in ((pki.CA, 0o644), (pki.KEY, 0o600), (pki.CERTIFICATE, 0o644)):
        pki.replace(directory / name, base64.b64decode(data[name]), mode)
    return data


def bundle(api: Api) -> bytes:
    """The CA bundle, which is the same in all entries; empty if there is none."""
    bundles: set[Any] = {
        webhook["clientConfig"].get("caBundle", "")
        for kind in KINDS
        for webhook in api.get(f"/apis/admissionregistration.k8s.io/v1/{kind}/vgpu-webhook").body["webhooks"]
    }
    (encoded,) = bundles
    return base64.b64decode(encoded)
