"""The playground: a manifest, what the webhook would do with it, and where its pods would lie."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, render_template, request
from werkzeug.exceptions import BadRequest, HTTPException, NotFound

from webhook.console.api.explain import explain_documents
from webhook.console.api.explain_answers import ExplainedShape
from webhook.console.api.operation import status_of
from webhook.console.api.review import MAX_MANIFEST, OPERATIONS, ReviewQuestion, examine, told
from webhook.console.api.review_answers import ReviewedDocument
from webhook.console.guard import computing
from webhook.console.pages.forms import lines
from webhook.console.pages.playground_examples import START, Example, choices, example
from webhook.console.pages.playground_folds import blocks
from webhook.console.pictures.node import svg
from webhook.console.state import State
from webhook.devices import registry
from webhook.devices.drawing import DrawnNode
from webhook.errors import WebhookError
from webhook.render.yaml import to_json

MAX_DRAWINGS = 40  # on a page; what more shapes say is told in words
OPEN = 6  # shapes of a family that are seen at once

# The verdict in words, and the class that colours it.
VERDICTS = {
    "denied": ("Refused", "bad", "✕"),
    "would-be-denied": ("Would be refused", "bad", "✕"),
    "mutated": ("Repaired", "repaired", "✎"),
    "would-be-mutated": ("Would be repaired", "repaired", "✎"),
    "warned": ("Admitted with warnings", "warn", "▲"),
    "allowed": ("Admitted as it is", "good", "✓"),
    "untouched": ("Not the webhook's business", "", "·"),
}
PODS_REFUSED = ("Its pods will be refused", "bad", "✕")
PLACEMENTS = {
    "fits": ("fits", "good", "✓"),
    "tight": ("fits tightly", "warn", "▲"),
    "never": ("never", "bad", "✕"),
    "unknown": ("unknown", "", "?"),
}


def add(pages: Blueprint, state: State) -> None:
    """Add the page."""

    @pages.get("/")
    def playground() -> Response:
        name = request.args.get("example") or START
        found = example(name)
        if found is None:
            raise NotFound(f"no example is called {name[:100]!r}; choose one of the list")
        question = ReviewQuestion(manifest=found.manifest, settings=found.settings)
        return _page(question.model_dump(), found, _answers(state, question))

    @pages.post("/")
    def try_out() -> Response:
        values = _form()
        try:
            question = OPERATIONS[0].read(values)
            with computing():
                answers = _answers(state, question)
        except (WebhookError, HTTPException) as error:
            return _page(values, None, {"problem": _complaint(error)}, _status(error))
        return _page(values, None, answers)


def _answers(state: State, question: ReviewQuestion) -> dict[str, Any]:
    """What the operations `review` and `explain` answer, of one review."""
    examined = examine(state, question)
    return {"found": told(examined), "explained": explain_documents(examined)}


def _form() -> dict[str, Any]:
    """The question of the form; a file is taken before what stands in the editor."""
    form = request.form
    upload = request.files.get("file")
    data = upload.read(MAX_MANIFEST + 1) if upload is not None and upload.filename else b""
    manifest = data.decode(errors="replace") if data else form.get("manifest", "").replace("\r\n", "\n")
    values: dict[str, Any] = {"manifest": manifest, "settings": lines(form.getlist("settings"))}
    for key in ("namespace", "split"):
        if written := form.get(key, "").strip():
            values[key] = written
    return values


def _page(values: Mapping[str, Any], chosen: Example | None, answers: Mapping[str, Any], status: int = 200) -> Response:
    return Response(
        render_template(
            "playground.html",
            asked=values,
            chosen=chosen,
            choices=choices(),
            verdict_of=_verdict,
            placements=PLACEMENTS,
            families={family.id: family.nodes for family in registry.FAMILIES},
            blocks=blocks,
            svg=svg,
            picture=_picture,
            spelled=to_json,
            most_drawings=MAX_DRAWINGS,
            open=OPEN,
            **answers,
        ),
        status,
    )


def _verdict(document: ReviewedDocument) -> tuple[str, str, str]:
    """The verdict in words, with its class and sign: a workload without pods runs as little as a refused one."""
    return PODS_REFUSED if document.pods_refused else VERDICTS[document.outcome]


def _picture(shape: ExplainedShape) -> DrawnNode:
    """The drawing, without a note that stands beside it in words."""
    drawing = shape.drawing
    beside = any(drawing.note and drawing.note in sentence.text for sentence in shape.sentences)
    return replace(drawing, note="") if beside else drawing


def _complaint(error: WebhookError | HTTPException) -> str:
    if isinstance(error, HTTPException):
        return (error.description or error.name)[:2000]
    return str(error)[:2000]


def _status(error: WebhookError | HTTPException) -> int:
    if isinstance(error, HTTPException):
        return error.code or BadRequest.code
    return status_of(error)
