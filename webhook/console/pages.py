"""A page is a function of the console's state and parameters that returns a value. One registration makes all of it.

The template draws the value at the page's address, and the API returns it as JSON at the same address below /api/v1: so a
program gets JSON, and errors as JSON, without asking for it. The model of the request follows from the function's signature,
the schema of the JSON from its return type, its name and summary from its name and docstring. No page changes anything.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_type_hints
from urllib.parse import urlencode

import orjson
from flask import Response, render_template, request, url_for
from pydantic import TypeAdapter
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    InternalServerError,
    RequestEntityTooLarge,
    ServiceUnavailable,
    UnsupportedMediaType,
)

from webhook.console.guard import TOO_LARGE, computing
from webhook.console.state import ConsoleState, Sources
from webhook.console.texts import brief
from webhook.errors import RequestError, StoreError, WebhookError
from webhook.inputs.unreadable import mistake_in_json
from webhook.output.json import ResponseModel
from webhook.parameters import Parameters, parameters_of
from webhook.settings.table import SETTING_NAMES

PREFIX = "/api/v1"
MEDIA_TYPE = "application/json"
UNPROCESSABLE = 422
MAX_MESSAGE = 2000  # characters
MAX_TEXT = 2000  # characters of a text in a response
MAX_ITEMS = 1000  # of a list in a response

Function = TypeVar("Function", bound=Callable[..., Any])
More = Callable[[ConsoleState, Any, Any], Mapping[str, Any]]


class Problem(ResponseModel):
    """Why a page has no value.

    Attributes:
        status: the HTTP status.
        reason: the status in words.
        message: what is wrong and what to do.
    """

    status: int
    reason: str
    message: str


class _Shown(NamedTuple):
    """What a template gets of a request.

    Attributes:
        given: the parameters as they were sent.
        wanted: the same, once they are checked.
        found: the value; None if there is a problem.
        mistakes: by parameter, why it was left out.
        problem: why there is no value.
        code: the HTTP status.
    """

    given: Mapping[str, Any]
    wanted: Any
    found: Any = None
    mistakes: Mapping[str, str] = MappingProxyType({})
    problem: str = ""
    code: int = 200


@dataclass(frozen=True)
class ConsolePage:
    """A page, and its JSON.

    Attributes:
        path: its address, which is also that of the JSON below /api/v1; its `<parts>` are parameters.
        perform: makes the value.
        template: draws it, with `found` for the value and `wanted` for the parameters; empty if there is only the JSON.
        more: what else the template shows, by the state, the parameters and the value.
        methods: `GET`, which reads a query, and `POST`, which reads a form or a JSON body.
        heavy: it computes for long, so that few may run at a time.
        whole: parts of its JSON that are complete, because other limits bound them.
        form: it shows an error as `problem` beside its form, which keeps its input.
        shows: what it shows that may be sample data.
    """

    path: str
    perform: Callable[..., Any]
    template: str = ""
    more: More = lambda *_: {}
    methods: Sequence[str] = ("GET",)
    heavy: bool = False
    whole: Collection[str] = ()
    form: bool = False
    shows: Collection[str] = ()

    @cached_property
    def parameters(self) -> type[Parameters]:
        """The model of its parameters."""
        return parameters_of(self.perform)

    @cached_property
    def value(self) -> TypeAdapter[Any]:
        """The type of its value."""
        return TypeAdapter(get_type_hints(self.perform, include_extras=True)["return"])

    @property
    def name(self) -> str:
        """By which links find it."""
        return str(getattr(self.perform, "__name__", ""))

    @property
    def summary(self) -> str:
        """What it returns, in a sentence."""
        return (self.perform.__doc__ or "").partition("\n")[0].removesuffix(".")

    def run(self, state: ConsoleState, wanted: Parameters) -> Any:
        """Make the value, as soon as there is room for it.

        Raises:
            HTTPException: there is no such thing, or too many requests compute at the moment.
            WebhookError: the request cannot be used.
        """
        values = {name: getattr(wanted, name, wanted) for name in list(get_type_hints(self.perform))[1:-1]}
        if not self.heavy:
            return self.perform(state, **values)
        with computing():
            return self.perform(state, **values)

    def answer(self, state: ConsoleState, **path: Any) -> Response:
        """The value as JSON."""
        values = _body() | path if request.method == "POST" else self.parameters.values(request.args.lists(), path)
        result = self.run(state, self.parameters.checked(values))
        parts = self.value.dump_python(result, mode="json", by_alias=True)
        return Response(to_json(parts, self.whole), mimetype=MEDIA_TYPE)

    def show(self, state: ConsoleState, **parts: Any) -> Response:
        """The value in its template.

        Raises:
            HTTPException, WebhookError: as `run`, unless there is a form; and if no field shows a mistake.
        """
        shown = self._tried(state, parts) if self.form else self._filtered(state, parts)
        others: dict[str, Any] = {"samples": [name for name in state.samples if name in self.shows]}
        if "GET" in self.methods and isinstance(shown.wanted, Parameters):
            others["as_json"] = link(f"api.{self.name}", Parameters.query(shown.wanted), *parts)
        others |= self.more(state, shown.wanted, shown.found)
        page = render_template(self.template, **(shown._asdict() | others))
        if hidden := [key for key in shown.mistakes if f'id="mistake-{key}"' not in page]:
            self.parameters.checked({**parts, **{key: shown.given[key] for key in hidden}})
        return Response(page, shown.code)

    def _filtered(self, state: ConsoleState, parts: Mapping[str, Any]) -> _Shown:
        """By what was sent. A filter that cannot be used is left out, and its field shows why."""
        given = self.parameters.values(_sent(), parts)
        mistakes = {key: why for key, why in self.parameters.mistakes(given).items() if key not in parts}
        wanted = self.parameters.checked({key: each for key, each in given.items() if key not in mistakes})
        code = RequestError.status if mistakes else 200
        return _Shown(given, wanted, self.run(state, wanted), mistakes, code=code)

    def _tried(self, state: ConsoleState, parts: Mapping[str, Any]) -> _Shown:
        """By the form that was sent, or why it cannot be used."""
        given: Mapping[str, Any] = parts
        wanted: Any = parts
        try:
            given = wanted = self.parameters.values(_sent(), parts)
            wanted = self.parameters.checked(given)
            return _Shown(given, wanted, self.run(state, wanted))
        except (HTTPException, WebhookError) as error:
            code, problem = describe_error(error)
            return _Shown(given, wanted, problem=problem, code=code)


@dataclass(frozen=True)
class Section:
    """What a question adds to the console.

    Attributes:
        menu: the name of its first page in the menu; empty if the menu does not have it.
        shows: what its pages show that may be sample data.
        options: add options to the command `console`.
        check: refuses values of them; gets them, and whether the pods of a cluster are followed.
        follow: starts what its pages read, in the process that serves.
        metrics: for Prometheus.
        pages: its pages.
    """

    menu: str = ""
    shows: Collection[str] = tuple(SETTING_NAMES.values())
    options: Sequence[Callable[[Callable[..., Any]], Callable[..., Any]]] = ()
    check: Callable[[Mapping[str, Any], bool], None] = lambda *_: None
    follow: Callable[[Sources], Any] = lambda _: None
    metrics: Callable[[ConsoleState], bytes] | None = None
    pages: list[ConsolePage] = field(default_factory=list)

    def page(self, path: str, template: str = "", **options: Any) -> Callable[[Function], Function]:
        """Register a function as a page; see `ConsolePage` for the options.

        Raises:
            TypeError: it returns something else than a ResponseModel.
        """

        def add(perform: Function) -> Function:
            value = get_type_hints(perform)["return"]
            if not (isinstance(value, type) and issubclass(value, ResponseModel)):
                raise TypeError(f"{perform.__name__} must return a ResponseModel: its JSON is an object")
            self.pages.append(ConsolePage(path, perform, template, shows=self.shows, **options))
            return perform

        return add


def describe_error(error: WebhookError | HTTPException) -> tuple[int, str]:
    """The HTTP status of an error, and its message."""
    if isinstance(error, RequestEntityTooLarge) and error.description == RequestEntityTooLarge.description:
        return error.code, TOO_LARGE  # Flask raised it
    if isinstance(error, HTTPException):
        return error.code or InternalServerError.code, (error.description or error.name)[:MAX_MESSAGE]
    if isinstance(error, StoreError):
        return ServiceUnavailable.code, str(error)[:MAX_MESSAGE]
    return error.status if isinstance(error, RequestError) else UNPROCESSABLE, str(error)[:MAX_MESSAGE]


def to_json(parts: Mapping[str, Any], whole: Collection[str] = ()) -> bytes:
    """An object as JSON, with at most MAX_ITEMS of each list and MAX_TEXT characters of each text outside of whole parts."""
    values = {key: part if key in whole else brief(part, MAX_TEXT, MAX_ITEMS) for key, part in parts.items()}
    try:
        return orjson.dumps(values)
    except TypeError:  # a number of more than 64 bits or half a surrogate pair, which a user's JSON may hold
        return json.dumps(values, separators=(",", ":")).encode()


def link(page: str, query: Mapping[str, Any], *parts: str) -> str:
    """The address of a page or of its JSON, for templates; `parts` are keys of the query that belong to the path.

    The query is not given to `url_for`, which has parameters of its own, and one of them is called `endpoint`.
    """
    address = url_for(page, **{key: query[key] for key in parts})
    given = {key: value for key, value in query.items() if value is not None and key not in parts}
    return f"{address}?{urlencode(given, doseq=True, safe='*:')}" if given else address


def _sent() -> Iterator[tuple[str, Sequence[str]]]:
    """The query, or the fields of a form; an uploaded file replaces the text of a field of its name."""
    if request.method != "POST":
        yield from request.args.lists()
        return
    for key, values in request.form.lists():
        if not request.files.get(key):
            yield key, [value.replace("\r\n", "\n") for value in values]
    for key, file in request.files.items():
        if file.filename:
            yield key, [file.read().decode(errors="replace")]


def _body() -> dict[str, Any]:
    if request.mimetype != MEDIA_TYPE:
        raise UnsupportedMediaType(f"send the request body as {MEDIA_TYPE}")
    try:
        body = orjson.loads(request.get_data(cache=False))
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {mistake_in_json(error)}") from error
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object")
    return body
