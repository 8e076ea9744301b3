"""The cost of the fallback policies: dry-run creations on a real API server with nothing, them, the webhook, and both.

It needs the API server of `make parts`, as `make e2e` does.
"""

import sys
import time
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles

import yaml

from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, attach
from tests.e2e.cluster import ASSETS_HELP, Cluster, assets
from tests.e2e.conftest import install_prerequisites
from tests.e2e.objects import Object, device_pod, namespace_objects, pod, pods
from tests.e2e.serving import Replica, ServiceAuthority
from tests.e2e.shipped import is_configuration, render
from webhook.devices.config_file import parse_device_config
from webhook.manifests.fallback.policies import admission_policies
from webhook.policy.policy import default_policy

ROUNDS, CREATIONS = 4, 100  # creations of each kind; the settings take turns
NAMESPACE = "bench"


def report(directory: Path) -> int:
    """Print this part of the table; returns 1 if the binaries of the API server are missing."""
    binaries = assets()
    if binaries is None:
        print(f"fallback policies: not measured\n{ASSETS_HELP}", file=sys.stderr)
        return 1
    config = parse_device_config(yaml.safe_load(DEVICE_CONFIG.read_text()), "device-config.yaml")
    policies = admission_policies(config, default_policy())
    (directory / "cluster").mkdir()
    cluster = Cluster(binaries, directory / "cluster")
    try:
        install_prerequisites(cluster)
        cluster.apply(*namespace_objects(NAMESPACE))
        with closing(_serve(cluster, directory)), cluster.api() as api:
            _measure(cluster, api, policies)
    finally:
        cluster.close()
    return 0


def _serve(cluster: Cluster, directory: Path) -> Replica:
    """The webhook as deploy/ runs it."""
    (directory / "tls").mkdir()
    authority = ServiceAuthority(directory / "tls")
    kubeconfig = cluster.kubeconfig_for_account("vgpu-webhook", "vgpu-webhook")
    options = ["--cluster", "--kubeconfig", str(kubeconfig), "--policy-map", "vgpu-webhook/vgpu-webhook-policy"]
    webhook = Replica(authority.directory, [*options, "--audit-log", ""], directory / "webhook.log")
    webhook.wait_ready()
    attach(cluster, webhook.port, authority.ca.certificate, webhook)
    return webhook


def _measure(cluster: Cluster, api: Api, policies: list[Object]) -> None:
    configurations = [
        api.get(f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/vgpu-webhook").body
        for kind in (document["kind"] for document in filter(is_configuration, render(cluster)))
    ]
    for configuration in configurations:
        configuration["metadata"] = {"name": configuration["metadata"]["name"]}
    settings = {
        (held, called): [*(policies if held else []), *(configurations if called else [])]
        for held in (False, True)
        for called in (False, True)
    }
    manifests = {"plain": pod("plain", {"cpu": "1"}), "device": device_pod("device")}
    for manifest in manifests.values():
        manifest["spec"]["schedulerName"] = "volcano"
    measured: dict[tuple[bool, bool, str], list[float]] = {}
    _remove(cluster, configurations)
    for _ in range(ROUNDS):
        for (held, called), documents in settings.items():
            if documents:
                cluster.apply(*documents)
                time.sleep(3)  # until the API server evaluates them
            for kind, manifest in manifests.items():
                _create(api, manifest)
                measured.setdefault((held, called, kind), []).extend(_create(api, manifest) for _ in range(CREATIONS))
            _remove(cluster, documents)
            time.sleep(2)
    print("fallback policies: dry-run creations, p50 and p95 in ms")
    print(f"  {'policies':<10}{'webhook':<10}{'plain pod':>16}{'device pod':>18}")
    for held, called in settings:
        texts = [
            f"{median(times) * 1000:.2f} {quantiles(times, n=20)[-1] * 1000:.2f}"
            for times in (measured[held, called, kind] for kind in manifests)
        ]
        print(
            f"  {'installed' if held else 'none':<10}{'called' if called else 'none':<10}{texts[0]:>16}{texts[1]:>18}"
        )


def _remove(cluster: Cluster, documents: list[Object]) -> None:
    for document in documents:
        cluster.kubectl("delete", document["kind"], document["metadata"]["name"], "--ignore-not-found")


def _create(api: Api, manifest: Object) -> float:
    start = time.perf_counter()
    response = api.post(f"{pods(NAMESPACE)}?dryRun=All", manifest)
    seconds = time.perf_counter() - start
    assert response.status == 201, response.message
    return seconds
