"""The decisions in the audit log: the page that lists them, and the operations that list them and return one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from flask import render_template, request
from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.audit.decision import Decision, is_id, to_record, worst_levels
from webhook.audit.filters import Filter
from webhook.audit.follower import DecisionSource
from webhook.audit.pairs import pair_of, pairs_among
from webhook.audit.store import NumberedDecision
from webhook.audit.summary import OTHERS
from webhook.console.api import ConsolePage, RequestModel, ResponseModel, Section, operation
from webhook.console.parameters import FilterRequest, wider
from webhook.console.sources import LogStatus, log_status
from webhook.console.state import ConsoleState
from webhook.console.texts import MAX_TEXT, brief, shallow
from webhook.outcome import WORDS
from webhook.questions.decisions.summary import decisions_summary, history, sum_up, to_decision_summary
from webhook.rules.settings import Level
from webhook.suites.rulebook import rows

MAX_ENTRIES = 1000
MAX_NUMBER = 2**53  # of a decision, so that it is exact in JavaScript
MAX_RULES = 50  # of one row
ROWS = 100  # of a page
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

_ROW = ("time", "endpoint", "operation", "dryRun", "user", "namespace", "kind", "name")


class DecisionsRequest(FilterRequest):
    """Which decisions to list."""

    before: int | None = Field(default=None, ge=1, le=MAX_NUMBER, description="older than the decision of that number")
    after: int | None = Field(default=None, ge=0, le=MAX_NUMBER, description="newer than the decision of that number")
    limit: int = Field(default=ROWS, ge=1, le=MAX_ENTRIES, description="how many at most")


class DecisionRequest(RequestModel):
    """Which decision to return."""

    number: int = Field(ge=0, le=MAX_NUMBER, description="its number, as /decisions lists it")


class RuleLevel(ResponseModel):
    """A rule with findings, and the worst level of them."""

    rule: str
    level: Level


class DecisionRow(ResponseModel):
    """A decision in a list. Texts are cut after 300 characters.

    Attributes:
        number: its number in the store; it stays the same as long as the console runs, and in a database for ever.
        outcome: refused, would-be-refused, repaired, would-be-repaired, warned, allowed or not-reviewed.
        time, endpoint, operation, dry_run, user, namespace, kind, name: as in its audit line.
        id: of the decision; empty if the line has none of twelve hexadecimal digits.
        repair: of a validation, the number of the repair of the same new pod, if it is in the same list or shortly before it.
        rules: the rules with findings.
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


@operation("GET", "/decisions")
def decisions(state: ConsoleState, wanted: DecisionsRequest) -> DecisionList:
    """Recorded decisions, newest first."""
    source = state.decisions
    if source is None:
        return DecisionList()
    page = source.store.page(wanted.filter(), before=wanted.before, after=wanted.after, limit=wanted.limit)
    repairs = pairs_among(page.entries)
    if wanted.after is not None:  # the repair may have been in the response before
        lone = [each for each in page.entries if each.decision.endpoint == "validate" and each.number not in repairs]
        found = {number: pair_of(source.store, number, decision) for number, decision in lone[:MAX_LONE]}
        repairs |= {number: repair for number, repair in found.items() if repair is not None}
    return DecisionList(
        entries=tuple([_row(entry, repairs.get(entry.number)) for entry in page.entries]),
        older=page.older,
        newer=page.newer,
        newest=page.newest,
        left_out=page.left_out,
        log=log_status(state),
    )


@operation("GET", "/decisions/<int:number>", whole=True)
def decision(state: ConsoleState, wanted: DecisionRequest) -> DecisionInFull:
    """A recorded decision in full."""
    source, found = find(state, wanted.number)
    return DecisionInFull(
        number=wanted.number,
        outcome=found.word,
        decision=replace(
            found, patch=shallow(found.patch), request=shallow(found.request), digests=shallow(found.digests)
        ),
        current=dict(state.snapshot.digests),
        pair=pair_of(source.store, wanted.number, found),
    )


def find(state: ConsoleState, number: int) -> tuple[DecisionSource, Decision]:
    """A decision, and the source that has it.

    Raises:
        NotFound: there is none.
    """
    if state.decisions is None:
        raise NotFound(NO_LOG)
    found = state.decisions.store.decision(number)
    if found is None:
        raise NotFound(f"there is no decision {number}; /decisions lists those that are stored")
    return state.decisions, found


def number_of(state: ConsoleState, decision_id: str) -> int:
    """The number of the decision with an id, which a refusal contains.

    Raises:
        NotFound: the store holds none with that id.
    """
    if state.decisions is None:
        raise NotFound(NO_LOG)
    found = state.decisions.store.page(Filter(id=decision_id), limit=1).entries
    if not found:
        raise NotFound(
            f"there is no decision {decision_id} here; each replica has a log of its own, and `vgpu-webhook decisions "
            f"--id {decision_id} FILE` finds older decisions"
        )
    return found[0].number


def _row(stored: NumberedDecision, repair: int | None) -> DecisionRow:
    number, found = stored
    record = to_record(found)
    rules = [RuleLevel(rule=rule, level=level) for rule, level in worst_levels(found.findings).items()]
    values = {key: brief(record[key], MAX_TEXT) for key in _ROW}
    own = {"number": number, "outcome": found.word, "rules": rules[:MAX_RULES], "repair": repair}
    return DecisionRow.model_validate(values | own | {"id": found.id if is_id(found.id) else ""})


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


def page(state: ConsoleState) -> str:
    """The list with its filters, charts and counts."""
    wanted = decisions.parse_query(request.args)
    found = decisions.run(state, wanted)
    summary = sum_up(state, wanted)
    return render_template(
        "decisions.html",
        found=found,
        objects=object_rows(found.entries),
        presets=PRESETS,
        summed=to_decision_summary(summary),
        drawn=history(summary, wanted),
        wanted=wanted,
        wider=wider(wanted, ("rule", "namespace", "name", "user")),
        words=WORDS,
        rules=sorted(row.id for row in rows()),
        top=REFUSED,
        others=OTHERS,
    )


SECTION = Section(
    operations=(decisions, decisions_summary, decision),
    pages=(ConsolePage("GET", "/decisions", "decisions", page),),
    menu="Decisions",
)
