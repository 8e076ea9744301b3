"""The rules: what each does and why, its level in a namespace, and an example with what the engine answers to it."""

from typing import Annotated, Any, Literal

from flask import render_template, request
from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.console.api import ConsolePage, RequestModel, ResponseModel, Section, operation
from webhook.console.state import ConsoleState
from webhook.console.texts import MAX_NAME
from webhook.emit import difference
from webhook.rules.levels import LevelTable
from webhook.rules.settings import Level
from webhook.suites.rulebook import REPAIR, RuleEntry, rows


class LevelsRequest(RequestModel):
    """Which levels to return."""

    namespace: Annotated[
        str,
        Field(max_length=MAX_NAME, description="whose levels; without it those of a namespace that no entry matches"),
    ] = ""


class RulesRequest(LevelsRequest):
    """Which rules to return."""

    search: Annotated[
        str, Field(max_length=MAX_NAME, description="words of the rule's id or description; without it all rules")
    ] = ""


class RuleRequest(LevelsRequest):
    """Which rule to return."""

    id: Annotated[str, Field(max_length=100, description="the rule's id")]
    kind: Annotated[
        Literal["mutation", "validation"] | None,
        Field(description="which of a mutation and a validation with the same id; without it the mutation"),
    ] = None


class RuleOutline(ResponseModel):
    """A rule and its level.

    Attributes:
        id: of the rule.
        kind: `mutation` or `validation`.
        default: the level of a validation without a policy; `repair` for a mutation.
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


class RuleList(ResponseModel):
    """Rules, with their levels in one namespace.

    Attributes:
        namespace: which.
        entry: the index of the entry of the policy's `namespaces` that applies; None if none does.
        exempt: pods of this namespace are not reviewed.
        enforcement: `enforce`; with `warn` and `audit` nothing is refused or repaired there.
        rules: mutations in the order in which they run, then validations in the order of their findings.
    """

    namespace: str
    entry: int | None
    exempt: bool
    enforcement: str
    rules: tuple[RuleOutline, ...]


class ExampleLine(ResponseModel):
    """A line of a diff: its mark (` `, `-`, `+`; `@` for a field path) and its text."""

    mark: str
    text: str


class ExampleMessage(ResponseModel):
    """A message to the user, and whether it refuses (`deny`) or warns."""

    level: Level
    text: str


class ExampleResponse(ResponseModel):
    """A pod that the rule changes or complains about.

    Attributes:
        conditions: settings that differ from the samples, by dotted path.
        manifest: the pod as it is written.
        diff: how it is changed.
        messages: to its user.
    """

    conditions: dict[str, Any]
    manifest: str
    diff: tuple[ExampleLine, ...]
    messages: tuple[ExampleMessage, ...]


class RuleInFull(RuleOutline):
    """A rule with its description and example.

    Attributes:
        text: the description in its file: what it reads, refuses or writes, and why.
        file: where it is implemented.
        example: a pod for it.
    """

    text: str
    file: str
    example: ExampleResponse


@operation("GET", "/rules")
def rules(state: ConsoleState, wanted: RulesRequest) -> RuleList:
    """The rules that match, with their levels in a namespace."""
    table = state.snapshot.levels
    entry = table.winning_entry(wanted.namespace)
    effective = table.at(entry)
    return RuleList(
        namespace=wanted.namespace,
        entry=entry,
        exempt=effective.exempt,
        enforcement=effective.enforcement.value,
        rules=tuple(RuleOutline(**_outline(row, state, entry)) for row in rows() if _matches(row, wanted.search)),
    )


@operation("GET", "/rules/<id>", whole=True)
def rule(state: ConsoleState, wanted: RuleRequest) -> RuleInFull:
    """A rule, with its example."""
    row = next((row for row in rows() if row.id == wanted.id and wanted.kind in (None, row.kind)), None)
    if row is None:
        raise NotFound(f"no rule is called {wanted.id!r}; /rules lists them")
    outline = _outline(row, state, state.snapshot.levels.winning_entry(wanted.namespace))
    return RuleInFull(**outline, text=row.text, file=row.file, example=_example(row))


def _matches(row: RuleEntry, search: str) -> bool:
    """Whether a rule has all words that are searched for."""
    text = f"{row.id} {row.what} {row.text}".lower()
    return all(word in text for word in search.lower().split())


def _outline(row: RuleEntry, state: ConsoleState, entry: int | None) -> dict[str, Any]:
    level, source, active = _level(row, state.snapshot.levels, entry)
    if row.level == REPAIR:
        active = active and any(mutation.id == row.id for mutation in state.snapshot.mutations)
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


def _level(row: RuleEntry, table: LevelTable, entry: int | None) -> tuple[str, str, bool]:
    effective = table.at(entry)
    if row.level == REPAIR:
        switched = table.switched(entry)[row.id]
        return REPAIR, switched.source.value, switched.value and not effective.exempt
    active = not effective.exempt and any(validation.id == row.id for validation, _ in effective.active)
    return effective.levels[row.id].value, table.written(entry)[row.id].source.value, active


def _example(row: RuleEntry) -> ExampleResponse:
    found = row.example()
    changes = difference(found.request.object, found.outcome.object) if row.level == REPAIR else []
    return ExampleResponse(
        conditions=found.conditions,
        manifest=found.manifest,
        diff=tuple(ExampleLine(mark=line.mark, text=line.text) for line in changes),
        messages=tuple(ExampleMessage(level=level, text=text) for level, text in found.messages),
    )


def page(state: ConsoleState) -> str:
    """The list of all rules."""
    wanted = rules.parse_query(request.args)
    return render_template("rules.html", found=rules.run(state, wanted), search=wanted.search)


def rule_page(state: ConsoleState, rule_id: str) -> str:
    """One rule with its example."""
    wanted = rule.parse_query(request.args, id=rule_id)
    return render_template("rule.html", rule=rule.run(state, wanted), kind=wanted.kind, namespace=wanted.namespace)


SECTION = Section(
    operations=(rules, rule),
    pages=(ConsolePage("GET", "/rules", "rules", page), ConsolePage("GET", "/rules/<rule_id>", "rule", rule_page)),
    menu="Rules",
)
