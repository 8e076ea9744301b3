"""Reviews to send: the recorded ones, and small ones."""

import base64
import json
from typing import Any

from tests.server.client import Response

VGPU = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"}


def review(uid: str = "u-1", version: str = "v1", spec: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    """A review of a pod that requests one slice."""
    pod_spec = {"containers": [{"name": "main", "resources": {"limits": VGPU, "requests": VGPU}}]} | (spec or {})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod_spec}
    defaults = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "default",
        "name": "pod",
        "userInfo": {"username": "alice"},
        "object": pod,
    }
    return {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": defaults | request}


GOOD = json.dumps(review()).encode()


def pod_spec_of(amounts: dict[str, str], **container: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "resources": {"limits": amounts, "requests": amounts}, **container}]}


DENIED = pod_spec_of({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "101"})


def admission_response(response: Response) -> dict[str, Any]:
    """The `response` of a review; fails unless the server reviewed the request."""
    assert response.status == 200, response.body
    assert response.headers["content-type"] == "application/json"
    document = response.json()
    assert document["kind"] == "AdmissionReview"
    verdict: dict[str, Any] = document["response"]
    assert isinstance(verdict["allowed"], bool)
    assert ("patch" in verdict) == ("patchType" in verdict)
    return verdict


def denying_rules(verdict: dict[str, Any]) -> list[str]:
    """The rules that deny a request; empty if it is allowed."""
    causes = verdict.get("status", {}).get("details", {}).get("causes", [])
    return [cause["reason"] for cause in causes]


def patch(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(verdict["patch"]))
    return operations


def refusal(response: Response, status: int) -> str:
    """The message of a v1 Status; fails if the response has a verdict."""
    assert response.status == status, (response.status, response.body)
    document = response.json()
    assert (document["kind"], document["apiVersion"], document["status"]) == ("Status", "v1", "Failure")
    assert document["code"] == status
    assert b'"allowed"' not in response.body
    message: str = document["message"]
    assert message.startswith("vgpu-webhook: ")
    return message
