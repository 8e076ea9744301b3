"""The audit log: filtered, counted over time, followed; one decision in full, and made again."""

from typing import Any

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Response

from webhook.audit.inputs import MAX_SPLIT
from webhook.audit.pairs import is_id
from webhook.audit.summary import OTHERS
from webhook.console.api.decisions import OPERATIONS, DecisionsQuestion, number_of
from webhook.console.api.filters import FilterQuestion
from webhook.console.api.operation import Answer
from webhook.console.api.replay import OPERATIONS as REPLAY
from webhook.console.api.replay import ReplayQuestion
from webhook.console.pages.decision_charts import history
from webhook.console.pages.decision_patches import operations
from webhook.console.pages.forms import lines
from webhook.console.state import State
from webhook.offline.rulebook import rows
from webhook.outcome import WORDS
from webhook.render.yaml import to_json, to_yaml

ROWS = 100
REFUSED = 6
MAX_SHOWN = 200  # findings, operations
MAX_TEXT = 100_000  # characters of a request or a line

_PLACE = ("before", "after", "limit")


def add(pages: Blueprint, state: State) -> None:
    """Add the pages."""
    listing, sums, single = OPERATIONS
    (replay,) = REPLAY

    @pages.get("/decisions")
    def decisions() -> str:
        values = listing.from_query(request.args)
        asked: DecisionsQuestion = listing.read({"limit": ROWS, **values})
        found = listing.ask(state, {"limit": ROWS, **values})
        summed = sums.ask(state, {key: value for key, value in values.items() if key not in _PLACE})
        drawn = history(summed, asked)
        return render_template(
            "decisions.html", found=found, summed=summed, drawn=drawn, max_split=MAX_SPLIT, **_form(asked)
        )

    @pages.post("/decisions/replay")
    def replayed() -> str:
        values = _lines(replay.from_query(request.form))
        asked: ReplayQuestion = replay.read(values)
        if asked.number is not None:
            raise BadRequest(f"number: one decision is made again on its own page, /decisions/{asked.number}")
        return render_template("replay.html", found=replay.ask(state, values).many, **_form(asked), **_tried(asked))

    @pages.get("/decisions/<string(length=12):decision_id>")
    def decision_by_id(decision_id: str) -> Response:
        return redirect(url_for("pages.decision", number=number_of(state, decision_id)))

    @pages.get("/decisions/<int:number>")
    def decision(number: int) -> str | Response:
        if is_id(last := request.path.rpartition("/")[2]):  # twelve digits that happen to be decimal
            return decision_by_id(last)
        values = _lines(replay.from_query(request.args)) | {"number": number}
        asked: ReplayQuestion = replay.read(values)
        found = single.ask(state, {"number": number})
        wanted = "settings" in request.args or "split" in request.args
        made = replay.ask(state, values).one if wanted else None
        return render_template(
            "decision.html",
            found=found,
            permalink=url_for("pages.decision_by_id", decision_id=found.id) if is_id(found.id) else None,
            made=made,
            patch=operations(found.patch[:MAX_SHOWN]),
            patches=made and (operations(made.patch_before[:MAX_SHOWN]), operations(made.patch_after[:MAX_SHOWN])),
            kept=_cut(to_yaml(found.request)),
            raw=_cut(_raw(found)),
            rules=_rules(),
            asked=FilterQuestion(),
            max_shown=MAX_SHOWN,
            **_tried(asked),
        )


def _form(asked: FilterQuestion) -> dict[str, Any]:
    """What the form of filters needs."""
    return {
        "asked": asked,
        "words": WORDS,
        "rules": _rules(),
        "top": REFUSED,
        "others": OTHERS,
    }


def _tried(asked: ReplayQuestion) -> dict[str, Any]:
    """What the form of settings to try needs."""
    return {"settings": "\n".join(asked.settings), "split": asked.split, "max_split": MAX_SPLIT}


def _lines(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a form in which the settings are lines of one text."""
    return values | {"settings": lines(values.get("settings", ()))}


def _rules() -> list[str]:
    return sorted([row.id for row in rows()])


def _raw(found: Answer) -> str:
    return to_json(found.model_dump(mode="json", by_alias=True, exclude={"current", "pair", "outcome", "number"}))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n… and {len(text) - MAX_TEXT:,} more characters"
