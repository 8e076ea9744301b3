"""The envelope is strict: a body that is not exactly one review gets no verdict."""

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.reviewing import RECORDED
from webhook.errors import NotAReview, NotJson, RequestError, TooLarge
from webhook.wire.codec import (
    MAX_STRUCTURAL_CHARS,
    MAX_STRUCTURAL_CHARS_IN_DOUBT,
    Answer,
    decode,
    encode,
    error_status,
    parse_json,
)
from webhook.wire.models import Request

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(request: Any = None, **changes: Any) -> dict[str, Any]:
    """A review as an API server sends it; a change of None removes the field."""
    usual = {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team-a",
        "userInfo": {"username": "alice"},
        "object": {"spec": {"containers": []}},
    }
    if request is None:
        request = {key: value for key, value in {**usual, **changes}.items() if value is not None}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def body(document: Any) -> bytes:
    return json.dumps(document).encode()


def with_object(text: str) -> bytes:
    """A valid review whose object has raw JSON text under `x`."""
    whole = json.dumps(review(object={"x": "HERE"}))
    return whole.replace('"HERE"', text).encode("utf-8", "surrogatepass")


# --- invalid JSON ---------------------------------------------------------------------------------------------------


@each_case(
    "raw, message",
    [
        (b"", "zero-length"),
        (b"   \n", "not JSON"),
        (b"hello", "not JSON"),
        (body(review())[:-1], "not JSON"),
        (body(review())[: len(body(review())) // 2], "not JSON"),
        (body(review()) * 2, "unexpected content after document"),
        (b"\xef\xbb\xbf" + body(review()), "byte order mark"),
        (body(review()).decode().encode("utf-16"), "not JSON"),
        (with_object("NaN"), "not JSON"),
        (with_object("Infinity"), "not JSON"),
        (with_object("01"), "not JSON"),
        (with_object("1" * 400), "infinity"),
        (with_object("1" * 5000), "infinity"),
        (with_object("1e400"), "infinity"),
        (with_object('"\\ud800"'), "surrogate"),
        (with_object('"\\udc00\\ud800"'), "surrogate"),
        (with_object('"\ud800"'), "UTF-8"),
        (with_object('"HERE"').replace(b"HERE", b"\xff\xfe"), "UTF-8"),
        (with_object('"HERE"').replace(b"HERE", b"\xc0\xaf"), "UTF-8"),
        (with_object('"a\nb"'), "not JSON"),
        (with_object("{'a': 1}"), "not JSON"),
        (with_object("[1,]"), "not JSON"),
    ],
)
def test_a_body_that_is_not_one_json_document_is_refused(raw: bytes, message: str):
    with pytest.raises(NotJson, match=message):
        decode(raw)


@each_case("depth", [252, 253, 300, 1000, 1022, 1023, 1100, 5000, 100_000])
@each_case("opening, closing", [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused(depth: int, opening: str, closing: str):
    with pytest.raises(NotJson, match=r"too deep|depth"):
        decode(with_object(opening * depth + "1" + closing * depth))


def test_nesting_that_fits_in_a_response_is_read():
    request = decode(with_object("[" * 200 + "]" * 200))
    answer = Answer(True, [{"op": "add", "path": "/x", "value": request.object["x"]}])
    assert json.loads(encode(request, answer))["response"]["patchType"] == "JSONPatch"


@pytest.mark.parametrize(
    "raw",
    [
        body(review()).replace(b'"kind": "AdmissionReview"', b'"kind": "AdmissionReview", "kind": "AdmissionReview"'),
        body(review()).replace(b'"uid": ', b'"uid": "other", "uid": '),
        with_object('{"a": 1, "a": 1}'),
        with_object('{"a": {}, "b": 1, "a": 2}'),
        with_object('[[{"b": {"a": 1, "a": 2}}]]'),
        with_object('{"a": 1, "\\u0061": 2}'),
        with_object('{"a": 1, "a": 1}').replace(b" ", b""),
    ],
)
def test_a_duplicate_key_is_refused_at_every_depth(raw: bytes):
    with pytest.raises(NotJson, match="appears twice in one object"):
        decode(raw)


GO_ESCAPES = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"})
go_texts = st.text(st.sampled_from('<>&\u2028\u2029\\"u003c:,{}☕\x01') | st.characters(codec="utf-8"), max_size=6)
go_documents = st.recursive(
    go_texts | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(go_texts, inner, max_size=3),
)


def as_go_encodes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).translate(GO_ESCAPES).encode()


@given(go_documents)
def test_the_escapes_of_go_are_read(document: Any):
    assert parse_json(as_go_encodes(document)) == document


@given(st.dictionaries(go_texts, go_texts, min_size=1, max_size=3), st.data())
def test_a_duplicate_key_is_refused_with_any_escapes(pairs: dict[str, str], data: st.DataObject):
    twice = data.draw(st.sampled_from(sorted(pairs)))
    encoded = data.draw(st.sampled_from([as_go_encodes({twice: ""}), orjson.dumps({twice: ""}), body({twice: ""})]))
    raw = as_go_encodes({"x": pairs})[:-2] + b"," + encoded.strip()[1:] + b"}"
    with pytest.raises(NotJson, match="appears twice in one object"):
        parse_json(raw)


@pytest.mark.parametrize("value", ["{}", "[]", "1", '{"a":1}', '""'])
def test_too_many_values_are_not_parsed(value: str):
    many = with_object("[" + ",".join([value] * MAX_STRUCTURAL_CHARS) + "]")
    decoded = decode(orjson.dumps(orjson.loads(many)))
    assert decoded.uid == UID
    assert decoded.object is None
    assert decoded.too_large == "it has more than 310000 commas, colons and brackets, managedFields aside"
    with pytest.raises(TooLarge, match=r"more than 310000 commas, colons and brackets, .*; send fewer values"):
        decode(many)  # not encoded as an API server encodes it, so the fields before the object are not found
    assert decode(with_object('"' + "x" * MAX_STRUCTURAL_CHARS * 2 + '"')).object


ETCD_BYTES = 3 << 19  # of one object in etcd, including metadata; managedFields are stored as JSON


def test_the_update_with_the_most_values_that_etcd_can_store_is_read():
    """Of all entries that rules count, variables from fields have the most values in the fewest bytes."""
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": "a"}}
    protobuf_bytes = (
        2 * 5 + len("E10000v1a") + 4 * 2
    )  # of one variable: tags and lengths, texts, and enclosing messages
    managed = {".": {}, "f:name": {}, "f:valueFrom": {".": {}, "f:fieldRef": {}}}
    entry_bytes = protobuf_bytes + len(orjson.dumps({'k:{"name":"E10000"}': managed}))
    env = [{"name": f"E{number}", "valueFrom": source} for number in range(10_000, 10_000 + ETCD_BYTES // entry_bytes)]
    owned = {f'k:{{"name":"{variable["name"]}"}}': managed for variable in env}
    fields = [{"manager": "kubectl", "fieldsType": "FieldsV1", "fieldsV1": {"f:env": owned}}]
    pod = {"metadata": {"managedFields": fields}, "spec": {"containers": [{"name": "c", "env": env}]}}
    assert len(orjson.dumps(pod)) > ETCD_BYTES
    large = orjson.dumps(review(operation="UPDATE", object=pod, oldObject=pod))
    marks = sum(map(large.count, (b",", b":", b"{", b"[")))
    assert marks > MAX_STRUCTURAL_CHARS, "managedFields count unless they are removed"
    decoded = decode(large)
    assert decoded.too_large == ""
    assert decoded.object == decoded.old_object == pod | {"metadata": {"managedFields": []}}


def lean(raw: str) -> Request:
    """Decode an object of raw JSON text, in an update that is too large unless managedFields are left out."""
    whole = orjson.dumps(review(object="HERE", oldObject={"managedFields": [1] * MAX_STRUCTURAL_CHARS}))
    decoded = decode(whole.replace(b'"HERE"', raw.encode()))
    assert decoded.old_object == {"managedFields": []}
    return decoded


@pytest.mark.parametrize("fields", ['["]",["a"]]', '[["a"],"b"]', '["\\\\","]"]', '["[x]"]'])
def test_managed_fields_with_an_uncertain_end_are_kept(fields: str):
    assert lean(f'{{"managedFields":{fields}}}').object == {"managedFields": json.loads(fields)}


def test_managed_fields_without_an_end_are_kept():
    with pytest.raises(NotJson):
        lean(r'{"managedFields":["\"],"b":"x"}')


def test_managed_fields_are_removed_but_not_inside_texts():
    text = '"managedFields":[1]'
    decoded = lean(f'{{"a":{json.dumps(text)},"managedFields":[{{"f:a":{{}}}}],"b":1}}')
    assert decoded.object == {"a": text, "managedFields": [], "b": 1}


def test_the_limit_is_lower_if_keys_are_compared_one_by_one():
    many = with_object("[" + ",".join(["1"] * MAX_STRUCTURAL_CHARS_IN_DOUBT) + "]")
    with pytest.raises(TooLarge, match="2097152 bytes or 100000 commas"):
        decode(many)
    with_escapes = ["if [ $a > 1 ] && true; then exit; fi <in", *[1] * MAX_STRUCTURAL_CHARS_IN_DOUBT]
    for spelled in (orjson.dumps(orjson.loads(many)), as_go_encodes(review(object={"args": with_escapes}))):
        assert decode(spelled).object


def test_the_same_key_in_two_objects_is_not_a_duplicate():
    assert decode(with_object('[{"a": 1}, {"a": {"a": 2}}]')).object == {"x": [{"a": 1}, {"a": {"a": 2}}]}


# --- JSON that is not a review --------------------------------------------------------------------------------------


@each_case(
    "document, place",
    [
        (None, "the body"),
        ([], "the body"),
        ("review", "the body"),
        ([review()], "the body"),
        ({}, "apiVersion"),
        ({"apiVersion": "v1", "kind": "Pod"}, "apiVersion"),
        ({**review(), "apiVersion": "admission.k8s.io/v2"}, "apiVersion"),
        ({**review(), "apiVersion": ["admission.k8s.io/v1"]}, "apiVersion"),
        ({**review(), "kind": "Pod"}, "kind"),
        ({**review(), "request": None}, "request"),
        ({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}, "request"),
        ({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {}}, "request"),
        (review(request=[]), "request"),
        (review(uid=None), "request.uid"),
        (review(uid=""), "request.uid"),
        (review(uid=7), "request.uid"),
        (review(uid="u" * 257), "request.uid"),
        (review(kind=None), "request.kind"),
        (review(kind="Pod"), "request.kind"),
        (review(kind={}), "request.kind.kind"),
        (review(kind={"kind": 1}), "request.kind.kind"),
        (review(kind={"kind": "Pod", "group": {}}), "request.kind.group"),
        (review(operation=None), "request.operation"),
        (review(operation="create"), "request.operation"),
        (review(operation=1), "request.operation"),
        (review(namespace=1), "request.namespace"),
        (review(name=[]), "request.name"),
        (review(subResource=1), "request.subResource"),
        (review(userInfo="alice"), "request.userInfo"),
        (review(userInfo={"username": 1}), "request.userInfo.username"),
        (review(dryRun="yes"), "request.dryRun"),
        (review(object=[]), "request.object"),
        (review(object="pod"), "request.object"),
        (review(oldObject=1), "request.oldObject"),
    ],
)
def test_a_document_that_is_not_a_review_is_refused_with_the_field(document: Any, place: str):
    with pytest.raises(NotAReview, match=rf"answered: {re.escape(place)}: "):
        decode(body(document))


def test_an_error_is_a_status_with_a_message():
    with pytest.raises(RequestError) as raised:
        decode(body(review(uid="")))
    assert json.loads(error_status(raised.value)) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "BadRequest",
        "code": 400,
        "message": "vgpu-webhook: not an AdmissionReview that can be answered: request.uid: "
        "it must be at least 1 character long, not ''",
    }


# --- reviews --------------------------------------------------------------------------------------------------------


@each_case("file", RECORDED, ids=lambda file: file.stem)
def test_a_recorded_review_is_read_and_its_object_is_unchanged(file: Path):
    sent = json.loads(file.read_bytes())["request"]
    request = decode(file.read_bytes())
    assert (request.uid, request.operation) == (sent["uid"], sent["operation"])
    assert (request.group, request.kind) == (sent["kind"]["group"], sent["kind"]["kind"])
    assert request.user == sent["userInfo"]["username"]
    assert request.sub_resource == sent.get("subResource", "")
    assert (request.namespace, request.name) == (sent.get("namespace", ""), sent.get("name", ""))
    assert request.dry_run is bool(sent.get("dryRun"))
    assert json.dumps(request.object) == json.dumps(sent["object"])
    assert json.dumps(request.old_object) == json.dumps(sent["oldObject"])


def test_a_name_may_be_longer_than_the_api_server_permits():
    """It calls the webhook first, and its own message says what is wrong."""
    assert decode(body(review(name="n" * 5000))).name == "n" * 5000


def test_unknown_fields_are_ignored():
    request = decode(body({**review(later={"a": 1}), "metadata": {}}))
    assert (request.uid, request.operation, request.user, request.dry_run) == (UID, "CREATE", "alice", False)


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_a_response_has_the_version_of_the_request(version: str):
    request = decode(body({**review(), "apiVersion": version}))
    assert json.loads(encode(request, Answer(True))) == {
        "apiVersion": version,
        "kind": "AdmissionReview",
        "response": {"uid": UID, "allowed": True},
    }
