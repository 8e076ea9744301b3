"""The Flask application: the guard, the API, the pages, and the answers to requests that fail."""

import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Flask, Response, render_template, request, url_for
from gunicorn.http.errors import ParseException
from jinja2 import FileSystemLoader
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    InternalServerError,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from webhook import questions
from webhook.console import api, guard, metrics
from webhook.console.api import MAX_MESSAGE, PREFIX, ConsolePage, Operation, Problem, Section, describe_error
from webhook.console.pictures.held import bar
from webhook.console.pictures.node import picture
from webhook.console.state import ConsoleState
from webhook.console.texts import prose
from webhook.errors import WebhookError
from webhook.product import product_version
from webhook.questions import QUESTIONS, package_of
from webhook.settings.table import SETTING_NAMES
from webhook.texts import legible, shorten, visible

API = "/api/"
MAX_TRACE = 50  # frames in the log
MAX_LINE = 500

log = logging.getLogger(__name__)


@cache
def sections() -> tuple[Section, ...]:
    """What the questions add, in the order of their list; those without a page add nothing."""
    packages = [package_of(question) for question in QUESTIONS]
    return tuple(import_module(f"{name}.page").SECTION for name in packages if find_spec(f"{name}.page"))


def _question_folders() -> Iterator[Path]:
    """Where the templates of the questions are."""
    root = Path(questions.__file__).parent
    return (root / package_of(question).rpartition(".")[2] for question in QUESTIONS)


def operations() -> list[Operation[Any, Any]]:
    """Every operation of the API."""
    return [operation for section in sections() for operation in section.operations]


def create_app(state: ConsoleState, hosts: Sequence[str] = ()) -> Flask:
    """Make the application.

    Args:
        state: what it shows.
        hosts: names besides localhost by which clients may reach it.
    """
    here = Path(__file__).parent
    app = Flask(__name__, static_folder=str(here / "static"))
    app.jinja_loader = FileSystemLoader([here / "templates", *_question_folders()])
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters |= {"visible": visible, "legible": legible, "shorten": shorten, "prose": prose}
    app.jinja_env.globals |= {"version": product_version(), "link": link, "picture": picture, "held_bar": bar}
    app.jinja_env.globals["menu"] = [
        (section.pages[0].endpoint, section.menu) for section in sections() if section.menu
    ]
    app.url_build_error_handlers.append(lambda *_: "#")  # a link to the page of a question that is not there
    app.jinja_env.globals["samples"] = partial(_samples, state)
    guard.install(app, hosts)
    app.register_blueprint(api.blueprint(operations(), state))
    pages = Blueprint("pages", __name__)
    for page in (
        ConsolePage("GET", "/metrics", "metrics", metrics.page),
        *(page for each in sections() for page in each.pages),
    ):
        pages.add_url_rule(page.path, page.endpoint, partial(page.view, state), methods=[page.method])
    app.register_blueprint(pages)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(ParseException, _broken_body)
    app.register_error_handler(WebhookError, _unusable)
    app.register_error_handler(Exception, _bug)
    return app


def _samples(state: ConsoleState, page: str) -> list[str]:
    """What is sample data of that which a page shows."""
    found = state.samples
    shown = {"Decisions": ["audit log"], "Rules": ["policy"], "Health": found}.get(page, SETTING_NAMES.values())
    return [name for name in found if name in shown]


def _http_error(error: HTTPException) -> Response:
    return _error_response(error, _message(error))


def _message(error: HTTPException) -> str:
    """The message of our own errors; for those that Flask raises, what to do."""
    if error.description != type(error).description:
        return error.description or error.name
    match error:
        case RequestEntityTooLarge():
            most = guard.MAX_BODY >> 20
            return f"a request has less than {most} MiB; the commands of vgpu-webhook read larger files"
        case NotFound() if request.path.startswith(API):
            return f"there is no such operation; {PREFIX}/openapi.json lists the operations"
        case NotFound():
            return "there is no such page; choose one from the top of the page"
        case MethodNotAllowed():
            return f"{legible(request.method, 20)} is not supported; use {' or '.join(_methods(error))}"
    return error.description or error.name


def _methods(error: HTTPException) -> list[str]:
    return sorted(getattr(error, "valid_methods", None) or ())


def _broken_body(error: ParseException) -> Response:
    """A body in broken chunks, which gunicorn notices when the body is read."""
    return _error_response(BadRequest(), f"the body cannot be read: {error}")


def _unusable(error: WebhookError) -> Response:
    status, message = describe_error(error)
    return _problem(status, "cannot be used", message)


def _bug(error: Exception) -> Response:
    trace = "".join(traceback.format_exception(error)[-MAX_TRACE:])
    lines = [legible(line, MAX_LINE) for line in trace.splitlines()]  # an error may quote a user's text
    log.error("%s %s: a bug\n%s", request.method, legible(request.path, 200), "\n".join(lines))
    message = "a bug in the console; its log has the details. Admission is not affected"
    return _error_response(InternalServerError(), message)


def _error_response(error: HTTPException, message: str) -> Response:
    response = _problem(error.code or InternalServerError.code, error.name, message)
    if allowed := _methods(error):
        response.headers["Allow"] = ", ".join(allowed)
    if retry := getattr(error, "retry_after", None):
        response.headers["Retry-After"] = str(retry)
    return response


def _wants_json() -> bool:
    """Whether the client is a program: the path is below /api, or it prefers JSON to a page."""
    types = ("text/html", api.MEDIA_TYPE)
    return request.path.startswith(API) or request.accept_mimetypes.best_match(types) == api.MEDIA_TYPE


def _problem(status: int, reason: str, message: str) -> Response:
    problem = Problem(status=status, reason=reason, message=visible(message)[:MAX_MESSAGE])
    if _wants_json():
        return Response(api.to_json(problem), status, mimetype=api.MEDIA_TYPE)
    return Response(render_template("problem.html", problem=problem), status)


def link(page: str, query: Mapping[str, Any]) -> str:
    """The address of a page or of an operation of the API, for templates.

    The query is not given to `url_for`, which has parameters of its own, and one of them is called `endpoint`.
    """
    given = {key: value for key, value in query.items() if value is not None}
    return f"{url_for(page)}?{urlencode(given, doseq=True, safe='*:')}" if given else url_for(page)
