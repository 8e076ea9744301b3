"""What reaches the webhook, and what never does: the matchConditions, evaluated by a real API server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from tests.e2e.api import Answer, Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import device_pod, furnished_namespace, pod, pods
from tests.golden.cases import RESPONSES
from tests.server.program import Program
from tests.server.reviews import RECORDED
from webhook.pod.quantity import parse

Calls = Callable[[], dict[str, int]]

NOT_ASKED = {"plain-pod", "specific-gpu-pod", "test-vgpu-compatible"}  # no device by the names of this cluster
ONLY_JUDGED = {"escape-env-no-gpu"}  # no device, but an environment variable to be warned of
INVALID = {"fractional-number", "requests-differ", "specific-gpu-pod"}  # refused by the API server itself

LATER = ("update", "ephemeral", "delete")  # what needs another request before it; made by hand below
CREATED = [file for file in RECORDED if not file.stem.endswith(LATER)]

MUTATE, VALIDATE = {"mutate": 1}, {"validate": 1}


@pytest.fixture(scope="module")
def recorded_namespace(cluster: Cluster) -> str:
    cluster.apply(*furnished_namespace("recorded"))
    return "recorded"


@pytest.fixture
def calls(webhook: Program) -> Calls:
    """How many calls of each endpoint came since it was asked last."""

    def total() -> dict[str, int]:
        return {end: int(webhook.metric("requests_total", endpoint=end)) for end in ("mutate", "validate")}

    before = total()

    def since() -> dict[str, int]:
        now = total()
        came = {end: now[end] - before[end] for end in now if now[end] != before[end]}
        before.update(now)
        return came

    return since


@pytest.mark.parametrize("file", CREATED, ids=[file.stem for file in CREATED])
def test_pods_that_request_devices_are_sent(file: Path, api: Api, recorded_namespace: str, calls: Calls):
    request = json.loads(file.read_bytes())["request"]
    golden = json.loads((RESPONSES / f"{file.stem}.json").read_text())
    answer = create(api, recorded_namespace, request)
    came = calls()
    if file.stem in NOT_ASKED:
        assert came == {}
        assert not any(half.keys() & {"patch", "warnings", "status"} for half in golden.values()), "something to say"
    elif file.stem in INVALID:
        assert (answer.status, came) == (422, MUTATE)
    else:
        is_pod = request["kind"]["kind"] == "Pod"
        assert came == (MUTATE | VALIDATE if is_pod and file.stem not in ONLY_JUDGED else VALIDATE)
        assert_answered(answer, golden)
        if is_pod and answer.status == 201:
            repaired = jsonpatch.apply_patch(request["object"], golden["mutate"].get("patch", []))
            assert_stored(answer.body["spec"], repaired["spec"])


def create(api: Api, namespace: str, request: dict[str, Any]) -> Answer:
    """Create a recorded object, as near to its author's words as the record lets tell."""
    metadata = {"name", "generateName", "labels", "annotations"}
    made = request["object"] | {
        "metadata": {key: value for key, value in request["object"]["metadata"].items() if key in metadata}
    }
    group, version, resource = (request["resource"][key] for key in ("group", "version", "resource"))
    root = f"/apis/{group}" if group else "/api"
    query = "?dryRun=All" if request.get("dryRun") else ""
    return api.post(f"{root}/{version}/namespaces/{namespace}/{resource}{query}", made)


def assert_answered(answer: Answer, golden: dict[str, Any]) -> None:
    """The API server passes on what the webhook answers."""
    warned = [warning for half in golden.values() for warning in half.get("warnings", [])]
    assert list(answer.warnings) == warned
    validated = golden["validate"]
    if validated["allowed"]:
        assert answer.status == 201, answer.message
    else:
        assert answer.status == 403, answer.message
        said = answer.message.partition(" denied the request: ")[2].split("\n")
        assert said[:-1] == validated["status"]["message"][:-1]


def assert_stored(stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """What the webhook made of the spec is there; the API server adds more."""
    assert stored["schedulerName"] == wanted["schedulerName"]
    assert [t for t in wanted["tolerations"] if t not in stored["tolerations"]] == []
    assert [amounts(c) for c in stored["containers"]] == [amounts(c) for c in wanted["containers"]]


def amounts(container: dict[str, Any]) -> dict[str, Any]:
    """Limits and requests, however they are spelled."""
    return {
        kind: {name: parse(amount) for name, amount in resources.items()}
        for kind, resources in container["resources"].items()
    }


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"volcano.sh/vgpu-num": "1"}, "volcano.sh/vgpu-number"),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu_memory": "3000"}, "volcano.sh/vgpu-memory"),
        ({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memery": "3000"}, "volcano.sh/vgpu-memory"),
    ],
)
def test_a_misspelt_name_is_refused(written: dict[str, str], meant: str, api: Api, namespace: str, calls: Calls):
    refused = api.post(pods(namespace), pod("misspelt", written))
    assert refused.status == 403
    assert f"but no node offers it; did you mean {meant}?\n" in refused.message
    assert calls() == MUTATE | VALIDATE
    spec = {"selector": {"matchLabels": {"app": "a"}}}
    spec["template"] = {"metadata": {"labels": {"app": "a"}}, "spec": pod("p", written)["spec"]}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "misspelt"}, "spec": spec}
    stored = api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", made)
    assert (stored.status, len(stored.warnings)) == (201, 1)
    assert stored.warnings[0].endswith(f"did you mean {meant}?")


def test_the_names_of_other_plugins_are_not_sent(api: Api, namespace: str, calls: Calls):
    foreign = {"nvidia.com/gpu": "1", "huawei.com/npu": "1", "example.org/vgpu-num": "1"}
    assert api.post(pods(namespace), pod("foreign", foreign)).status == 201
    assert calls() == {}


def test_a_label_and_a_deletion_are_not_sent(api: Api, namespace: str, calls: Calls):
    api.post(pods(namespace), device_pod("p"))
    assert calls() == MUTATE | VALIDATE
    assert api.merge(pods(namespace, "p"), {"metadata": {"labels": {"touched": "yes"}}}).status == 200
    assert api.merge(pods(namespace, "p", "status"), {"status": {"message": "touched"}}).status == 200
    assert api.delete(pods(namespace, "p")).status == 200
    assert calls() == {}


def test_an_ephemeral_container_is_sent_for_a_device_pod_only(api: Api, namespace: str, calls: Calls):
    for made in (device_pod("device"), pod("plain")):
        api.post(pods(namespace), made)
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


def test_a_huge_pod_stays_inside_the_budget_of_the_conditions(api: Api, namespace: str, calls: Calls):
    """The API server bounds what a condition may cost; beyond it the pod would be refused, whatever it requests."""
    env = [{"name": f"VARIABLE_{number}", "value": "x"} for number in range(5_000)]
    many = {f"example.org/device-{number}": "1" for number in range(2_000)}
    huge = pod("huge", many, env=env)
    huge["spec"]["containers"] += [{"name": f"more-{number}", "image": "i", "env": env[:100]} for number in range(100)]
    assert api.post(pods(namespace), huge).status == 201
    assert calls() == {}
