"""Replays of recorded decisions with the settings in use or with others: the operation, and the pages that show the result."""

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from flask import redirect, render_template, request, url_for
from pydantic import Field
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, HTTPException
from werkzeug.wrappers import Response

from webhook.audit.changes import ChangeGroup, ChangeKind, Changes
from webhook.audit.decision import Decision, spell_time
from webhook.audit.filters import Filter
from webhook.audit.follower import DecisionSource
from webhook.audit.inputs import MAX_SPLIT
from webhook.audit.pairs import APART, Pending, content_after, is_id, moved, repairs_before
from webhook.audit.replay import Direction, Replayer, ReplayVerdict
from webhook.console.api import ResponseModel, describe_error, operation
from webhook.console.decisions import DecisionInFull, DecisionRequest, decision, find, number_of
from webhook.console.parameters import FilterRequest, TriedSettings, setting_lines
from webhook.console.state import ConsoleState
from webhook.console.texts import Name, shallow
from webhook.errors import WebhookError
from webhook.offline.rulebook import rows
from webhook.outcome import Violation
from webhook.render.yaml import to_json, to_yaml
from webhook.review import Snapshot
from webhook.rules.base import Level
from webhook.texts import shorten

MAX_DECISIONS = 100_000
MAX_SECONDS = 10.0
MAX_GROUPS = 100
MAX_NAMES = 10  # of each group

_ORDER = {direction: place for place, direction in enumerate(Direction)}


class ReplayRequest(FilterRequest, TriedSettings):
    """One decision by its number, or all that match a filter; and the settings to try."""

    number: int | None = Field(default=None, ge=0, le=2**53, description="one decision; without it, all that match")


class LevelDifference(ResponseModel):
    """A rule with findings then and now, at another level."""

    rule: Name
    before: Level
    after: Level


class ReplayedDecision(ResponseModel):
    """A decision and the result of its replay.

    Attributes:
        number: of the decision.
        verdict: `same`, `changed`, `not reproduced` or `not replayable`.
        direction: how it changes; None if it does not.
        reason: why it is not replayable.
        other_inputs: those of `config`, `policy` and `fleet` that differ from the original ones.
        allowed_before, allowed_after: the verdicts; None after if it was not replayed.
        findings_before, findings_after: all of them.
        gained, lost: findings that are only in the replay, or only in the original.
        level_changes: rules whose findings stay where they were, at another level.
        patch_before, patch_after: the JSON patches.
        repaired_by: the number of the mutation that was replayed first, to repair the pod; None if there is none.
    """

    number: int
    verdict: str
    direction: str | None
    reason: str | None
    other_inputs: tuple[str, ...]
    allowed_before: bool
    allowed_after: bool | None
    findings_before: tuple[Violation, ...]
    findings_after: tuple[Violation, ...]
    gained: tuple[Violation, ...]
    lost: tuple[Violation, ...]
    level_changes: tuple[LevelDifference, ...]
    patch_before: list[dict[str, Any]]
    patch_after: list[dict[str, Any]]
    repaired_by: int | None


class DecisionCount(ResponseModel):
    """A namespace or user, and how many decisions it has."""

    name: Name
    decisions: int


class ReplayGroup(ResponseModel):
    """Decisions that change in the same way.

    Attributes:
        direction: how they change.
        explained: False if they were made with the same inputs and yet change.
        gained, lost: rules with findings only in the replay, or only in the original; of other patches, the paths.
        level_changes: rules whose findings stay where they were, at another level.
        count: how many.
        namespaces, users: the ten most frequent ones.
        more_namespaces, more_users: how many others there are.
        example: the number of the first; None if the store no longer holds it.
        example_name: of its object.
    """

    direction: str
    explained: bool
    gained: tuple[Name, ...]
    lost: tuple[Name, ...]
    level_changes: tuple[LevelDifference, ...]
    count: int
    namespaces: tuple[DecisionCount, ...]
    users: tuple[DecisionCount, ...]
    more_namespaces: int
    more_users: int
    example: int | None
    example_name: Name


class ReplayedDecisions(ResponseModel):
    """The results of many replays.

    Attributes:
        replayed: how many decisions, oldest first.
        complete: False if the limit of time or of decisions stopped it before the last.
        until: when the last of them was made; None if there is none.
        seconds: how long it took.
        verdicts, directions: how many of each.
        groups: what changes in the same way, the gravest first, then the most frequent; at most 100.
        more_groups: how many other groups there are.
        reasons: why decisions are not replayable, and how many.
        command: a shell command that replays the same decisions without limits.
    """

    replayed: int
    complete: bool
    until: str | None
    seconds: float
    verdicts: dict[str, int]
    directions: dict[str, int]
    groups: tuple[ReplayGroup, ...]
    more_groups: int
    reasons: dict[str, int]
    command: str


class Replay(ResponseModel):
    """One decision or many, as requested; the other is None."""

    one: ReplayedDecision | None = None
    many: ReplayedDecisions | None = None


@operation("POST", "/replay", heavy=True)
def replay(state: ConsoleState, wanted: ReplayRequest) -> Replay:
    """One recorded decision or many, replayed with other settings."""
    base, tried = state.snapshot, state.tried(wanted.settings, wanted.split)
    if wanted.number is None:
        return Replay(many=_many(state, wanted, tried))
    if wanted.query():
        raise BadRequest("number: request one decision or all that match a filter, not both")
    journal, found = find(state, wanted.number)
    return Replay(one=_one(journal, wanted.number, found, Replayer(base, tried)))


def _one(journal: DecisionSource, number: int, original: Decision, replayer: Replayer) -> ReplayedDecision:
    repaired_by = None
    if original.endpoint == "validate":
        content = content_after(original)
        for at, repair in repairs_before(journal.store, number, original):
            replayer.note(repair)
            if repair.patch and content_after(repair) == content:
                repaired_by = at
    found = replayer.replay(original)
    outcome = found.outcome
    if found.verdict is ReplayVerdict.SAME and outcome is None:
        allowed, findings, patch = original.allowed, original.findings, original.patch
    elif outcome is None:
        allowed, findings, patch = None, (), []
    else:
        allowed, findings, patch = outcome.allowed, outcome.violations, list(outcome.operations)
    return ReplayedDecision(
        number=number,
        verdict=found.verdict.value,
        direction=found.direction and found.direction.value,
        reason=found.reason or None,
        other_inputs=found.other,
        allowed_before=original.allowed,
        allowed_after=allowed,
        findings_before=original.findings,
        findings_after=findings,
        gained=found.gained,
        lost=found.lost,
        level_changes=_levels((each.before.rule, each.before.level, each.after.level) for each in found.level_changes),
        patch_before=shallow(original.patch),
        patch_after=shallow(patch),
        repaired_by=repaired_by,
    )


def _many(state: ConsoleState, request: ReplayRequest, tried: Snapshot) -> ReplayedDecisions:
    """Replay the decisions of the log until the time is over."""
    journal, base = state.journal, state.snapshot
    begun, wanted, changes = time.monotonic(), request.filter(), Changes()
    replayer, pending, last, replayed, complete = Replayer(base, tried), Pending(), None, 0, True
    for found in journal.store.decisions(_with_repairs(wanted)) if journal else ():
        if replayed >= MAX_DECISIONS or time.monotonic() - begun > MAX_SECONDS:
            complete = False
            break
        if wanted.admits(found):
            if found.endpoint == "validate":
                for repair in pending.take(found):
                    replayer.note(repair)
            changes.add(replayer.replay(found))
            replayed, last = replayed + 1, found
        else:
            pending.add(found)
    groups = sorted(changes.groups.items(), key=lambda item: (_ORDER[item[0].direction], -item[1].count, item[0]))
    return ReplayedDecisions(
        replayed=replayed,
        complete=complete,
        until=last and spell_time(last.time),
        seconds=round(time.monotonic() - begun, 3),
        verdicts={verdict.value: count for verdict, count in changes.verdicts.items()},
        directions={direction.value: count for direction, count in changes.directions.items()},
        groups=tuple([_group(journal, kind, group) for kind, group in groups[:MAX_GROUPS] if journal]),
        more_groups=max(0, len(groups) - MAX_GROUPS) + changes.left_out,
        reasons=dict(changes.reasons),
        command=_command(state, request, wanted),
    )


def _with_repairs(wanted: Filter) -> Filter:
    """A wider filter, which also takes the mutations of the pods whose validations are wanted."""
    since = wanted.since and moved(wanted.since, -APART)
    return replace(wanted, since=since, denied=False, rules=(), names=(), words=(), endpoint=None)


def _group(journal: DecisionSource, kind: ChangeKind, group: ChangeGroup) -> ReplayGroup:
    example = group.example.decision
    return ReplayGroup(
        direction=kind.direction.value,
        explained=kind.explained,
        gained=kind.gained[:MAX_GROUPS],
        lost=kind.lost[:MAX_GROUPS],
        level_changes=_levels(kind.level_changes),
        count=group.count,
        namespaces=_most_frequent(group.namespaces),
        users=_most_frequent(group.users),
        more_namespaces=max(0, len(group.namespaces) - MAX_NAMES),
        more_users=max(0, len(group.users) - MAX_NAMES),
        example=_number(journal, example),
        example_name=f"{example.kind}/{example.name}",
    )


def _levels(found: Iterable[tuple[str, Level, Level]]) -> tuple[LevelDifference, ...]:
    different = list(dict.fromkeys(found))[:MAX_GROUPS]
    return tuple([LevelDifference(rule=rule, before=before, after=after) for rule, before, after in different])


def _most_frequent(names: Counter[str]) -> tuple[DecisionCount, ...]:
    return tuple([DecisionCount(name=name, decisions=count) for name, count in names.most_common(MAX_NAMES)])


def _number(journal: DecisionSource, found: Decision) -> int | None:
    until = moved(found.time, timedelta(microseconds=1))
    same = journal.store.following(Filter(since=found.time, until=until, endpoint=found.endpoint, id=found.id), 0, 1)
    return same[0].number if same else None


def _command(state: ConsoleState, request: ReplayRequest, wanted: Filter) -> str:
    words = ["vgpu-webhook", "replay", *state.replay_options]
    for setting in request.settings:
        words += ["--set", setting]
    words += ["--what-if", f"split={request.split}"] if request.split else []
    filters = {
        "since": [spell_time(wanted.since)] if wanted.since else [],
        "until": [spell_time(wanted.until)] if wanted.until else [],
        "rule": wanted.rules,
        "namespace": wanted.namespaces,
        "user": wanted.users,
        "name": wanted.names,
        "outcome": wanted.words,
        "endpoint": [wanted.endpoint] if wanted.endpoint else [],
    }
    for key, values in filters.items():
        for value in values:
            words += [f"--{key}", value]
    words += ["--denied"] if wanted.denied else []
    if wanted.dry_run is not None:
        words.append("--dry-run" if wanted.dry_run else "--no-dry-run")
    return shlex.join([*words, (state.journal and state.journal.path) or "AUDIT_LOG"])


# --- the pages ------------------------------------------------------------------------------------------------------

TRIED = ("settings", "split")  # fields of the form
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
    result: Replay | None = None
    problem: str = ""
    status: int = 200


def _replay_form(state: ConsoleState, fields: MultiDict[str, str], **more: Any) -> TryForm:
    """Replay with the settings of a form. A mistake in them is shown beside the form, so that no input is lost."""
    form = TryForm("\n".join(setting_lines(fields.getlist("settings"))), fields.get("split", ""))
    try:
        return form._replace(result=replay.run(state, replay.parse_query(fields, **more)))
    except (HTTPException, WebhookError) as error:
        status, message = describe_error(error)
        return form._replace(problem=message, status=status)


def what_if_page(state: ConsoleState) -> Response:
    """Many decisions, replayed."""
    filters = MultiDict([(key, value) for key, value in request.form.items(multi=True) if key not in TRIED])
    wanted = replay.parse_query(filters)
    if wanted.number is not None:
        raise BadRequest(f"number: /decisions/{wanted.number} replays one decision; leave the number out here")
    form = _replay_form(state, request.form)
    found = form.result and form.result.many
    text = render_template("replay.html", found=found, form=form, wanted=wanted, max_split=MAX_SPLIT)
    return Response(text, form.status, mimetype="text/html")


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
    form = _replay_form(state, request.args, number=number) if request.args else TryForm("", "")
    replayed = form.result and form.result.one
    text = render_template(
        "decision.html",
        found=found,
        permalink=url_for("pages.decision_by_id", decision_id=found.id) if is_id(found.id) else None,
        made=replayed,
        patch=_patch_rows(found.patch),
        patches=replayed and (_patch_rows(replayed.patch_before), _patch_rows(replayed.patch_after)),
        kept=_cut(to_yaml(found.request)),
        raw=_cut(_audit_line(found)),
        rules={row.id for row in rows()},
        form=form,
        filters=FilterRequest(),
        max_shown=MAX_SHOWN,
        max_split=MAX_SPLIT,
    )
    return Response(text, form.status, mimetype="text/html")


def _audit_line(found: DecisionInFull) -> str:
    derived = {"current", "pair", "outcome", "number"}
    return to_json(found.model_dump(mode="json", by_alias=True, exclude=derived))


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
