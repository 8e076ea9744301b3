"""The Flask application: the guard, the API, the pages, and the answers to requests that fail."""

import logging
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import orjson
from flask import Blueprint, Flask, Response, render_template, request
from gunicorn.http.errors import ParseException
from jinja2 import FileSystemLoader
from prometheus_client import CONTENT_TYPE_LATEST
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    InternalServerError,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from webhook import questions
from webhook.console import guard
from webhook.console.openapi import openapi_document
from webhook.console.pages import MAX_MESSAGE, MEDIA_TYPE, PREFIX, ConsolePage, Problem, Section, describe_error, link
from webhook.console.pictures.held import bar
from webhook.console.pictures.node import picture
from webhook.console.state import ConsoleState
from webhook.console.texts import prose
from webhook.errors import WebhookError
from webhook.product import product_version
from webhook.questions import QUESTIONS, package_of
from webhook.texts import legible, shorten, visible

API = "/api/"
MAX_TRACE = 50  # frames in the log
MAX_LINE = 500

log = logging.getLogger(__name__)


@cache
def sections() -> Mapping[str, Section]:
    """What the questions add, by their names and in the order of their list; those without a page add nothing."""
    packages = {question: f"{package_of(question)}.page" for question in QUESTIONS}
    return {question: import_module(name).SECTION for question, name in packages.items() if find_spec(name)}


def exposition(state: ConsoleState) -> bytes:
    """The metrics of the questions, in the text format of Prometheus."""
    return b"".join([section.metrics(state) for section in sections().values() if section.metrics])


def _metrics(state: ConsoleState) -> Response:
    with guard.computing():
        return Response(exposition(state), content_type=CONTENT_TYPE_LATEST)


def _question_folders() -> Iterator[Path]:
    """Where the templates of the questions are."""
    root = Path(questions.__file__).parent
    return (root / package_of(question).rpartition(".")[2] for question in QUESTIONS)


def pages() -> list[ConsolePage]:
    """Every page of the questions, those with nothing but JSON among them."""
    return [page for section in sections().values() for page in section.pages]


def create_app(state: ConsoleState, hosts: Sequence[str] = (), listed: Sequence[ConsolePage] | None = None) -> Flask:
    """Make the application.

    Args:
        state: what it shows.
        hosts: names besides localhost by which clients may reach it.
        listed: its pages; by default those of the questions.
    """
    here = Path(__file__).parent
    app = Flask(__name__, static_folder=str(here / "static"))
    app.jinja_loader = FileSystemLoader([here / "templates", *_question_folders()])
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters |= {"visible": visible, "legible": legible, "shorten": shorten, "prose": prose}
    app.jinja_env.globals |= {"version": product_version(), "link": link, "picture": picture, "held_bar": bar}
    app.jinja_env.globals["menu"] = [(each.pages[0].name, each.menu) for each in sections().values() if each.menu]
    app.url_build_error_handlers.append(lambda *_: "#")  # a link to the page of a question that is not there
    guard.install(app, hosts)
    for blueprint in _blueprints(state, pages() if listed is None else listed):
        app.register_blueprint(blueprint)
    app.add_url_rule("/metrics", "metrics", lambda: _metrics(state))
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(ParseException, _broken_body)
    app.register_error_handler(WebhookError, _unusable)
    app.register_error_handler(Exception, _bug)
    return app


def _blueprints(state: ConsoleState, listed: Sequence[ConsolePage]) -> Iterator[Blueprint]:
    """The routes of the pages, of their JSON, and of its description."""
    shown, api = Blueprint("pages", __name__), Blueprint("api", __name__, url_prefix=PREFIX)
    for page in listed:
        if page.template:
            shown.add_url_rule(page.path, page.name, partial(page.show, state), methods=page.methods)
        api.add_url_rule(page.path, page.name, partial(page.answer, state), methods=page.methods)
    described = cache(lambda: orjson.dumps(openapi_document(listed)))
    api.add_url_rule("/openapi.json", "openapi", lambda: Response(described(), mimetype=MEDIA_TYPE))
    first = listed[0]
    shown.add_url_rule("/", "start", partial(first.show, state), methods=first.methods)
    yield from (shown, api)


def _http_error(error: HTTPException) -> Response:
    return _error_response(error, _message(error))


def _message(error: HTTPException) -> str:
    """The message of our own errors; for those that Flask raises, what to do."""
    if error.description != type(error).description:
        return error.description or error.name
    match error:
        case RequestEntityTooLarge():
            return guard.TOO_LARGE
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
    types = ("text/html", MEDIA_TYPE)
    return request.path.startswith(API) or request.accept_mimetypes.best_match(types) == MEDIA_TYPE


def _problem(status: int, reason: str, message: str) -> Response:
    problem = Problem(status=status, reason=reason, message=visible(message)[:MAX_MESSAGE])
    if _wants_json():
        return Response(problem.model_dump_json(), status, mimetype=MEDIA_TYPE)
    return Response(render_template("problem.html", problem=problem), status)
