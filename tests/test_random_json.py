"""Random JSON for the server and the command: the result is a verdict or an error message, never a crash."""

import json
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.questions import needs
from tests.reviewing import DATA, RECORDED
from tests.strategies import json_values, mangled, pods
from webhook.audit.writer import AuditLogWriter
from webhook.cli.main import main
from webhook.policy.policy import default_policy
from webhook.server.admission import ENDPOINTS, Admission
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.settings import table
from webhook.settings.snapshot import SnapshotInputs, read_nodes

FLEET, CONFIG = DATA / "fleets" / "every-family.yaml", DATA / "config" / "device-config.yaml"
RECORDED_REVIEWS = [json.loads(path.read_bytes()) for path in RECORDED]


@pytest.fixture(scope="module")
def admission():
    config = table.DEVICE_CONFIG.load(CONFIG)
    metrics = Metrics()
    snapshot = SnapshotInputs(config, default_policy(), read_nodes(table.FLEET.load(FLEET), config)).snapshot()
    return Admission(ServerState(snapshot), [AuditLogWriter(os.devnull, metrics.audit_failed)], metrics)


def review_of(pod):
    """A review of a pod as the API server sends it."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    admission_request = {
        "uid": "uid",
        "kind": kind,
        "operation": "CREATE",
        "namespace": "a",
        "userInfo": {},
        "object": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": admission_request}


reviews = mangled(st.sampled_from(RECORDED_REVIEWS)) | mangled(pods()).map(review_of)


def check(admission, path, body):
    """Check that the response is a verdict with the same uid, or a Status with a message."""
    code, response = admission.answer(path, body, client_verified=False)
    response = orjson.loads(response)
    if code == 200:
        request = orjson.loads(body)["request"]
        assert response["response"]["uid"] == request["uid"]
        assert isinstance(response["response"]["allowed"], bool)
    else:
        assert code == 400
        assert response["kind"] == "Status"
        assert response["message"]
        assert "response" not in response


@given(review=reviews, path=st.sampled_from(sorted(ENDPOINTS)))
def test_a_mangled_review_gets_a_verdict_or_an_error(admission, review, path):
    check(admission, path, json.dumps(review).encode())


@given(document=reviews | pods() | json_values, output=st.sampled_from(["text", "json", "yaml", "patch"]))
@needs("review")
def test_the_command_exits_with_a_documented_code(tmp_path_factory, document, output):
    path = tmp_path_factory.getbasetemp() / "document.json"
    path.write_text(json.dumps(document))
    arguments = ["review", "--fleet", str(FLEET), "--device-config", str(CONFIG), "-o", output, str(path)]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as stderr:
        code = main(arguments)
    assert code in (0, 1, 2)
    assert (code == 2) == bool(stderr.getvalue())
