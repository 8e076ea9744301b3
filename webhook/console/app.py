"""The Flask application: the guard, the API, the pages, and what is told when something goes wrong."""

import logging
import traceback
from collections.abc import Sequence
from pathlib import Path

from flask import Flask, Response, render_template, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import (
    BadRequest,
    HTTPException,
    InternalServerError,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

from webhook.console import guard
from webhook.console.api import routes
from webhook.console.api.openapi import PREFIX, product_version
from webhook.console.api.operation import Problem, status_of
from webhook.console.pages import routes as page_routes
from webhook.console.pages.units import prose
from webhook.console.state import State
from webhook.errors import WebhookError
from webhook.texts import legible, visible

API = "/api/"
MAX_TRACE = 50  # frames in the log
MAX_LINE = 500

log = logging.getLogger(__name__)


def create_app(state: State, hosts: Sequence[str] = ()) -> Flask:
    """Make the application.

    Args:
        state: what it shows.
        hosts: names besides loopback under which it may be called.
    """
    here = Path(__file__).parent
    app = Flask(__name__, static_folder=str(here / "static"), template_folder=str(here / "templates"))
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters |= {"visible": visible, "legible": legible, "prose": prose}
    app.jinja_env.globals["version"] = product_version()
    guard.install(app, hosts)
    app.register_blueprint(routes.blueprint(state))
    app.register_blueprint(page_routes.blueprint(state))
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(ParseException, _broken_off)
    app.register_error_handler(WebhookError, _unusable)
    app.register_error_handler(Exception, _bug)
    return app


def _http(error: HTTPException) -> Response:
    return _told(error, _words(error))


def _words(error: HTTPException) -> str:
    """What was said where it was raised; of what Flask raises by itself, what to do."""
    if error.description != type(error).description:
        return error.description or error.name
    match error:
        case RequestEntityTooLarge():
            most = guard.MAX_BODY >> 20
            return f"a request has less than {most} MiB; the commands of vgpu-webhook read larger files"
        case NotFound() if request.path.startswith(API):
            return f"there is no such operation; {PREFIX}/openapi.json describes those that there are"
        case NotFound():
            return "there is no such page; those that there are stand at the top"
        case MethodNotAllowed():
            return f"nothing here is changed by {legible(request.method, 20)}; ask by {' or '.join(_methods(error))}"
    return error.description or error.name


def _methods(error: HTTPException) -> list[str]:
    return sorted(getattr(error, "valid_methods", None) or ())


def _broken_off(error: ParseException) -> Response:
    """A body in chunks that are none: gunicorn notices where it is read."""
    return _told(BadRequest(), f"the body cannot be read: {error}")


def _unusable(error: WebhookError) -> Response:
    """What was handed in cannot be used; the message says why."""
    return _problem(status_of(error), "cannot be used", str(error))


def _bug(error: Exception) -> Response:
    trace = "".join(traceback.format_exception(error)[-MAX_TRACE:])
    log.error("%s %s: a bug\n%s", request.method, legible(request.path, 200), _lines(trace))
    return _told(InternalServerError(), "a bug in the console; its log says more, and admission goes on without it")


def _lines(trace: str) -> str:
    """A traceback for the log; what an error quotes may be anybody's text."""
    return "\n".join([legible(line, MAX_LINE) for line in trace.splitlines()])


def _told(error: HTTPException, message: str) -> Response:
    response = _problem(error.code or InternalServerError.code, error.name, message)
    if allowed := _methods(error):
        response.headers["Allow"] = ", ".join(allowed)
    retry = getattr(error, "retry_after", None)
    if retry:
        response.headers["Retry-After"] = str(retry)
    return response


def _wants_json() -> bool:
    """Whether a program asks: below /api, or whoever would rather have JSON than a page."""
    types = ("text/html", "application/json")
    return request.path.startswith(API) or request.accept_mimetypes.best_match(types) == types[1]


def _problem(status: int, reason: str, message: str) -> Response:
    problem = Problem(status=status, reason=reason, message=visible(message)[:2000])
    if _wants_json():
        return Response(routes.answer(problem), status, mimetype="application/json")
    return Response(render_template("problem.html", problem=problem), status)
