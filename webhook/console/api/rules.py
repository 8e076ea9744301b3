"""Every rule: what it does and why, its level in a namespace, an example and what the engine says to it."""

from typing import Annotated, Any, Literal

from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.console.api.operation import Answer, Method, Operation, Question
from webhook.console.state import State
from webhook.offline.rulebook import REPAIR, Row, rows
from webhook.render.yaml import difference
from webhook.rules.levels import LevelTable

MAX_NAMESPACE = 253

_Namespace = Annotated[
    str,
    Field(max_length=MAX_NAMESPACE, description="whose levels; without it those of a namespace that no entry names"),
]


class RulesQuestion(Question):
    """Which levels are asked for."""

    namespace: _Namespace = ""


class RuleQuestion(Question):
    """Which rule is asked for."""

    id: Annotated[str, Field(max_length=100, description="the rule's id")]
    kind: Annotated[
        Literal["mutation", "validation"] | None,
        Field(description="which, where a mutation and a validation share an id; without it the mutation"),
    ] = None
    namespace: _Namespace = ""


class Rule(Answer):
    """A rule in a line.

    Attributes:
        id: the rule's.
        kind: `mutation` or `validation`.
        default: the level that a validation has by itself; `repair` for a mutation.
        level: the level in the namespace.
        source: the part of the policy that sets it: `default`, `rules`, `repairs` or `namespaces`.
        active: False if it does nothing there: it is off, its setting is off, or the namespace is exempt.
        what: what it does, in a sentence.
        why: the reason.
    """

    id: str
    kind: str
    default: str
    level: str
    source: str
    active: bool
    what: str
    why: str


class Rules(Answer):
    """All rules, as they hold in one namespace.

    Attributes:
        namespace: which.
        entry: the entry of the policy's `namespaces` that decides there, from 0; None if none does.
        exempt: pods pass untouched there.
        enforcement: `enforce`; with `warn` and `audit` nothing is refused or repaired there.
        rules: mutations in the order they run, then validations in the order they are told.
    """

    namespace: str
    entry: int | None
    exempt: bool
    enforcement: str
    rules: tuple[Rule, ...]


class DiffLine(Answer):
    """A line of a diff: its mark (` `, `-`, `+`; `@` for a field path) and its text."""

    mark: str
    text: str


class Message(Answer):
    """What the author is told, and whether that refuses (`deny`) or warns."""

    level: str
    text: str


class Example(Answer):
    """A pod about which the rule speaks, and what the engine answers.

    Attributes:
        conditions: what differs from the samples, by dotted path.
        manifest: the pod, as it is written.
        diff: what becomes of it.
        messages: what its author is told.
    """

    conditions: dict[str, Any]
    manifest: str
    diff: tuple[DiffLine, ...]
    messages: tuple[Message, ...]


class RuleInFull(Rule):
    """A rule with all that is known of it.

    Attributes:
        text: what its file says: what it reads, refuses or writes, and why.
        file: where it is written.
        example: it at work.
    """

    text: str
    file: str
    example: Example


def every_rule(state: State, question: RulesQuestion) -> Rules:
    """All rules, as they hold in a namespace."""
    table = state.snapshot.levels
    entry = table.decider(question.namespace)
    holds = table.at(entry)
    found = [Rule(**_line(row, state, entry)) for row in rows()]
    return Rules(
        namespace=question.namespace,
        entry=entry,
        exempt=holds.exempt,
        enforcement=holds.enforcement.value,
        rules=tuple(found),
    )


def one_rule(state: State, question: RuleQuestion) -> RuleInFull:
    """One rule, with its example.

    Raises:
        NotFound: there is none with that id.
    """
    named = [row for row in rows() if row.id == question.id and question.kind in (None, row.kind)]
    row = next(iter(named), None)
    if row is None:
        raise NotFound(f"no rule is called {question.id!r}; /rules lists them")
    line = _line(row, state, state.snapshot.levels.decider(question.namespace))
    return RuleInFull(**line, text=row.text, file=row.file, example=_example(row))


def _line(row: Row, state: State, entry: int | None) -> dict[str, Any]:
    level, source, active = _level(row, state.snapshot.levels, entry)
    if row.level == REPAIR:
        active = active and any(rule.id == row.id for rule in state.snapshot.mutations)
    return {
        "id": row.id,
        "kind": row.kind,
        "default": row.level,
        "level": level,
        "source": source,
        "active": active,
        "what": row.what,
        "why": row.why,
    }


def _level(row: Row, table: LevelTable, entry: int | None) -> tuple[str, str, bool]:
    holds = table.at(entry)
    if row.level == REPAIR:
        switched = table.switched(entry)[row.id]
        return REPAIR, switched.source.value, switched.on and not holds.exempt
    written = table.written(entry)[row.id]
    level = holds.levels[row.id]
    return level.value, written.source.value, not holds.exempt and any(rule.id == row.id for rule, _ in holds.active)


def _example(row: Row) -> Example:
    example = row.example()
    changes = difference(example.request.object, example.outcome.object) if row.level == REPAIR else []
    return Example(
        conditions=example.conditions,
        manifest=example.manifest,
        diff=tuple(DiffLine(mark=line.mark, text=line.text) for line in changes),
        messages=tuple(Message(level=level.value, text=text) for level, text in example.messages),
    )


OPERATIONS = (
    Operation(
        "rules", Method.GET, "/rules", "All rules, as they hold in a namespace", RulesQuestion, Rules, every_rule
    ),
    Operation("rule", Method.GET, "/rules/<id>", "A rule, with its example", RuleQuestion, RuleInFull, one_rule),
)
