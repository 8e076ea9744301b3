"""An audit line has at most 32 KiB for every request, and can always be read as a decision."""

from dataclasses import fields
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from tests.audit.recording import recorded
from tests.docs.generated import DOCS
from tests.review.test_review import SNAPSHOTS
from tests.reviewing import request
from webhook.audit.decision import Decision, parse_decision
from webhook.audit.writer import MAX_LINE, Exchange, line
from webhook.outcome import MAX_FINDINGS, Outcome, Violation
from webhook.pod.size import MAX_CONTAINERS
from webhook.policy.schema import PolicyException
from webhook.review.endpoints import mutate, validate
from webhook.rules.choices import Level
from webhook.rules.registry import VALIDATIONS
from webhook.texts import cut
from webhook.wire import codec

EXCHANGE = Exchange("validate", 1)
LONG = 40_000  # bytes, more than a line has

letters = st.sampled_from(["a", "\x00", '"', "\\", "é", "漢", "😀", "\u2028"])
texts = st.builds(lambda letter, count: letter * count, letters, st.sampled_from([0, 1, 300, 5000, LONG]))
wire_texts = texts.map(lambda text: text[:1024])
rules = st.sampled_from([rule.id for rule in VALIDATIONS])
violations = st.builds(Violation, rules, st.sampled_from([Level.DENY, Level.WARN, Level.AUDIT]), texts, texts)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove"]), "path": texts}, optional={"value": texts | st.lists(texts, max_size=2)}
)


@given(st.data())
def test_a_line_is_limited_and_has_the_id_the_verdict_and_the_rules(data: st.DataObject):
    named = {key: data.draw(wire_texts) for key in ("namespace", "name", "kind", "user", "sub_resource")}
    uid = data.draw(texts)[:256]
    found = data.draw(st.lists(violations, max_size=MAX_FINDINGS))
    patch = data.draw(st.lists(operations, max_size=30))
    admission_request = request({"spec": {}}, uid=uid, **named)
    denied = any(violation.level is Level.DENY for violation in found)
    outcome = Outcome("0123456789ab", allowed=not denied, violations=tuple(found), operations=tuple(patch))
    written = line(EXCHANGE, admission_request, outcome, SNAPSHOTS[0])
    assert len(written) <= MAX_LINE
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    decision = parse_decision(written[:-1])
    assert decision is not None
    assert (decision.id, decision.uid, decision.allowed) == ("0123456789ab", uid, not denied)
    assert {(v.rule, v.level) for v in decision.findings} == {(v.rule, v.level) for v in found}


def test_each_key_of_a_line_is_in_the_documentation():
    table = (DOCS / "audit.md").read_text().partition("\nA line has at most")[0]
    assert [key for each in fields(Decision) if f"`{(key := to_camel(each.name))}`" not in table] == []


def test_a_line_has_what_the_request_says():
    fields = {
        "uid": "u-2",
        "operation": "UPDATE",
        "dry_run": True,
        "user": "ben",
        "namespace": "n",
        "kind": "Job",
        "name": "j",
    }
    pod = {"spec": {"containers": [container(0)]}}
    for fields["dry_run"] in (True, False):
        found = recorded(request(pod, pod, **fields), SNAPSHOTS[0])
        assert {key: getattr(found, key) for key in fields} == fields
        assert (found.endpoint, found.client_verified) == ("validate", False)


def test_the_rules_of_all_findings_fit_into_a_line():
    """Each rule at each level, more findings than a review has."""
    levels = (Level.DENY, Level.WARN, Level.AUDIT)
    found = [Violation(rule.id, level, "\x00" * LONG, "\x00" * LONG) for rule in VALIDATIONS for level in levels][:200]
    patch = ({"op": "replace", "path": "\x00" * LONG, "value": "\x00" * LONG},) * 100
    named = dict.fromkeys(("namespace", "name", "kind", "user", "sub_resource"), "\x00" * LONG)
    admission_request = request({"spec": {}}, uid="\x00" * 256, **named)
    excepted = PolicyException(
        namespace="a", names=["*"], rules=["fits-no-node"], until="9999-12-31", reason="\x00" * 200, owner="\x00" * 100
    )
    outcome = Outcome("0123456789ab", False, tuple(found), operations=patch)
    outcome = outcome._replace(exceptions=tuple((rule.id, excepted) for rule in VALIDATIONS))
    written = line(EXCHANGE, admission_request, outcome, SNAPSHOTS[0])
    assert len(written) <= MAX_LINE
    assert {finding["rule"] for finding in orjson.loads(written)["findings"]} == {v.rule for v in found}


def container(number: object, **more: object) -> dict[str, object]:
    return {"resources": {"limits": {"volcano.sh/vgpu-number": number}}} | more


X = "x" * LONG
PLACES = {
    "generateName": {"metadata": {"generateName": X}},
    "name": {"metadata": {"name": X}},
    "annotation": {"metadata": {"annotations": {"volcano.sh/vgpu-mode": X, "volcano.sh/" + X: "1"}}},
    "container": {"spec": {"containers": [container(0, name=X)]}},
    "quantity": {"spec": {"containers": [{"resources": {"requests": {"volcano.sh/vgpu-number": "9" * LONG}}}]}},
    "containers": {"spec": {"containers": [container("a", name=str(number)) for number in range(MAX_CONTAINERS)]}},
    "scheduler": {"spec": {"schedulerName": X, "containers": [container(1)]}},
}


@pytest.mark.parametrize("endpoint", [mutate, validate], ids=["mutate", "validate"])
@pytest.mark.parametrize("place", PLACES)
def test_a_long_text_in_a_pod_makes_neither_the_line_nor_the_response_too_long(place: str, endpoint: Any):
    admission_request = request(PLACES[place])
    outcome = endpoint(admission_request, SNAPSHOTS[0])
    assert len(line(EXCHANGE, admission_request, outcome, SNAPSHOTS[0])) <= MAX_LINE
    if not outcome.operations:  # a patch may repeat the text
        assert len(codec.encode(admission_request, outcome.answer())) <= MAX_LINE


@given(st.data(), st.integers(10, 2000))
def test_a_cut_text_is_not_longer_than_its_limit(data: st.DataObject, limit: int):
    text = data.draw(texts)
    kept = cut(text, limit)
    assert len(orjson.dumps(kept)) <= limit
    assert kept == text or text.startswith(kept.removesuffix("…"))
