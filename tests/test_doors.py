"""Random JSON at both doors: every answer is a verdict or a refusal to give one, never a crash, never an accident."""

import copy
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import json_values, pods
from webhook.cli.main import main
from webhook.cluster.files import load_device_config, load_nodes
from webhook.cluster.snapshot import build_snapshot
from webhook.observe.audit import AuditLog
from webhook.observe.metrics import Metrics
from webhook.policy import default_policy
from webhook.server.admission import HALVES, Admission
from webhook.server.state import State

DATA = Path(__file__).parent / "data"
FLEET, CONFIG = DATA / "fleets" / "mixed.yaml", DATA / "config" / "device-config.yaml"
RECORDED = [json.loads(path.read_bytes()) for path in sorted((DATA / "reviews").glob("*.json"))]

hostile = st.sampled_from(
    [None, "", "text", [], {}, [None], [[]], {"a": None}, -1, 0, 10**30, 1.5, "1e400", "\x00\u2028", True]
)


@pytest.fixture(scope="module")
def admission():
    config = load_device_config(CONFIG)
    metrics = Metrics()
    snapshot = build_snapshot(config, default_policy(), load_nodes(FLEET, config))
    return Admission(State(snapshot), AuditLog(os.devnull, metrics.audit_failed), metrics)


@st.composite
def mangled(draw):
    """A recorded review in which one place holds something else."""
    review = copy.deepcopy(draw(st.sampled_from(RECORDED)))
    here, steps = review, draw(st.integers(1, 9))
    for _ in range(steps):
        places = list(here) if isinstance(here, dict) else list(range(len(here)))
        place = draw(st.sampled_from(places))
        if not isinstance(here[place], (dict, list)) or not here[place]:
            break
        parent, here = here, here[place]
    else:
        parent[place] = draw(hostile | json_values)
        return review
    here[place] = draw(hostile | json_values)
    return review


def check(admission, path, body):
    """A verdict with the uid echoed, or a Status that says why there is none."""
    code, answer = admission.answer(path, body)
    answer = orjson.loads(answer)
    if code == 200:
        request = orjson.loads(body)["request"]
        assert answer["response"]["uid"] == request["uid"]
        assert isinstance(answer["response"]["allowed"], bool)
    else:
        assert code == 400
        assert answer["kind"] == "Status"
        assert answer["message"]
        assert "response" not in answer


@given(review=mangled(), path=st.sampled_from(sorted(HALVES)))
def test_a_mangled_review_gets_a_verdict_or_a_reason(admission, review, path):
    check(admission, path, json.dumps(review).encode())


@given(document=json_values | st.dictionaries(st.sampled_from(["apiVersion", "kind", "request"]), json_values))
def test_json_that_is_no_review_gets_no_verdict(admission, document):
    code, answer = admission.answer("/validate", json.dumps(document).encode())
    assert code == 400
    assert b"allowed" not in answer


@given(body=st.binary(max_size=200))
def test_bytes_get_no_verdict(admission, body):
    code, answer = admission.answer("/mutate", body)
    assert code == 400
    assert b'"allowed"' not in answer


@given(document=mangled() | pods() | json_values, output=st.sampled_from(["text", "json", "yaml", "patch"]))
def test_the_offline_door_ends_with_a_code(tmp_path_factory, document, output):
    path = tmp_path_factory.getbasetemp() / "document.json"
    path.write_text(json.dumps(document))
    arguments = ["review", "--fleet", str(FLEET), "--device-config", str(CONFIG), "-o", output, str(path)]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as complaints:
        code = main(arguments)
    assert code in (0, 1, 2)
    assert (code == 2) == bool(complaints.getvalue())
