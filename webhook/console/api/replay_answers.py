"""What is answered about decisions that are made again."""

from typing import Any

from webhook.console.api.findings import Finding
from webhook.console.api.operation import Answer


class ChangedLevel(Answer):
    """A rule that speaks then and now, at another level."""

    rule: str
    before: str
    after: str


class ReplayedOne(Answer):
    """A decision and what would become of it.

    Attributes:
        number: its place in the journal.
        verdict: `same`, `changed`, `not reproduced` or `not replayable`.
        direction: in which way it changes; None if it does not.
        reason: why it is not replayable.
        other_inputs: of `config`, `policy` and `fleet` those that were others when it was made.
        allowed_before, allowed_after: the verdicts; None after if it is not made again.
        findings_before, findings_after: all of them.
        gained, lost: findings of now that were not there then, and the other way round.
        level_changes: rules whose findings stand where they stood, at another level.
        patch_before, patch_after: the JSON patches.
        repaired_by: the line of the mutation whose pod was repaired again for this; None if there is none.
    """

    number: int
    verdict: str
    direction: str | None
    reason: str | None
    other_inputs: tuple[str, ...]
    allowed_before: bool
    allowed_after: bool | None
    findings_before: tuple[Finding, ...]
    findings_after: tuple[Finding, ...]
    gained: tuple[Finding, ...]
    lost: tuple[Finding, ...]
    level_changes: tuple[ChangedLevel, ...]
    patch_before: list[dict[str, Any]]
    patch_after: list[dict[str, Any]]
    repaired_by: int | None


class Who(Answer):
    """Somebody or something, and how many decisions."""

    name: str
    decisions: int


class ChangedAlike(Answer):
    """Decisions that change alike.

    Attributes:
        direction: in which way.
        explained: False if they were made with these inputs, and yet come out otherwise.
        gained, lost: rules that speak now and did not then, and the other way round; of other mutations, the places.
        level_changes: rules whose findings stand where they stood, at another level.
        count: how many.
        namespaces, users: for whom; the most frequent ten.
        more_namespaces, more_users: how many others there are.
        example: the number of the first; None if the journal no longer holds it.
        example_name: of its object.
    """

    direction: str
    explained: bool
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    level_changes: tuple[ChangedLevel, ...]
    count: int
    namespaces: tuple[Who, ...]
    users: tuple[Who, ...]
    more_namespaces: int
    more_users: int
    example: int | None
    example_name: str


class ReplayedMany(Answer):
    """What becomes of many decisions.

    Attributes:
        replayed: how many were made again, oldest first.
        complete: False if the time or the number of decisions that is allowed was over before the last.
        until: when the last of them was made; None if there is none.
        seconds: that it took.
        verdicts, directions: how many of each.
        groups: what changes alike, the gravest first, then the most frequent; at most 100.
        more_groups: how many there are besides.
        reasons: why so many are not replayable.
        command: a shell command that answers the same for all that the log holds.
    """

    replayed: int
    complete: bool
    until: str | None
    seconds: float
    verdicts: dict[str, int]
    directions: dict[str, int]
    groups: tuple[ChangedAlike, ...]
    more_groups: int
    reasons: dict[str, int]
    command: str


class Replays(Answer):
    """One decision or many, as was asked; the other is None."""

    one: ReplayedOne | None
    many: ReplayedMany | None
