"""The requests that the API server sends to the webhook, as its matchConditions decide."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from tests.e2e.api import Api, Response
from tests.e2e.cluster import Cluster
from tests.e2e.objects import binding, device_pod, namespace_objects, pod, pods
from tests.golden.cases import recorded, responses_to
from tests.server.program import Program
from tests.server.reviews import RECORDED
from webhook.pod.quantity import parse

Calls = Callable[[], dict[str, int]]

NOT_SENT = {"plain-pod"}
# They request no device by the names of this cluster, and get at most a warning: of a variable, and of nvidia.com/gpu.
ONLY_VALIDATED = {"escape-env-no-gpu", "specific-gpu-pod", "test-vgpu-compatible"}
INVALID = {"fractional-number", "requests-differ", "specific-gpu-pod"}  # the API server itself rejects them

LATER = ("update", "ephemeral", "delete")  # these need an earlier request; the tests below send both
CREATED = [file for file in RECORDED if not file.stem.endswith(LATER)]
CASES = {case.name: case for case in recorded()}

MUTATE, VALIDATE = {"mutate": 1}, {"validate": 1}


@pytest.fixture(scope="module")
def recorded_namespace(cluster: Cluster) -> str:
    cluster.apply(*namespace_objects("recorded"))
    return "recorded"


@pytest.fixture
def calls(webhook: Program) -> Calls:
    """A function that counts the calls of each endpoint since it was last called."""

    def total() -> dict[str, int]:
        return {
            endpoint: int(webhook.metric("requests_total", endpoint=endpoint)) for endpoint in ("mutate", "validate")
        }

    before = total()

    def new_calls() -> dict[str, int]:
        now = total()
        received = {endpoint: now[endpoint] - before[endpoint] for endpoint in now if now[endpoint] != before[endpoint]}
        before.update(now)
        return received

    return new_calls


@pytest.mark.parametrize("file", CREATED, ids=[file.stem for file in CREATED])
def test_pods_that_request_devices_are_sent(file: Path, api: Api, recorded_namespace: str, calls: Calls):
    request = json.loads(file.read_bytes())["request"]
    golden = responses_to(CASES[file.stem])
    response = create(api, recorded_namespace, request)
    received = calls()
    if file.stem in NOT_SENT:
        assert received == {}
        assert not any(answer.keys() & {"patch", "warnings", "status"} for answer in golden.values()), (
            "the webhook would change or report something"
        )
    elif file.stem in INVALID:
        assert (response.status, received) == (422, {} if file.stem in ONLY_VALIDATED else MUTATE)
    else:
        is_pod = request["kind"]["kind"] == "Pod"
        assert received == (MUTATE | VALIDATE if is_pod and file.stem not in ONLY_VALIDATED else VALIDATE)
        assert_response(response, golden)
        if is_pod and response.status == 201:
            repaired = jsonpatch.apply_patch(request["object"], golden["mutate"].get("patch", []))
            assert_stored(response.body["spec"], repaired["spec"])


def mounting(path: str) -> dict[str, Any]:
    found = pod("shows", volumeMounts=[{"name": "null", "mountPath": path}])
    found["spec"]["volumes"] = [{"name": "null", "hostPath": {"path": "/dev/null"}}]
    return found


def annotated(key: str) -> dict[str, Any]:
    found = pod("shows")
    return found | {"metadata": found["metadata"] | {"annotations": {key: "nvidia.com/gpu=all"}}}


HIDDEN = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": ""}]
CUDA = [{"name": "CUDA_VERSION", "value": "12.4"}]


@pytest.mark.parametrize(
    ("shows", "rules"),
    [
        (pod("shows", env=CUDA), ["visible-devices"]),
        (pod("shows", env=CUDA + HIDDEN), []),
        (mounting("/var/run/nvidia-container-devices/all"), ["visible-devices"]),
        (mounting("/data"), []),
        (annotated("nvidia.cdi.k8s.io/cards"), ["visible-devices"]),
    ],
    ids=["cuda", "hidden", "mount", "another mount", "cdi"],
)
def test_a_pod_that_shows_cards_without_a_request_is_sent(
    shows: dict[str, Any], rules: list[str], api: Api, namespace: str, calls: Calls
):
    response = api.post(pods(namespace), shows)
    assert response.status == 201, response.message
    assert [warning.partition(":")[0] for warning in response.warnings] == rules
    assert calls() == (VALIDATE if rules else {})


def create(api: Api, namespace: str, request: dict[str, Any]) -> Response:
    """Create a recorded object without the fields that the API server added."""
    metadata = {"name", "generateName", "labels", "annotations"}
    document = request["object"] | {
        "metadata": {key: value for key, value in request["object"]["metadata"].items() if key in metadata}
    }
    group, version, resource = (request["resource"][key] for key in ("group", "version", "resource"))
    root = f"/apis/{group}" if group else "/api"
    query = "?dryRun=All" if request.get("dryRun") else ""
    return api.post(f"{root}/{version}/namespaces/{namespace}/{resource}{query}", document)


def assert_response(response: Response, golden: dict[str, Any]) -> None:
    """The API server returns the warnings and the message of the webhook."""
    warnings = [warning for answer in golden.values() for warning in answer.get("warnings", [])]
    assert list(response.warnings) == warnings
    validated = golden["validate"]
    if validated["allowed"]:
        assert response.status == 201, response.message
    else:
        assert response.status == 403, response.message
        lines = response.message.partition(" denied the request: ")[2].split("\n")
        assert lines[:-1] == validated["status"]["message"][:-1]


def assert_stored(stored: dict[str, Any], expected: dict[str, Any]) -> None:
    """The stored spec has the repairs of the webhook; the API server adds defaults."""
    assert stored["schedulerName"] == expected["schedulerName"]
    assert [t for t in expected["tolerations"] if t not in stored["tolerations"]] == []
    assert [amounts(c) for c in stored["containers"]] == [amounts(c) for c in expected["containers"]]


def amounts(container: dict[str, Any]) -> dict[str, Any]:
    """Limits and requests, with parsed quantities."""
    return {
        kind: {name: parse(amount) for name, amount in resources.items()}
        for kind, resources in container["resources"].items()
    }


@pytest.mark.parametrize(
    ("limits", "suggestion"),
    [
        ({"volcano.sh/vgpu-num": "1"}, "volcano.sh/vgpu-number"),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu_memory": "3000"}, "volcano.sh/vgpu-memory"),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memery": "3000"}, "volcano.sh/vgpu-memory"),
    ],
)
def test_a_misspelt_name_is_refused(limits: dict[str, str], suggestion: str, api: Api, namespace: str, calls: Calls):
    refused = api.post(pods(namespace), pod("misspelt", limits))
    assert refused.status == 403
    assert f"but no node offers it; did you mean {suggestion}?\n" in refused.message
    assert calls() == MUTATE | VALIDATE
    spec = {"selector": {"matchLabels": {"app": "a"}}}
    spec["template"] = {"metadata": {"labels": {"app": "a"}}, "spec": pod("p", limits)["spec"]}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "misspelt"}, "spec": spec}
    stored = api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", document)
    assert (stored.status, len(stored.warnings)) == (201, 1)
    assert stored.warnings[0].endswith(f"did you mean {suggestion}?")


def test_a_card_of_nvidias_own_plugin_is_sent_to_be_told_of_only(api: Api, namespace: str, calls: Calls):
    """Also by a workload; see test_live for a node that offers it."""
    card = pod("card", {"nvidia.com/gpu": "1"})
    spec = {"selector": {"matchLabels": {"app": "a"}}}
    spec["template"] = {"metadata": {"labels": {"app": "a"}}, "spec": card["spec"]}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cards"}, "spec": spec}
    for path, obj in ((pods(namespace), card), (f"/apis/apps/v1/namespaces/{namespace}/deployments", document)):
        stored = api.post(path, obj)
        assert [warning.partition(":")[0] for warning in stored.warnings] == ["resource-not-offered"]
        assert (stored.status, calls()) == (201, VALIDATE)


def test_the_names_of_other_plugins_are_not_sent(api: Api, namespace: str, calls: Calls):
    foreign = {"amd.com/gpu": "1", "huawei.com/npu": "1", "example.org/vgpu-num": "1"}
    assert api.post(pods(namespace), pod("foreign", foreign)).status == 201
    assert calls() == {}


def test_other_changes_and_a_deletion_are_not_sent(api: Api, namespace: str, calls: Calls):
    api.post(pods(namespace), device_pod("p"))
    assert calls() == MUTATE | VALIDATE
    assert api.merge(pods(namespace, "p"), {"metadata": {"labels": {"touched": "yes"}}}).status == 200
    assert api.merge(pods(namespace, "p", "status"), {"status": {"message": "touched"}}).status == 200
    assert api.post(f"{pods(namespace, 'p', 'binding')}", binding({"touched": "yes"})).status == 201
    assert api.delete(pods(namespace, "p")).status == 200
    assert calls() == {}


def test_an_ephemeral_container_is_sent_for_a_device_pod_only(api: Api, namespace: str, calls: Calls):
    for document in (device_pod("device"), pod("plain")):
        api.post(pods(namespace), document)
    calls()
    debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "cuda"}]}}
    for name, expected in (("plain", {}), ("device", VALIDATE)):
        path = pods(namespace, name, "ephemeralcontainers")
        assert api.send("PATCH", path, debug, "application/strategic-merge-patch+json").status == 200
        assert calls() == expected


def test_a_workload_is_sent_when_its_template_changes(api: Api, namespace: str, calls: Calls):
    template = {"metadata": {"labels": {"app": "a"}}, "spec": device_pod("p")["spec"]}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.post(deployments, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})
    assert calls() == VALIDATE
    for change in ({"metadata": {"labels": {"touched": "yes"}}}, {"spec": {"replicas": 5}}):
        assert api.merge(f"{deployments}/d", change).status == 200
    assert calls() == {}
    image = {"containers": [template["spec"]["containers"][0] | {"image": "newer"}]}
    assert api.merge(f"{deployments}/d", {"spec": {"template": {"spec": image}}}).status == 200
    assert calls() == VALIDATE


def test_a_huge_pod_stays_within_the_cost_limit_of_the_conditions(api: Api, namespace: str, calls: Calls):
    """The API server limits the cost of a condition, and rejects any pod that exceeds it. So a huge pod is sent unseen."""
    env = [{"name": f"VARIABLE_{number}", "value": "x"} for number in range(5_000)]
    resources = {f"example.org/device-{number}": "1" for number in range(2_000)}
    huge = pod("huge", resources, env=env)
    huge["spec"]["containers"] += [{"name": f"more-{number}", "image": "i", "env": env[:100]} for number in range(100)]
    assert api.post(pods(namespace), huge).status == 201
    assert calls() == MUTATE | VALIDATE
