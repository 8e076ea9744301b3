"""Reads an AdmissionReview into a `Request`, and writes the `Answer` to it."""

import json
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from webhook.errors import NotAReview, NotJson, RequestError, TooLarge, json_type
from webhook.mistakes import mistake_at
from webhook.wire.models import ENVELOPE, Request

API_VERSION = "admission.k8s.io/v1"

# Commas, colons and opening brackets of a body. The time to parse it grows with its values, and blocks everything else.
# Without managedFields, the densest pod that an API server accepts has fewer, including its previous version.
MAX_STRUCTURAL_CHARS = 310_000
# Of a body whose keys must be compared one by one, which takes several times as long.
MAX_STRUCTURAL_CHARS_IN_DOUBT = 100_000
_MARKS = (b",", b":", b"{", b"[")

# The size limit of such a body: with 32-bit characters, its strings take four times as much memory.
MAX_BYTES_IN_DOUBT = 2 << 20

MAX_ESCAPES = 500_000  # of a body in which they are replaced

_MANAGED_FIELDS = b'"managedFields":['

# Go escapes these characters in strings, and orjson does not.
_ESCAPED_BY_GO = {
    b"\\u003c": b"<",
    b"\\u003e": b">",
    b"\\u0026": b"&",
    b"\\u2028": "\u2028".encode(),
    b"\\u2029": "\u2029".encode(),
}

_NOT_A_REVIEW = "not an AdmissionReview that can be answered"
_TOO_DEEP = "the body is not JSON that can be read: it is nested too deeply"


class Answer(NamedTuple):
    """The answer to a review.

    Attributes:
        allowed: whether the object is admitted.
        operations: the JSON patch; empty for none.
        message: why the object is refused, for people; may have several lines.
        causes: (reason, field, message) of each finding that refuses it.
        warnings: each of one line.
        audit: annotations for the API server's own audit log.
    """

    allowed: bool
    operations: Sequence[dict[str, Any]] = ()
    message: str = ""
    causes: Sequence[tuple[str, str, str]] = ()
    warnings: Sequence[str] = ()
    audit: dict[str, str] | None = None


def decode(body: bytes) -> Request:
    """Read one AdmissionReview.

    Of a body with too many values, only the part before the object is read. That part has the uid, so the answer can be a
    denial, which applies under any failurePolicy. After an HTTP error, the failurePolicy `Ignore` would admit the pod.

    Raises:
        NotJson: not one JSON document: malformed, NaN, too deep, numbers beyond a double, duplicate keys.
        NotAReview: JSON, but not an AdmissionReview with a uid and a request.
        TooLarge: it has too many values, and no uid before them.
    """
    if not _has_more_structural_chars(body, MAX_STRUCTURAL_CHARS):
        return to_request(parse_json(body), len(body))
    lean = _without_managed_fields(body)
    if not _has_more_structural_chars(lean, MAX_STRUCTURAL_CHARS):
        return to_request(parse_json(lean), len(body))
    problem = f"it has more than {MAX_STRUCTURAL_CHARS} commas, colons and brackets, managedFields aside"
    try:
        head = to_request(parse_json(body[: body.index(b',"object":')] + b"}}"), len(body))
    except (ValueError, RequestError) as error:
        raise TooLarge(f"the body is too large: {problem}; send fewer values") from error
    return head._replace(too_large=problem)


def parse_json(body: bytes) -> Any:
    """Parse one JSON document strictly.

    Raises:
        NotJson: it is not JSON, or an object in it has a duplicate key, so that two parsers could read two different pods.
        TooLarge: it has too many values to look for such a key, and is not formatted as an API server formats it.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"the body is not JSON: {error}") from error
    try:
        spelled = orjson.dumps(document)
    except TypeError as error:  # orjson reads deeper documents than it can write into an answer
        raise NotJson(_TOO_DEEP) from error
    # If writing the document again gives the same bytes, as for all that API servers send, it has no duplicate keys.
    if spelled != body.rstrip() and spelled != _without_escapes(body):
        if len(spelled) > MAX_BYTES_IN_DOUBT or _has_more_structural_chars(body, MAX_STRUCTURAL_CHARS_IN_DOUBT):
            raise TooLarge(
                f"the body has more than {MAX_BYTES_IN_DOUBT} bytes or {MAX_STRUCTURAL_CHARS_IN_DOUBT} commas, colons and "
                "brackets, and is not spelled as an API server spells; send less, or JSON without spaces"
            )
        try:
            json.loads(body, object_pairs_hook=unique_keys)
        except RecursionError as error:
            raise NotJson(_TOO_DEEP) from error
    return document


def to_request(document: Any, size: int = 0) -> Request:
    """Check the envelope of a parsed review, whose body had so many bytes.

    Raises:
        NotAReview: the message names the field.
    """
    try:
        review = ENVELOPE.validator.validate_python(document)  # the adapter's own method takes half as long again
    except ValidationError as error:
        first = mistake_at(error.errors(include_url=False)[0], "the body")
        raise NotAReview(f"{_NOT_A_REVIEW}: {first}") from error
    request = review["request"]
    kind, user = request["kind"], request.get("userInfo", {})
    return Request(
        uid=request["uid"],
        api_version=review["apiVersion"],
        operation=request["operation"],
        group=kind.get("group", ""),
        kind=kind["kind"],
        sub_resource=request.get("subResource", ""),
        namespace=request.get("namespace", ""),
        name=request.get("name", ""),
        user=user.get("username", ""),
        dry_run=bool(request.get("dryRun")),
        object=_object(request, "object"),
        old_object=_object(request, "oldObject"),
        size=size,
        groups=user.get("groups", ()),
    )


def creation(uid: str, api_version: str, kind: str, namespace: str, raw: dict[str, Any]) -> Request:
    """The request that creates an object of this apiVersion and kind, without a user."""
    group = api_version.rpartition("/")[0]
    return Request(uid, API_VERSION, "CREATE", group, kind, "", namespace, "", "", False, raw, None)


def _object(request: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    value = request.get(field)
    if value is None or isinstance(value, dict):
        return value
    raise NotAReview(f"{_NOT_A_REVIEW}: request.{field}: must be an object, not {json_type(value)}")


def encode(request: Request, answer: Answer) -> bytes:
    """Write the AdmissionReview that answers a request."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": answer.allowed}
    if answer.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = b2a_base64(orjson.dumps(answer.operations), newline=False).decode()
    if not answer.allowed:
        causes = [{"reason": reason, "field": field, "message": text} for reason, field, text in answer.causes]
        response["status"] = {
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": answer.message,
            "details": {"causes": causes},
        }
    if answer.warnings:
        response["warnings"] = answer.warnings
    if answer.audit:
        response["auditAnnotations"] = answer.audit
    return orjson.dumps({"apiVersion": request.api_version, "kind": "AdmissionReview", "response": response})


def status(code: int, reason: str, message: str) -> bytes:
    """A Kubernetes v1 Status: the one body whose message the API server passes on to the user."""
    return orjson.dumps(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        | {"message": message, "reason": reason, "code": code}
    )


def error_status(error: RequestError) -> bytes:
    """The Status for a body that cannot be reviewed."""
    return status(error.status, error.reason, f"vgpu-webhook: {error}")


def _has_more_structural_chars(body: bytes, most: int) -> bool:
    if len(body) > most:
        for mark in _MARKS:  # in four steps, between which other threads can run
            most -= body.count(mark)
            if most < 0:
                return True
    return False


def _without_managed_fields(body: bytes) -> bytes:
    """Empty the managedFields in a body: no rule reads them, and they can be half of a large object.

    A match of _MANAGED_FIELDS is not in a string, because quotes in strings are escaped. The list has no lists in it, so it
    ends at the first bracket outside of strings. If it is unclear where that is, the list stays.
    """
    kept: list[bytes] = []
    copied = 0  # the bytes before this position are in `kept`, or left out
    start = 0
    for _ in ("object", "oldObject"):
        place = body.find(_MANAGED_FIELDS, start)
        if place < 0:
            break
        start = place + len(_MANAGED_FIELDS)
        end = body.find(b"]", start)
        if end > 0 and _is_flat(body, start, end):
            kept.append(body[copied:start])
            copied = end
    return b"".join([*kept, body[copied:]])


def _is_flat(body: bytes, start: int, end: int) -> bool:
    """Whether this part of a body surely has no opening bracket and no unfinished string."""
    if body.find(b"[", start, end) >= 0 or body.find(b"\\\\", start, end) >= 0:
        return False
    quotes = body.count(b'"', start, end) - body.count(b'\\"', start, end)
    return quotes % 2 == 0


def _without_escapes(body: bytes) -> bytes:
    """The body without the escapes that Go writes and orjson does not.

    If the result equals what orjson writes, the body has no duplicate keys, because replacing an escape in a string does not
    change the number of keys. An escape after another backslash is not one; replacing it gives invalid JSON.
    """
    plain = body.rstrip()
    if b"\\u" in plain and plain.count(b"\\u") <= MAX_ESCAPES:
        for escape, character in _ESCAPED_BY_GO.items():
            plain = plain.replace(escape, character)
    return plain


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of its pairs, for a JSON decoder's `object_pairs_hook`.

    Raises:
        NotJson: a key is there twice.
    """
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise NotJson(f"the key {twice[:60]!r} appears twice in one object, so two readers could see different values")
    return unique
