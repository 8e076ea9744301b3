"""Where the operations are found."""

import json
from collections.abc import Sequence
from typing import Any

import orjson
from flask import Blueprint, Response, request
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

from webhook.console.api import decisions, explain, fleet, health, replay, review, rules
from webhook.console.api.openapi import PREFIX, document
from webhook.console.api.operation import Answer, Method, Operation
from webhook.console.state import State
from webhook.mistakes import mistake_in_json

OPERATIONS: Sequence[Operation[Any, Any]] = (
    *review.OPERATIONS,
    *explain.OPERATIONS,
    *decisions.OPERATIONS,
    *fleet.OPERATIONS,
    *replay.OPERATIONS,
    *rules.OPERATIONS,
    *health.OPERATIONS,
)


def blueprint(state: State) -> Blueprint:
    """The API of a console."""
    api = Blueprint("api", __name__, url_prefix=PREFIX)
    described = orjson.dumps(document(OPERATIONS))
    for operation in OPERATIONS:
        api.add_url_rule(operation.path, operation.id, _view(operation, state), methods=[operation.method])

    @api.get("/openapi.json")
    def openapi() -> Response:
        return _json(described)

    return api


def answer(found: Answer) -> bytes:
    """An answer as JSON."""
    values = found.model_dump(mode="json", by_alias=True)
    try:
        return orjson.dumps(values)
    except TypeError:  # a number of more than 64 bits, or half a surrogate pair: somebody's text, but JSON all the same
        return json.dumps(values, separators=(",", ":")).encode()


def _view(operation: Operation[Any, Any], state: State) -> Any:
    def view(**parts: Any) -> Response:
        values = _body() if operation.method is Method.POST else operation.from_query(request.args)
        if not parts.keys().isdisjoint(values):
            raise BadRequest(f"{', '.join(sorted(parts))}: stands in the path already")
        return _json(answer(operation.ask(state, {**values, **parts})))

    return view


def _body() -> dict[str, Any]:
    if request.mimetype != "application/json":
        raise UnsupportedMediaType("send the question as application/json")
    try:
        found = orjson.loads(request.get_data(cache=False))
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {mistake_in_json(error)}") from error
    if not isinstance(found, dict):
        raise BadRequest("the body is no JSON object")
    return found


def _json(data: bytes) -> Response:
    return Response(data, mimetype="application/json")
