"""The pages of the audit log: all decisions, and one in full."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from flask import url_for
from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.audit.decision import Decision, Effect, is_id, spell_time, to_record
from webhook.audit.filters import Filter
from webhook.audit.follower import DecisionSource
from webhook.audit.pairs import pair_of, pairs_among
from webhook.audit.store import NumberedDecision
from webhook.audit.summary import OTHERS
from webhook.console.pages import Section
from webhook.console.parameters import wider
from webhook.console.sources import LogStatus, log_status
from webhook.console.state import AUDIT_LOG, ConsoleState
from webhook.console.texts import MAX_TEXT, brief, shallow
from webhook.outcome import WORDS
from webhook.output.json import ResponseModel, to_json
from webhook.output.yaml import to_yaml
from webhook.parameters import Parameters
from webhook.questions.decisions.counts import to_decision_summary
from webhook.questions.decisions.summary import TOP, decisions_summary, history, sum_up
from webhook.questions.decisions.text import facts
from webhook.suites.rulebook import rows
from webhook.texts import shorten

MAX_ENTRIES = 1000
MAX_NUMBER = 2**53  # of a decision, so that it is exact in JavaScript
MAX_RULES = 50  # of one row
ROWS = 100  # of a page
MAX_SHOWN = 200  # findings, operations of a patch
MAX_CODE = 100_000  # characters of a request or a line
MAX_VALUE = 600  # characters of a value in a patch
MAX_LONE = 20  # validations of a poll whose repairs are looked up
REFUSED = 6  # rows of `Refused most often`
NO_LOG = "the console reads no audit log; start it with --audit-log FILE, or with --store URL"

# Filters that many look for, by name; each is an address that can be kept.
PRESETS: dict[str, dict[str, Any]] = {
    "refused": {"outcome": ["refused"]},
    "would have been refused": {"outcome": ["would-be-refused"]},
    "repaired": {"outcome": ["repaired"]},
    "with warnings": {"outcome": ["warned"]},
    "last hour": {"since": "1h"},
    "last day": {"since": "24h"},
}

_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_ROW = ("time", "endpoint", "operation", "dryRun", "user", "namespace", "kind", "name")


SECTION = Section("Decisions", shows=[AUDIT_LOG])

Before = Annotated[int | None, Field(ge=1, le=MAX_NUMBER, description="older than the decision of that number")]
After = Annotated[int | None, Field(ge=0, le=MAX_NUMBER, description="newer than the decision of that number")]
Limit = Annotated[int, Field(ge=1, le=MAX_ENTRIES, description="how many at most")]
Key = Annotated[str, Field(description="its number, as /decisions lists it, or its id")]


class RuleLevel(ResponseModel):
    """A rule that found or repaired something: the worst level of its findings, or `repair`."""

    rule: str
    level: Effect


class DecisionRow(ResponseModel):
    """A decision in a list. Texts are cut after 300 characters.

    Attributes:
        number: its number in the store; it stays the same as long as the console runs, and in a database for ever.
        outcome: refused, would-be-refused, repaired, would-be-repaired, warned, allowed or not-reviewed.
        time, endpoint, operation, dry_run, user, namespace, kind, name: as in its audit line.
        id: of the decision; empty if the line has none of twelve hexadecimal digits.
        repair: of a validation, the number of the repair of the same new pod, if it is in the same list or shortly before it.
        rules: the rules that found or repaired something.
    """

    number: int
    time: str
    endpoint: str
    outcome: str
    operation: str
    dry_run: bool
    user: str
    namespace: str
    kind: str
    name: str
    id: str
    repair: int | None
    rules: tuple[RuleLevel, ...]


class DecisionInFull(ResponseModel):
    """A decision, and what follows from it.

    Attributes:
        number, outcome: as in the list.
        decision: as its audit line has it; JSON that is too deep is cut.
        current: the digests of the settings that are in use now.
        pair: the number of the decision of the other endpoint about the same pod; None if it is not known.
    """

    number: int
    outcome: str
    decision: Decision
    current: dict[str, str]
    pair: int | None


class DecisionList(ResponseModel):
    """Decisions, newest first.

    Attributes:
        entries: the decisions.
        older: the `before` of the next page; None if there are no more.
        newer: the `before` of the previous page; 0 if that is the first, None if this is.
        newest: the `after` of the next poll. Smaller than the `after` of this request if the console was restarted.
        left_out: with `after`, how many matching decisions lie between it and these.
        log: what the console has read of it; None if it was started without one.
    """

    entries: tuple[DecisionRow, ...] = ()
    older: int | None = None
    newer: int | None = None
    newest: int = 0
    left_out: int = 0
    log: LogStatus | None = None


def drawn(state: ConsoleState, wanted: Filter, listed: DecisionList) -> Mapping[str, Any]:
    """What the page of all decisions shows besides the list: its filters, charts and counts."""
    summary = sum_up(state, wanted)
    return {
        "objects": object_rows(listed.entries),
        "presets": PRESETS,
        "summed": to_decision_summary(summary, TOP),
        "drawn": history(summary, wanted),
        "wider": wider(wanted, ("rule", "namespace", "name", "user")),
        "words": WORDS,
        "rules": sorted(row.id for row in rows()),
        "top": REFUSED,
        "others": OTHERS,
    }


@SECTION.page("/decisions", "decisions.html", more=drawn)
def decisions(
    state: ConsoleState, wanted: Filter, before: Before = None, after: After = None, limit: Limit = ROWS
) -> DecisionList:
    """Recorded decisions, newest first."""
    source = state.decisions
    if source is None:
        return DecisionList()
    page = source.store.page(wanted, before=before, after=after, limit=limit)
    repairs = pairs_among(page.entries)
    if after is not None:  # the repair may have been in the response before
        lone = [each for each in page.entries if each.decision.endpoint == "validate" and each.number not in repairs]
        paired = {number: pair_of(source.store, number, decision) for number, decision in lone[:MAX_LONE]}
        repairs |= {number: repair for number, repair in paired.items() if repair is not None}
    return DecisionList(
        entries=tuple([_row(entry, repairs.get(entry.number)) for entry in page.entries]),
        older=page.older,
        newer=page.newer,
        newest=page.newest,
        left_out=page.left_out,
        log=log_status(state),
    )


def drawn_decision(_: ConsoleState, __: Parameters, shown: DecisionInFull) -> Mapping[str, Any]:
    """What the page of a decision shows besides it."""
    recorded = shown.decision
    return {
        "recorded": recorded,
        "facts": facts(recorded),
        "permalink": url_for("pages.decision", key=recorded.id) if is_id(recorded.id) else None,
        "patch_rows": patch_rows,
        "spell_time": spell_time,
        "kept": _cut(to_yaml(recorded.request)),
        "raw": _cut(to_json(to_record(recorded))),
        "rules": {row.id for row in rows()},
        "is_id": is_id,
        "filters": Filter(),
        "max_shown": MAX_SHOWN,
    }


@SECTION.page("/decisions/<key>", "decision.html", whole=("decision",), more=drawn_decision)
def decision(state: ConsoleState, key: Key) -> DecisionInFull:
    """A recorded decision in full."""
    source, number, stored = find(state, key)
    return DecisionInFull(
        number=number,
        outcome=stored.word,
        decision=replace(
            stored, patch=shallow(stored.patch), request=shallow(stored.request), digests=shallow(stored.digests)
        ),
        current=dict(state.snapshot.digests),
        pair=pair_of(source.store, number, stored),
    )


SECTION.page("/decisions/summary")(decisions_summary)


def find(state: ConsoleState, key: str) -> tuple[DecisionSource, int, Decision]:
    """A decision by its number or its id, which a refusal contains: the source that has it, its number, and itself.

    Raises:
        NotFound: there is none.
    """
    if state.decisions is None:
        raise NotFound(NO_LOG)
    store = state.decisions.store
    if is_id(key):
        entries = store.page(Filter(id=key), limit=1).entries
        if not entries:
            raise NotFound(
                f"there is no decision {key} here; each replica has a log of its own, and `vgpu-webhook decisions "
                f"--id {key} FILE` finds older decisions"
            )
        return state.decisions, *entries[0]
    number = int(key) if _NUMBER.fullmatch(key) else None
    decision = store.decision(number) if number is not None else None
    if number is None or decision is None:
        raise NotFound(f"there is no decision {key[:40]}; /decisions lists those that are stored")
    return state.decisions, number, decision


def _row(stored: NumberedDecision, repair: int | None) -> DecisionRow:
    number, decision = stored
    record = to_record(decision)
    rules = [RuleLevel(rule=rule, level=effect) for rule, effect in decision.effects.items()]
    values = {key: brief(record[key], MAX_TEXT) for key in _ROW}
    own = {"number": number, "outcome": decision.word, "rules": rules[:MAX_RULES], "repair": repair}
    return DecisionRow.model_validate(values | own | {"id": decision.id if is_id(decision.id) else ""})


# --- the page -------------------------------------------------------------------------------------------------------


class ObjectRow(NamedTuple):
    """A row of the page: a decision, and the repair of the same new pod, which has no row of its own."""

    entry: DecisionRow
    repair: DecisionRow | None


def object_rows(entries: Sequence[DecisionRow]) -> list[ObjectRow]:
    """One row for each object: its validation and its repair together where both are among the entries."""
    by_number = {entry.number: entry for entry in entries}
    repairs = {entry.repair for entry in entries}
    return [
        ObjectRow(entry, by_number.get(entry.repair) if entry.repair is not None else None)
        for entry in entries
        if entry.number not in repairs
    ]


class PatchRow(NamedTuple):
    """An operation of a patch: add, remove, replace…, the field path, and the value as JSON; empty if there is none."""

    operation: str
    path: str
    value: str


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CODE else f"{text[:MAX_CODE]}\n… and {len(text) - MAX_CODE:,} more characters"


def patch_rows(patch: list[dict[str, Any]]) -> list[PatchRow]:
    """The first operations of a patch for people."""
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
