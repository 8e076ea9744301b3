"""The audit log: decisions that match, summed up, and one in full."""

from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.audit.decision import Decision, spell_time, to_record, worst_levels
from webhook.audit.filters import Filter
from webhook.audit.journal import Journal
from webhook.audit.pairs import pair_of
from webhook.audit.store import Stored
from webhook.console.api.bounds import MAX_TEXT, shallow
from webhook.console.api.decision_answers import (
    DecisionInFull,
    Decisions,
    Listed,
    Reading,
    SkippedLines,
    Spoke,
    Summed,
)
from webhook.console.api.decision_summary import summary
from webhook.console.api.filters import FilterQuestion
from webhook.console.api.findings import to_findings
from webhook.console.api.operation import Method, Operation, Question
from webhook.console.state import State
from webhook.texts import shorten

MAX_ENTRIES = 1000
MAX_RULES = 50  # told of one entry
NO_LOG = "no audit log is read; start the console with --audit-log FILE"

_NOTHING = Reading(
    given=False,
    count=0,
    oldest=0,
    newest=0,
    progress=1.0,
    caught_up=True,
    problem=None,
    skipped=SkippedLines(foreign=0, truncated=0, too_long=0),
)


class DecisionsQuestion(FilterQuestion):
    """Which decisions are asked for, and which part of them."""

    before: int | None = Field(default=None, ge=1, le=2**53, description="older than the decision of that number")
    after: int | None = Field(default=None, ge=0, le=2**53, description="newer than the decision of that number")
    limit: int = Field(default=100, ge=1, le=MAX_ENTRIES, description="at most so many")


class DecisionQuestion(Question):
    """Which decision is asked for."""

    number: int = Field(ge=0, le=2**53, description="its place in the journal, as /decisions tells it")


def decisions(state: State, question: DecisionsQuestion) -> Decisions:
    """Decisions that match, newest first."""
    wanted, limit = question.filter(), question.limit
    journal = state.journal
    if journal is None:
        return Decisions(entries=(), older=None, newer=None, newest=0, left_out=0, journal=_NOTHING)
    page = journal.store.page(wanted, before=question.before, after=question.after, limit=limit)
    return Decisions(
        entries=tuple([_listed(entry) for entry in page.entries]),
        older=page.older,
        newer=page.newer,
        newest=page.newest,
        left_out=page.left_out,
        journal=reading(journal),
    )


def decision(state: State, question: DecisionQuestion) -> DecisionInFull:
    """One decision.

    Raises:
        NotFound: the journal does not hold it.
    """
    journal, found = find(state, question.number)
    kept = {"patch": shallow(found.patch), "request": shallow(found.request), "digests": shallow(found.digests)}
    more = {
        "number": question.number,
        "outcome": found.word,
        "findings": to_findings(found.findings),
        "current": dict(state.snapshot.digests),
        "pair": pair_of(journal.store, question.number, found),
    }
    return DecisionInFull.model_validate(to_record(found) | kept | more)


def find(state: State, number: int) -> tuple[Journal, Decision]:
    """A decision, and the journal that holds it.

    Raises:
        NotFound: there is none.
    """
    if state.journal is None:
        raise NotFound(NO_LOG)
    found = state.journal.store.decision(number)
    if found is None:
        raise NotFound(f"the journal holds no decision {number}; /decisions lists those that it holds")
    return state.journal, found


def number_of(state: State, decision_id: str) -> int:
    """The number of a decision whose id is known: of a new pod, its author has only the id in the refusal.

    Raises:
        NotFound: the journal holds none of that id.
    """
    if state.journal is None:
        raise NotFound(NO_LOG)
    found = state.journal.store.page(Filter(id=decision_id), limit=1).entries
    if not found:
        raise NotFound(
            f"the journal holds no decision {decision_id}; each replica has a log of its own, and for older decisions "
            f"there is `vgpu-webhook audit --id {decision_id} FILE`"
        )
    return found[0].number


def reading(journal: Journal) -> Reading:
    """How it stands with the journal."""
    skipped, extent = journal.skipped, journal.store.extent()
    return Reading(
        given=True,
        count=extent.count,
        oldest=extent.first,
        newest=extent.last,
        progress=journal.progress,
        caught_up=journal.caught_up,
        problem=journal.problem,
        skipped=SkippedLines(foreign=skipped.foreign, truncated=skipped.truncated, too_long=skipped.too_long),
    )


def _listed(stored: Stored) -> Listed:
    number, entry = stored
    spoke = worst_levels(entry.findings).items()
    rules = [Spoke(rule=shorten(rule, MAX_TEXT), level=level.value) for rule, level in spoke]
    return Listed(
        number=number,
        time=spell_time(entry.at),
        endpoint=entry.endpoint,
        outcome=entry.word,
        operation=shorten(entry.operation, MAX_TEXT),
        dry_run=entry.dry_run,
        user=shorten(entry.user, MAX_TEXT),
        namespace=shorten(entry.namespace, MAX_TEXT),
        kind=shorten(entry.kind, MAX_TEXT),
        name=shorten(entry.name, MAX_TEXT),
        rules=tuple(rules[:MAX_RULES]),
    )


OPERATIONS = (
    Operation(
        "decisions",
        Method.GET,
        "/decisions",
        "Recorded decisions, newest first",
        DecisionsQuestion,
        Decisions,
        decisions,
    ),
    Operation(
        "decisionsSummary", Method.GET, "/decisions/summary", "Decisions summed up", FilterQuestion, Summed, summary
    ),
    Operation(
        "decision",
        Method.GET,
        "/decisions/<int:number>",
        "A recorded decision in full",
        DecisionQuestion,
        DecisionInFull,
        decision,
    ),
)
