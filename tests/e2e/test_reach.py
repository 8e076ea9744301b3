"""The requests that the API server sends to the webhook, as its matchConditions decide."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from tests.deploy.calling import called
from tests.deploy.clusters import WITHOUT_CONFIG, request
from tests.deploy.drawing import ONE_THING
from tests.e2e.api import Api, Response
from tests.e2e.cluster import Cluster
from tests.e2e.objects import binding, device_pod, namespace_objects, pod, pods
from tests.golden.cases import recorded, responses_to
from tests.reviewing import RECORDED
from tests.server.program import Program
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
    recorded_request = json.loads(file.read_bytes())["request"]
    golden = responses_to(CASES[file.stem])
    response = create(api, recorded_namespace, recorded_request)
    received = calls()
    if file.stem in NOT_SENT:
        assert received == {}
        assert not any(answer.keys() & {"patch", "warnings", "status"} for answer in golden.values()), (
            "the webhook would change or report something"
        )
    elif file.stem in INVALID:
        assert (response.status, received) == (422, {} if file.stem in ONLY_VALIDATED else MUTATE)
    else:
        is_pod = recorded_request["kind"]["kind"] == "Pod"
        assert received == (MUTATE | VALIDATE if is_pod and file.stem not in ONLY_VALIDATED else VALIDATE)
        assert_response(response, golden)
        if is_pod and response.status == 201:
            repaired = jsonpatch.apply_patch(recorded_request["object"], golden["mutate"].get("patch", []))
            assert_stored(response.body["spec"], repaired["spec"])


def with_image(manifest: dict[str, Any]) -> dict[str, Any]:
    """A pod of tests/deploy as it can be created."""
    spec = {key: [each | {"image": "cuda"} for each in containers] for key, containers in manifest["spec"].items()}
    return manifest | {"spec": spec | {"volumes": [{"name": "v", "emptyDir": {}}]}}


REPEATED = {f"{number} {json.dumps(each)}"[:150]: with_image(each) for number, each in enumerate(ONE_THING)}
REPEATED["no device"] = pod("plain", {"amd.com/gpu": "1", "huawei.com/npu": "1", "example.org/vgpu-num": "1"})


@pytest.mark.parametrize("manifest", REPEATED.values(), ids=REPEATED)
def test_the_api_server_evaluates_the_conditions_as_the_tests_do(
    manifest: dict[str, Any], api: Api, recorded_namespace: str, calls: Calls
):
    """tests/deploy/test_sent.py shows which pods are sent, with another library of CEL."""
    expected = {path: called(WITHOUT_CONFIG.entries, request(manifest), f"/{path}") for path in ("mutate", "validate")}
    response = api.post(f"{pods(recorded_namespace)}?dryRun=All", manifest)
    if response.status == 422:  # the API server itself rejects it, between the two
        del expected["validate"]
    assert calls() == {path: len(entries) for path, entries in expected.items() if entries}, response.message


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


def test_other_changes_and_a_deletion_are_not_sent(api: Api, namespace: str, calls: Calls):
    api.post(pods(namespace), device_pod("p"))
    assert calls() == MUTATE | VALIDATE
    assert api.merge(pods(namespace, "p"), {"metadata": {"labels": {"touched": "yes"}}}).status == 200
    assert api.merge(pods(namespace, "p", "status"), {"status": {"message": "touched"}}).status == 200
    assert api.post(f"{pods(namespace, 'p', 'binding')}", binding({"touched": "yes"})).status == 201
    assert api.delete(pods(namespace, "p")).status == 200
    assert calls() == {}


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
