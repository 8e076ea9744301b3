"""The admission contract between the API server and the webhook."""

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


@pytest.mark.parametrize(
    "media_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8;q=1"],
)
def test_the_media_type_may_have_parameters(connection: Connection, media_type: str):
    body = json.dumps(review()).encode()
    assert admission_response(connection.request("POST", "/validate", body, {"Content-Type": media_type}))
