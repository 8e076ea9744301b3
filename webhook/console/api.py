"""The REST API: what an operation is, how it reads a request and answers with JSON, and its OpenAPI document.

An operation is a function of the console's state and a request model. Its id, summary, checks and schemas follow from the
function's name, docstring and type hints.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, get_origin, get_type_hints

import orjson
from flask import Blueprint, Response, request
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, HTTPException, InternalServerError, ServiceUnavailable, UnsupportedMediaType

from webhook.console.guard import computing
from webhook.console.state import ConsoleState
from webhook.console.texts import brief
from webhook.errors import RequestError, StoreError, WebhookError
from webhook.mistakes import mistake_in_json, mistake_in_value
from webhook.product import product_version

PREFIX = "/api/v1"
MEDIA_TYPE = "application/json"
UNPROCESSABLE = 422
MAX_MESSAGE = 2000  # characters
MAX_TEXT = 2000  # characters of a text in a response
MAX_ITEMS = 1000  # of a list in a response

_PART = re.compile(r"<(?:\w+:)?(\w+)>")  # of a route


class RequestModel(BaseModel):
    """The parameters of an operation: a query string or a JSON body. Unknown ones are refused, so that no typo is ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    def query(self, **changes: Any) -> dict[str, Any]:
        """The parameters that differ from their defaults, for a link.

        Args:
            changes: other values for some of them; None leaves one out.
        """
        found = self.model_dump(by_alias=True, exclude_defaults=True) | changes
        spelled = {key: str(value).lower() if isinstance(value, bool) else value for key, value in found.items()}
        return {key: value for key, value in spelled.items() if value is not None}


class ResponseModel(BaseModel):
    """What an operation returns, or a part of it. Dataclasses inside it are written in camel case too."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, arbitrary_types_allowed=True
    )


class Problem(ResponseModel):
    """Why an operation failed.

    Attributes:
        status: the HTTP status.
        reason: the status in words.
        message: what is wrong and what to do.
    """

    status: int
    reason: str
    message: str


RequestT = TypeVar("RequestT", bound=RequestModel)
ResponseT = TypeVar("ResponseT", bound=ResponseModel)


@dataclass(frozen=True, slots=True)
class Operation(Generic[RequestT, ResponseT]):
    """One operation. No operation changes anything.

    Attributes:
        method: `GET` or `POST`.
        path: below /api/v1; its `<parts>` are fields of the request.
        perform: makes the response.
        request, response: the models.
        heavy: it computes for long, so that few may run at a time.
        whole: its JSON has every text in full, because another limit bounds them.
    """

    method: str
    path: str
    perform: Callable[[ConsoleState, RequestT], ResponseT]
    request: type[RequestT]
    response: type[ResponseT]
    heavy: bool = False
    whole: bool = False

    @property
    def id(self) -> str:
        """The operation's name, in camel case."""
        return to_camel(self.perform.__name__)

    @property
    def summary(self) -> str:
        """What it returns, in a sentence."""
        return (self.perform.__doc__ or "").partition("\n")[0].removesuffix(".")

    def run(self, state: ConsoleState, parameters: RequestT) -> ResponseT:
        """Perform it, as soon as there is room for it.

        Raises:
            HTTPException: there is no such thing, or too many requests compute at the moment.
            WebhookError: the request cannot be used.
        """
        if not self.heavy:
            return self.perform(state, parameters)
        with computing():
            return self.perform(state, parameters)

    def parse(self, values: Mapping[str, Any]) -> RequestT:
        """Check the parameters.

        Raises:
            BadRequest: the message names the first mistake.
        """
        try:
            return self.request.model_validate(values)
        except ValidationError as error:
            raise BadRequest(_first_mistake(error, self.request)) from error

    def parse_query(self, query: MultiDict[str, str], **more: Any) -> RequestT:
        """Check the parameters of a query string or a form, in which an empty field means nothing.

        Args:
            query: the query string or form.
            more: parameters that come from elsewhere, as from the path.

        Raises:
            BadRequest: a parameter is wrong, or is given twice where one value is expected: programs disagree on which
                of the two counts.
        """
        found: dict[str, Any] = {}
        fields = {field.alias or name: field for name, field in self.request.model_fields.items()}
        for key, values in query.lists():
            given = [value for value in values if value != ""]
            if key in more:
                raise BadRequest(f"{key}: the path names it already; leave it out of the query")
            if key not in fields:
                found[key] = values[-1]  # `parse` refuses it
            elif get_origin(fields[key].annotation) is tuple:
                found[key] = given
            elif len(given) > 1:
                raise BadRequest(f"{key}: given {len(given)} times; write it once")
            elif given:
                found[key] = given[0]
        return self.parse(found | more)


def operation(
    method: str, path: str, *, heavy: bool = False, whole: bool = False
) -> Callable[[Callable[[ConsoleState, RequestT], ResponseT]], Operation[RequestT, ResponseT]]:
    """Make an operation of a function that takes the state and a request, and returns a response."""

    def make(perform: Callable[[ConsoleState, RequestT], ResponseT]) -> Operation[RequestT, ResponseT]:
        _, parameters, response = get_type_hints(perform).values()
        return Operation(method, path, perform, parameters, response, heavy, whole)

    return make


class ConsolePage(NamedTuple):
    """A page: its method, its path, the name by which links find it, and what answers it."""

    method: str
    path: str
    endpoint: str
    view: Callable[..., Any]


class Section(NamedTuple):
    """What a question adds to the console.

    Attributes:
        operations: of the API.
        pages: the first of them is the one in the menu.
        menu: its name there; empty if the menu does not have it.
    """

    operations: tuple[Operation[Any, Any], ...]
    pages: tuple[ConsolePage, ...]
    menu: str = ""


def describe_error(error: WebhookError | HTTPException) -> tuple[int, str]:
    """The HTTP status of an error, and its message."""
    if isinstance(error, HTTPException):
        return error.code or InternalServerError.code, (error.description or error.name)[:MAX_MESSAGE]
    if isinstance(error, StoreError):
        return ServiceUnavailable.code, str(error)[:MAX_MESSAGE]
    return error.status if isinstance(error, RequestError) else UNPROCESSABLE, str(error)[:MAX_MESSAGE]


def _first_mistake(error: ValidationError, model: type[RequestModel]) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:100] or "the request"
    if first["type"] != "extra_forbidden":
        return f"{place}: {mistake_in_value(first)}"
    keys = [field.alias or name for name, field in model.model_fields.items()]
    near = get_close_matches(place, keys, 1)
    known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(keys)) or 'none'}"
    return f"{place}: no such key; {known}"


# --- routes ---------------------------------------------------------------------------------------------------------


def blueprint(operations: Iterable[Operation[Any, Any]], state: ConsoleState) -> Blueprint:
    """The routes of some operations, and of their description."""
    listed = list(operations)
    api = Blueprint("api", __name__, url_prefix=PREFIX)
    for each in listed:
        api.add_url_rule(each.path, each.id, _view(each, state), methods=[each.method])
    described = cache(lambda: orjson.dumps(openapi_document(listed)))
    api.add_url_rule("/openapi.json", "openapi", lambda: Response(described(), mimetype=MEDIA_TYPE))
    return api


def to_json(response: ResponseModel, *, whole: bool = False) -> bytes:
    """A response as JSON, with at most MAX_ITEMS of each list and MAX_TEXT characters of each text unless it is whole."""
    values = response.model_dump(mode="json", by_alias=True)
    values = values if whole else brief(values, MAX_TEXT, MAX_ITEMS)
    try:
        return orjson.dumps(values)
    except TypeError:  # a number of more than 64 bits or half a surrogate pair, which a user's JSON may hold
        return json.dumps(values, separators=(",", ":")).encode()


def _view(each: Operation[Any, Any], state: ConsoleState) -> Callable[..., Response]:
    def view(**parts: Any) -> Response:
        parameters = each.parse(_body()) if each.method == "POST" else each.parse_query(request.args, **parts)
        return Response(to_json(each.run(state, parameters), whole=each.whole), mimetype=MEDIA_TYPE)

    return view


def _body() -> dict[str, Any]:
    if request.mimetype != MEDIA_TYPE:
        raise UnsupportedMediaType(f"send the request body as {MEDIA_TYPE}")
    try:
        found = orjson.loads(request.get_data(cache=False))
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {mistake_in_json(error)}") from error
    if not isinstance(found, dict):
        raise BadRequest("the body is not a JSON object")
    return found


# --- OpenAPI --------------------------------------------------------------------------------------------------------


def openapi_document(operations: Iterable[Operation[Any, Any]]) -> dict[str, Any]:
    """The OpenAPI document of some operations."""
    listed = list(operations)
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(Problem, "serialization")]
    for each in listed:
        models += [(each.request, "validation"), (each.response, "serialization")]
    references, definitions = models_json_schema(models, by_alias=True, ref_template="#/components/schemas/{model}")
    schemas = definitions["$defs"]
    paths: dict[str, Any] = {}
    queries: set[str] = set()  # models of query strings, which parameters describe
    for each in listed:
        parameters = references[each.request, "validation"]
        described: dict[str, Any] = {
            "operationId": each.id,
            "summary": each.summary,
            "responses": {
                "200": _content(references[each.response, "serialization"], "the result"),
                "default": _content(references[Problem, "serialization"], "why there is no result"),
            },
        }
        if each.method == "POST":
            described["requestBody"] = {"required": True, **_content(parameters)}
        else:
            model = parameters["$ref"].rpartition("/")[2]
            described["parameters"] = _parameters(schemas[model], each.path)
            queries.add(model)
        paths.setdefault(_PART.sub(r"{\1}", each.path), {})[each.method.lower()] = described
    unused = queries
    while unused:  # also those that only fields outside of the JSON refer to
        schemas = {name: schema for name, schema in schemas.items() if name not in unused}
        written = repr((paths, schemas))
        unused = {name for name in schemas if f"/schemas/{name}'" not in written}
    return {
        "openapi": "3.1.0",
        "info": {"title": "vgpu-webhook console", "version": product_version()},
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _parameters(schema: Mapping[str, Any], path: str) -> list[dict[str, Any]]:
    parts = _PART.findall(path)
    return [
        {
            "name": name,
            "in": "path" if name in parts else "query",
            "required": name in schema.get("required", ()),
            "description": field.get("description", ""),
            "schema": {key: value for key, value in field.items() if key != "description"},
        }
        for name, field in schema.get("properties", {}).items()
    ]


def _content(reference: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    content = {"content": {MEDIA_TYPE: {"schema": reference}}}
    return {"description": description} | content if description else content
