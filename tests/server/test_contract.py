"""The admission contract between the API server and the webhook."""

import copy
import json

import pytest

from tests.server.client import Connection
from tests.server.reviews import DENIED, admission_response, patch, review


def test_a_pod_is_repaired_by_a_patch(connection: Connection):
    verdict = admission_response(connection.post("/mutate", review("u-7")))
    assert (verdict["uid"], verdict["allowed"], verdict["patchType"]) == ("u-7", True, "JSONPatch")
    assert {"op": "add", "path": "/spec/schedulerName", "value": "volcano"} in patch(verdict)
    assert set(verdict["auditAnnotations"]) == {"decision-id", "outcome", "rules"}
    assert verdict["auditAnnotations"]["outcome"] == "mutated"


def test_a_pod_that_needs_nothing_gets_no_patch(connection: Connection):
    first = admission_response(connection.post("/mutate", review()))
    assert first["patchType"]
    again = review()
    again["request"]["object"] = _patched(again["request"]["object"], patch(first))
    verdict = admission_response(connection.post("/mutate", again))
    assert verdict["allowed"]
    assert not {"patch", "patchType", "status", "warnings"} & set(verdict)


def test_a_denial_has_causes(connection: Connection):
    verdict = admission_response(connection.post("/validate", review("u-8", spec=DENIED)))
    assert (verdict["uid"], verdict["allowed"]) == ("u-8", False)
    assert "patch" not in verdict
    status = verdict["status"]
    assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")
    cause = next(cause for cause in status["details"]["causes"] if cause["reason"] == "cores-range")
    assert cause["field"] == "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"
    assert "101" in cause["message"]
    assert f"cores-range: {cause['message']}" in status["message"]
    assert verdict["auditAnnotations"]["decision-id"] in status["message"]
    assert verdict["auditAnnotations"]["outcome"] == "denied"


def test_warnings_are_single_short_lines(connection: Connection):
    many = [container for _ in range(40) for container in DENIED["containers"]]
    deployment = {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": many}}}}
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    verdict = admission_response(connection.post("/validate", review(kind=kind, object=deployment)))
    assert verdict["allowed"]
    assert len(verdict["warnings"]) > 1
    for warning in verdict["warnings"]:
        assert "\n" not in warning
        assert len(warning.encode()) <= 256


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_the_response_has_the_version_of_the_request(connection: Connection, path: str):
    for version in ("v1beta1", "v1"):
        response = connection.post(path, review(version=version))
        assert admission_response(response)["uid"] == "u-1"
        assert response.json()["apiVersion"] == f"admission.k8s.io/{version}"


OTHERS = {
    "another kind": {"kind": {"group": "", "version": "v1", "kind": "Service"}},
    "a pod of another group": {"kind": {"group": "example.org", "version": "v1", "kind": "Pod"}},
    "a subresource": {"subResource": "resize", "operation": "UPDATE"},
    "a deletion": {"operation": "DELETE", "object": None},
    "a connection": {"operation": "CONNECT", "subResource": "exec", "object": {"kind": "PodExecOptions"}},
    "a binding": {"subResource": "binding", "object": {"kind": "Binding"}},
    "a scale": {"kind": {"group": "autoscaling", "kind": "Scale"}, "operation": "UPDATE", "object": {}},
}


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("request_", OTHERS.values(), ids=OTHERS)
def test_requests_for_other_kinds_are_allowed_unchanged(connection: Connection, path: str, request_: dict):
    verdict = admission_response(connection.post(path, review(spec=DENIED, **copy.deepcopy(request_))))
    assert verdict == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;q=1"],
)
def test_the_media_type_may_have_parameters(connection: Connection, media_type: str):
    body = json.dumps(review()).encode()
    assert admission_response(connection.request("POST", "/validate", body, {"Content-Type": media_type}))


def _patched(pod: dict, operations: list[dict]) -> dict:
    import jsonpatch

    return jsonpatch.apply_patch(pod, operations)
