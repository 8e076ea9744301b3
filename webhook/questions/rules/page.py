"""The rules: what each does and why, its level in a namespace, and an example with what the engine answers to it."""

from typing import Annotated, Any

from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.console.pages import Section
from webhook.console.state import ConsoleState
from webhook.console.texts import MAX_NAME
from webhook.output.difference import MarkedLine, difference
from webhook.output.json import ResponseModel
from webhook.policy.policy import Policy
from webhook.rules.choices import Level
from webhook.settings.table import POLICY, SETTING_NAMES
from webhook.suites.rulebook import REPAIR, RuleEntry, rows

SECTION = Section("Rules", shows=[SETTING_NAMES[POLICY.part]])

Namespace = Annotated[
    str, Field(max_length=MAX_NAME, description="whose levels; without it those of a namespace that no entry matches")
]
Search = Annotated[
    str, Field(max_length=MAX_NAME, description="words of the rule's id or description; without it all rules")
]
RuleId = Annotated[str, Field(max_length=100, description="the rule's id")]


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
    diff: tuple[MarkedLine, ...]
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


@SECTION.page("/rules", "rules.html")
def rules(state: ConsoleState, namespace: Namespace = "", search: Search = "") -> RuleList:
    """The rules that match, with their levels in a namespace."""
    table = state.snapshot.policy
    entry = table.winning_entry(namespace)
    effective = table.at(entry)
    return RuleList(
        namespace=namespace,
        entry=entry,
        exempt=effective.exempt,
        enforcement=effective.enforcement.value,
        rules=tuple(RuleOutline(**_outline(row, state, entry)) for row in rows() if _matches(row, search)),
    )


@SECTION.page("/rules/<id>", "rule.html", whole=("text", "example"))
def rule(state: ConsoleState, id: RuleId, namespace: Namespace = "") -> RuleInFull:  # noqa: A002
    """A rule, with its example."""
    row = next((row for row in rows() if row.id == id), None)
    if row is None:
        raise NotFound(f"no rule is called {id!r}; /rules lists them")
    outline = _outline(row, state, state.snapshot.policy.winning_entry(namespace))
    return RuleInFull(**outline, text=row.text, file=row.file, example=_example(row))


def _matches(row: RuleEntry, search: str) -> bool:
    """Whether a rule has all words that are searched for."""
    text = f"{row.id} {row.what} {row.text}".lower()
    return all(word in text for word in search.lower().split())


def _outline(row: RuleEntry, state: ConsoleState, entry: int | None) -> dict[str, Any]:
    level, source, active = _level(row, state.snapshot.policy, entry)
    if row.level == REPAIR:
        active = active and any(mutation.id == row.id for mutation in state.snapshot.mutations)
    own = {key: getattr(row, key) for key in ("id", "kind", "what", "why")}
    return own | {"default": row.level, "level": level, "source": source, "active": active}


def _level(row: RuleEntry, table: Policy, entry: int | None) -> tuple[str, str, bool]:
    effective = table.at(entry)
    if row.level == REPAIR:
        switched = table.switched(entry)[row.id]
        return REPAIR, switched.source.value, switched.value and not effective.exempt
    active = not effective.exempt and any(validation.id == row.id for validation, _ in effective.active)
    return effective.levels[row.id].value, table.written(entry)[row.id].source.value, active


def _example(row: RuleEntry) -> ExampleResponse:
    shown = row.example()
    changes = difference(shown.request.object, shown.outcome.object) if row.level == REPAIR else []
    return ExampleResponse(
        conditions=shown.conditions,
        manifest=shown.manifest,
        diff=tuple(changes),
        messages=tuple(ExampleMessage(level=level, text=text) for level, text in shown.messages),
    )
