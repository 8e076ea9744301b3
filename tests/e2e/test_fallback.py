"""The fallback policies on a real API server: they refuse the same pods as the engine, with and without the webhook."""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import pytest
import yaml

from tests.deploy.clusters import DATA, outcome_of, request
from tests.deploy.drawing import pod_with
from tests.deploy.fallback import shown
from tests.e2e.api import Api, Response, cpu_seconds
from tests.e2e.changes import DEVICE_CONFIG, delete_configurations
from tests.e2e.cluster import Cluster
from tests.e2e.objects import KUBELETS, USER, Object, binding, device_pod, namespace_objects, pods, service_account
from tests.rules.test_cases import ALL, request_of
from tests.server.program import until
from webhook.devices.config_file import parse_device_config
from webhook.inputs.documents import is_object
from webhook.manifests.fallback.isolation import ISOLATION, NOT_READ
from webhook.manifests.fallback.policies import admission_policies
from webhook.pod.templates import read_templates
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import validate
from webhook.settings.snapshot import SnapshotInputs
from webhook.suites.rulebook import rows

NAMESPACE, EXEMPT = "fallback-held", "fallback-free"
EXCLUDED = "kube-system"  # the API server does not evaluate the fallback policies here
DENYING = {"rules": dict.fromkeys(ISOLATION, "deny"), "namespaces": [{"match": ["fallback-f*"], "exempt": True}]}
PRIVILEGED = device_pod("privileged", securityContext={"privileged": True})
REFUSES = "ValidatingAdmissionPolicy 'vgpu-webhook-"


@pytest.fixture(scope="module")
def fallback(cluster: Cluster) -> Iterator[list[Object]]:
    """The fallback policies of this policy are in effect, and the API server calls no webhook."""
    delete_configurations(cluster)
    policy = parse_policy(DENYING, "policy")
    config = parse_device_config(yaml.safe_load(DEVICE_CONFIG.read_text()), "device-config.yaml")
    policies = admission_policies(config, policy)
    cluster.apply(*namespace_objects(NAMESPACE), *namespace_objects(EXEMPT), service_account(EXCLUDED), *policies)
    with cluster.api() as api:
        until(lambda: REFUSES in dry_run(api, PRIVILEGED).message)
    yield policies
    for document in policies:
        cluster.kubectl("delete", document["kind"], document["metadata"]["name"])


def dry_run(api: Api, manifest: Object, namespace: str = NAMESPACE) -> Response:
    return api.post(f"{pods(namespace)}?dryRun=All", manifest)


def timed(api: Api, manifest: Object, namespace: str = NAMESPACE) -> tuple[float, Response]:
    """The seconds of CPU that the API server spends, which other load on the machine does not change, and its response."""
    start = cpu_seconds(api)
    response = dry_run(api, manifest, namespace)
    return cpu_seconds(api) - start, response


def corpus() -> Iterator[Object]:
    """Every pod of the recorded reviews, the examples of all rules, the cases of these, and published manifests."""
    for file in sorted((DATA / "reviews").glob("*.json")):
        request_json = json.loads(file.read_bytes())["request"]
        if request_json["kind"]["kind"] == "Pod" and request_json["operation"] == "CREATE":
            yield as_manifest(request_json["object"])
    cases = [request_of(case) for rule in ISOLATION for case in ALL[rule]]
    for asked in (*(row.example().request for row in rows()), *cases):
        if (asked.kind, asked.operation, asked.sub_resource) == ("Pod", "CREATE", "") and asked.object:
            yield as_manifest(dict(asked.object))
    for file in sorted((DATA / "field").glob("*.yaml")):
        with suppress(yaml.YAMLError):  # some ask why theirs is none
            for document in filter(is_object, yaml.safe_load_all(file.read_text())):
                yield from map(as_manifest, pods_of(document))


def pods_of(document: Object) -> list[Object]:
    """A pod, or those of the templates of a workload."""
    if document["kind"] == "Pod":
        return [document]
    kind = WORKLOAD_KINDS.get((document["apiVersion"].rpartition("/")[0], document["kind"]))
    return [template.pod for template in read_templates(kind, document)] if kind else []


def as_manifest(manifest: Object) -> Object:
    """A pod that can be created in the namespace of the test."""
    given = manifest.get("metadata", {})
    metadata = {key: value for key, value in given.items() if key in ("labels", "annotations")}
    spec = {key: value for key, value in manifest["spec"].items() if key != "runtimeClassName"}  # this cluster has none
    return manifest | {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"name": "tried"}, "spec": spec}


def denials(manifest: Object) -> list[str]:
    """The denials of the engine for a pod, by the rules of the fallback policies."""
    config = parse_device_config(yaml.safe_load(DEVICE_CONFIG.read_text()), "device-config.yaml")
    policy = parse_policy(DENYING, "policy")
    snapshot = SnapshotInputs(config, policy, None).snapshot()
    found = outcome_of(validate, request(manifest), snapshot).denials
    return [f"{violation.rule}: {violation.message}" for violation in found if violation.rule in ISOLATION]


def is_rejected(response: Response) -> bool:
    """Whether the API server itself rejects the pod."""
    return response.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


def test_the_fallback_policies_agree_with_the_engine(api: Api, fallback: list[Object]):
    refused = passed = rejected = 0
    for manifest in corpus():
        response, expected = dry_run(api, manifest), denials(manifest)
        if is_rejected(response):
            rejected += 1
            continue
        stricter = NOT_READ in response.message  # on purpose
        assert (REFUSES in response.message) == bool(expected or stricter), (response.message, expected)
        if not stricter and not response.message.endswith("…"):
            assert all(shown(one) in shown(response.message) for one in expected), (response.message, expected)
        assert response.status == (HTTPStatus.FORBIDDEN if expected or stricter else HTTPStatus.CREATED), (
            response.message
        )
        refused, passed = refused + bool(expected), passed + (not expected)
    assert refused >= 45
    assert passed >= 40


def test_exempt_namespaces_are_not_checked(api: Api, fallback: list[Object]):
    assert dry_run(api, PRIVILEGED, EXEMPT).status == HTTPStatus.CREATED


def test_updates_bindings_mirror_pods_and_ephemeral_containers(cluster: Cluster, api: Api, fallback: list[Object]):
    assert api.post(pods(NAMESPACE), device_pod("old")).status == HTTPStatus.CREATED
    forged = {"metadata": {"annotations": {"volcano.sh/vgpu-node": "gpu-a"}}}
    containers = [{"name": "debug", "image": "x", "env": [{"name": "LD_PRELOAD", "value": "x"}]}]
    debug = {"spec": {"ephemeralContainers": containers}}
    mirror = device_pod("mirror", securityContext={"privileged": True})
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "6f1c0b"}
    mirror["spec"] |= {"nodeName": "gpu-a", "enableServiceLinks": False}
    writes = 'reserved-annotation: user "alice" may not add, change or remove the annotation'
    refused = [
        (writes, "PATCH", pods(NAMESPACE, "old"), forged),
        (writes, "PATCH", pods(NAMESPACE, "old", "status"), {"status": {"message": "x"}} | forged),
        (writes, "POST", f"/api/v1/namespaces/{NAMESPACE}/bindings", binding(forged["metadata"]["annotations"])),
        ("isolation-env: ", "PATCH", pods(NAMESPACE, "old", "ephemeralcontainers"), debug),
        ("privileged-device: ", "POST", pods(NAMESPACE), mirror),
    ]
    with cluster.api(USER) as ordinary:
        for message, method, path, document in refused:
            kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
            send = partial(ordinary.send, method, f"{path}?dryRun=All", document, kind)
            until(lambda: message in send().message)  # noqa: B023  # policies take effect one by one
        allowed = ordinary.merge(pods(NAMESPACE, "old"), {"metadata": {"annotations": {"a": "b"}}})
        assert allowed.status == HTTPStatus.OK, allowed.message
    with cluster.api("system:node:gpu-a", KUBELETS) as kubelet:
        created = kubelet.post(pods(NAMESPACE), mirror)
        assert created.status == HTTPStatus.CREATED, created.message


LIMITS = {"resources": {"limits": {"volcano.sh/vgpu-number": "1"}}}
LARGE = {
    "12,000 containers": [{"name": f"c{i}", "image": "x", **LIMITS} for i in range(12_000)],
    "20,000 variables": [{"name": "c", "image": "x", "env": [{"name": "A"}] * 20_000, **LIMITS}],
    "4,000 variables": [{"name": "c", "image": "x", "env": [{"name": "A"}] * 4_000, **LIMITS}],
    "45,000 characters of paths": [
        {"name": "c", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/" + "a" * 900}] * 50, **LIMITS}
    ],
    "300 containers": [{"name": f"c{i}", "image": "x", **LIMITS} for i in range(300)],
}


@pytest.mark.parametrize("containers", LARGE.values(), ids=LARGE)
def test_large_pods_are_checked_in_time(api: Api, fallback: list[Object], containers: list[Any]):
    manifest = pod_with() | {"spec": {"containers": containers}}
    assert "cost" not in dry_run(api, manifest).message
    # The API server alone needs more than a second for 12,000 containers, so only the additional time counts.
    without = min(timed(api, manifest, EXCLUDED)[0] for _ in range(3))
    seconds = min(timed(api, manifest)[0] for _ in range(3))
    assert seconds - without < 3, f"{seconds:.2f} s of CPU, and {without:.2f} s without the fallback policies"
