"""The replay of one recorded decision, with the settings in use or with others: the operation, and the page of a decision."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from flask import redirect, render_template, request, url_for
from pydantic import Field
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, HTTPException
from werkzeug.wrappers import Response

from webhook.audit.decision import is_id, spell_time, to_record
from webhook.audit.pairs import content_after, repairs_before
from webhook.console.api import ConsolePage, ResponseModel, Section, describe_error, operation
from webhook.console.parameters import FilterRequest, TriedSettings, setting_lines
from webhook.console.state import ConsoleState
from webhook.console.texts import shallow
from webhook.emit import to_json, to_yaml
from webhook.errors import WebhookError
from webhook.outcome import Violation
from webhook.questions.decisions.page import MAX_NUMBER, DecisionRequest, decision, find, number_of
from webhook.questions.replay.answer import Replayer, ReplayVerdict
from webhook.rules.settings import Level
from webhook.settings.trial import MAX_SPLIT
from webhook.suites.rulebook import rows
from webhook.texts import shorten


class ReplayRequest(TriedSettings):
    """A decision by its number, and the settings to try."""

    number: int = Field(ge=0, le=MAX_NUMBER, description="of the decision")


class LevelDifference(ResponseModel):
    """A rule with findings then and now, at another level."""

    rule: str
    before: Level
    after: Level


class ReviewResult(ResponseModel):
    """What a review decided: whether it admitted the object, its findings, and its JSON patch."""

    allowed: bool
    findings: tuple[Violation, ...]
    patch: list[dict[str, Any]]


class ReplayedDecision(ResponseModel):
    """A decision and the result of its replay.

    Attributes:
        number: of the decision.
        verdict: `same`, `changed`, `not reproduced` or `not replayable`.
        direction: how it changes; None if it does not.
        reason: why it is not replayable.
        other_inputs: those of `config`, `policy` and `fleet` that differ from the original ones.
        before, after: the original review and the replayed one; None after if it was not replayed.
        gained, lost: findings that are only in the replay, or only in the original.
        level_changes: rules whose findings stay where they were, at another level.
        repaired_by: the number of the mutation that was replayed first, to repair the pod; None if there is none.
    """

    number: int
    verdict: str
    direction: str | None
    reason: str | None
    other_inputs: tuple[str, ...]
    before: ReviewResult
    after: ReviewResult | None
    gained: tuple[Violation, ...]
    lost: tuple[Violation, ...]
    level_changes: tuple[LevelDifference, ...]
    repaired_by: int | None


@operation("POST", "/replay", heavy=True, whole=True)
def replay(state: ConsoleState, wanted: ReplayRequest) -> ReplayedDecision:
    """A recorded decision, replayed with other settings."""
    number = wanted.number
    source, original = find(state, number)
    replayer = Replayer(state.snapshot, state.tried(wanted.settings, wanted.split))
    repaired_by = None
    if original.endpoint == "validate":
        content = content_after(original)
        for at, repair in repairs_before(source.store, number, original):
            replayer.note(repair)
            if repair.patch and content_after(repair) == content:
                repaired_by = at
    found = replayer.replay(original)
    outcome = found.outcome
    before = ReviewResult(allowed=original.allowed, findings=original.findings, patch=shallow(original.patch))
    after = before if found.verdict is ReplayVerdict.SAME else None
    if outcome is not None:
        patch = shallow(list(outcome.operations))
        after = ReviewResult(allowed=outcome.allowed, findings=outcome.violations, patch=patch)
    different = list(dict.fromkeys((e.before.rule, e.before.level, e.after.level) for e in found.level_changes))
    return ReplayedDecision(
        number=number,
        verdict=found.verdict.value,
        direction=found.direction and found.direction.value,
        reason=found.reason or None,
        other_inputs=found.other,
        before=before,
        after=after,
        gained=found.gained,
        lost=found.lost,
        level_changes=tuple(
            [LevelDifference(rule=rule, before=before, after=after) for rule, before, after in different[:MAX_LEVELS]]
        ),
        repaired_by=repaired_by,
    )


# --- the page ------------------------------------------------------------------------------------------------------

TRIED = ("settings", "split")  # fields of the form
MAX_LEVELS = 100  # rules at another level
MAX_SHOWN = 200  # findings, operations of a patch
MAX_CODE = 100_000  # characters of a request or a line
MAX_VALUE = 600  # characters of a value in a patch


class PatchRow(NamedTuple):
    """An operation of a patch: add, remove, replace…, the field path, and the value as JSON; empty if there is none."""

    operation: str
    path: str
    value: str


class TryForm(NamedTuple):
    """The fields of the form with settings to try, and the result of the replay.

    Attributes:
        settings, split: as they were written.
        result: None if there is none.
        problem: why not; empty if a replay was not requested.
        status: of HTTP.
    """

    settings: str
    split: str
    result: ReplayedDecision | None = None
    problem: str = ""
    status: int = 200


def _replay_form(state: ConsoleState, fields: MultiDict[str, str], number: int) -> TryForm:
    """Replay with the settings of a form. A mistake in them is shown beside the form, so that no input is lost."""
    form = TryForm("\n".join(setting_lines(fields.getlist("settings"))), fields.get("split", ""))
    try:
        return form._replace(result=replay.run(state, replay.parse_query(fields, number=number)))
    except (HTTPException, WebhookError) as error:
        status, message = describe_error(error)
        return form._replace(problem=message, status=status)


def id_page(state: ConsoleState, decision_id: str) -> Response:
    """The way to a decision by its id."""
    return redirect(url_for("pages.decision", number=number_of(state, decision_id)))


def decision_page(state: ConsoleState, number: int) -> Response:
    """One decision in full, and its replay."""
    if is_id(last := request.path.rpartition("/")[2]):  # an id of twelve decimal digits
        return id_page(state, last)
    if unknown := request.args.keys() - set(TRIED):
        raise BadRequest(f"{min(unknown)[:100]}: no such key; there are {', '.join(TRIED)}")
    found = decision.run(state, DecisionRequest(number=number))
    recorded = found.decision
    form = _replay_form(state, request.args, number) if request.args else TryForm("", "")
    text = render_template(
        "decision.html",
        found=found,
        recorded=recorded,
        permalink=url_for("pages.decision_by_id", decision_id=recorded.id) if is_id(recorded.id) else None,
        made=form.result,
        patch_rows=_patch_rows,
        spell_time=spell_time,
        kept=_cut(to_yaml(recorded.request)),
        raw=_cut(to_json(to_record(recorded))),
        rules={row.id for row in rows()},
        is_id=is_id,
        form=form,
        filters=FilterRequest(),
        max_shown=MAX_SHOWN,
        max_split=MAX_SPLIT,
    )
    return Response(text, form.status, mimetype="text/html")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CODE else f"{text[:MAX_CODE]}\n… and {len(text) - MAX_CODE:,} more characters"


def _patch_rows(patch: list[dict[str, Any]]) -> list[PatchRow]:
    return [_patch_row(each) for each in patch[:MAX_SHOWN]]


def _patch_row(each: Mapping[str, Any]) -> PatchRow:
    """An operation for people. It comes from a log, which may hold anything."""
    value = to_json(each["value"]) if "value" in each else ""
    if "from" in each:
        value = f"from {_field_path(each['from'])}"
    return PatchRow(str(each.get("op", "?"))[:20], _field_path(each.get("path")), shorten(value, MAX_VALUE))


def _field_path(pointer: Any) -> str:
    """A JSON pointer as a field path; any other text as it is."""
    text = str(pointer)[:MAX_VALUE]
    if not text.startswith("/"):
        return text
    spelled = ""
    for part in [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]:
        if part == "-":
            spelled += "[end]"
        elif part.isdecimal() or "." in part or "/" in part:
            spelled += f"[{part}]"
        else:
            spelled += f".{part}" if spelled else part
    return spelled


SECTION = Section(
    operations=(replay,),
    pages=(
        ConsolePage("GET", f"/decisions/<int(max={MAX_NUMBER}):number>", "decision", decision_page),
        ConsolePage("GET", "/decisions/<string(length=12):decision_id>", "decision_by_id", id_page),
    ),
)
