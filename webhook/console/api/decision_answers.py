"""What is answered about recorded decisions."""

from typing import Any

from pydantic import Field

from webhook.console.api.findings import Finding
from webhook.console.api.operation import Answer


class Spoke(Answer):
    """A rule that spoke, and the worst level at which it did."""

    rule: str
    level: str


class Outline(Answer):
    """A decision in few words.

    Attributes:
        number: its place in the journal; it stays as long as the console runs.
        time: when.
        endpoint: `mutate` or `validate`.
        outcome: denied, would-be-denied, mutated, would-be-mutated, warned, allowed or untouched.
        operation, dry_run, user, namespace, kind, name: of the request.
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


class Listed(Outline):
    """A decision in a line. Of texts longer than 300 characters the beginning is told.

    Attributes:
        rules: that spoke.
    """

    rules: tuple[Spoke, ...]


class SkippedLines(Answer):
    """Lines that are no decisions: something else, cut off at the end of a file, too long."""

    foreign: int
    truncated: int
    too_long: int


class Reading(Answer):
    """How it stands with the journal.

    Attributes:
        given: False if the console was started without an audit log.
        count: how many decisions it holds.
        oldest, newest: the numbers of the first and the last; 0 if there are none. Before the oldest, others were forgotten.
        progress: what part of the log is read, from 0 to 1.
        caught_up: whether everything there was is read.
        problem: what of the log cannot be read, and what to do; None if all of it can.
        skipped: lines that are no decisions.
    """

    given: bool
    count: int
    oldest: int
    newest: int
    progress: float
    caught_up: bool
    problem: str | None
    skipped: SkippedLines


class Decisions(Answer):
    """Decisions, newest first.

    Attributes:
        entries: they.
        older: ask `before` it for the next page; None if there are no more.
        newer: likewise for the page before this one; 0 if that is the first, None if this is.
        newest: ask `after` it for what comes. Less than what was asked `after` if the console was started anew.
        left_out: with `after`, how many that match lie between it and these.
        journal: how it stands with the journal.
    """

    entries: tuple[Listed, ...]
    older: int | None
    newer: int | None
    newest: int
    left_out: int
    journal: Reading


class DecisionInFull(Outline):
    """A decision as its audit line has it, and what can be told of it.

    Attributes:
        id, uid, allowed, findings, patch, request, digests, duration_us, client_verified: of the line.
        enforcement: `enforce`; with `warn` and `audit`, findings of level deny did not refuse and the patch was not made.
        current: the digests of now.
        pair: the number of the line that the other endpoint wrote about the same pod; None if that cannot be told.
    """

    id: str
    uid: str
    allowed: bool
    findings: tuple[Finding, ...]
    patch: list[dict[str, Any]]
    request: dict[str, Any]
    digests: dict[str, Any]
    duration_us: int
    client_verified: bool
    enforcement: str
    current: dict[str, str]
    pair: int | None


class Counted(Answer):
    """How many decisions there were of a rule, namespace or user, and how many of them had which consequence.

    Attributes:
        name: of the rule, namespace or user.
        decisions: how many.
        denied: how many were refused.
        would_be_denied: how many were not refused only because the policy did not enforce.
        warned: how many warned their author.
        audited: how many were only recorded.
    """

    name: str
    decisions: int
    denied: int
    would_be_denied: int
    warned: int
    audited: int


class RefusedTimes(Answer):
    """Who was refused by which rule, and how often; `enforced` is False for those who only would have been refused."""

    rule: str
    namespace: str
    user: str
    enforced: bool
    times: int


class OverTime(Answer):
    """Counts in steps of time.

    Attributes:
        step_seconds: how long a step is.
        begin: when the first begins; None if nothing is counted.
        counts: by name, a number a step.
    """

    step_seconds: int
    begin: str | None = Field(alias="from")
    counts: dict[str, tuple[int, ...]]


class Summed(Answer):
    """Decisions summed up. Of rules, namespaces, users and refusals the top 100 are told.

    Attributes:
        decisions: how many.
        first, last: when the earliest and the latest was made.
        outcomes, endpoints: how many of each.
        dry_runs: how many would have stored nothing anyway.
        rules, namespaces, users: the most refused first.
        refused: by rule, namespace and user.
        left_out: of `rules`, `namespaces`, `users` and `refused`, how many are not told.
        outcomes_over_time: by outcome.
        denials_by_rule, denials_by_namespace: over time.
    """

    decisions: int
    first: str | None
    last: str | None
    outcomes: dict[str, int]
    endpoints: dict[str, int]
    dry_runs: int
    rules: tuple[Counted, ...]
    namespaces: tuple[Counted, ...]
    users: tuple[Counted, ...]
    refused: tuple[RefusedTimes, ...]
    left_out: dict[str, int]
    outcomes_over_time: OverTime
    denials_by_rule: OverTime
    denials_by_namespace: OverTime
