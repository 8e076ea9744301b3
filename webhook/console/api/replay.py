"""Decisions made again, with the inputs of now or with others that are tried out."""

import shlex
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from pydantic import Field
from werkzeug.exceptions import BadRequest

from webhook.audit.changes import Changes, Group, Kind
from webhook.audit.decision import Decision, spell_time
from webhook.audit.filters import Filter
from webhook.audit.inputs import MAX_SPLIT
from webhook.audit.journal import Journal
from webhook.audit.pairs import APART, Pending, moved, repairs_before
from webhook.audit.repairs import content_after
from webhook.audit.replay import Direction, Replayer, Verdict
from webhook.console.api.bounds import MAX_TEXT, shallow
from webhook.console.api.decisions import find
from webhook.console.api.filters import FilterQuestion
from webhook.console.api.findings import to_findings
from webhook.console.api.operation import Method, Operation
from webhook.console.api.replay_answers import ChangedAlike, ChangedLevel, ReplayedMany, ReplayedOne, Replays, Who
from webhook.console.state import State
from webhook.review import Snapshot
from webhook.rules.base import Level
from webhook.texts import shorten

MAX_DECISIONS = 100_000
MAX_SECONDS = 10.0
MAX_SETTINGS = 50
MAX_GROUPS = 100
NAMES = 10  # of each group

_ORDER = {direction: place for place, direction in enumerate(Direction)}

_Setting = Annotated[str, Field(max_length=1000)]


class ReplayQuestion(FilterQuestion):
    """One decision by its number, or all that match; and what to try out."""

    number: int | None = Field(default=None, ge=0, le=2**53, description="one decision; without it, all that match")
    settings: tuple[_Setting, ...] = Field(
        default=(), max_length=MAX_SETTINGS, description="KEY=VALUE of the policy, such as rules.host-access=deny"
    )
    split: int | None = Field(default=None, ge=1, le=MAX_SPLIT, description="slices of each vGPU card of the fleet")


def replays(state: State, question: ReplayQuestion) -> Replays:
    """Make decisions again.

    Raises:
        NotFound: the journal does not hold the decision.
        BadRequest: one decision and a filter are asked for at a time.
        ConfigError: a setting cannot be used.
    """
    base, tried = state.snapshot, state.tried(question.settings, question.split)
    if question.number is None:
        return Replays(one=None, many=_many(state, question, tried))
    if question.query():
        raise BadRequest("number: ask for one decision or for all that match a filter, not for both")
    journal, decision = find(state, question.number)
    return Replays(one=_one(journal, question.number, decision, Replayer(base, tried)), many=None)


def _one(journal: Journal, number: int, decision: Decision, replayer: Replayer) -> ReplayedOne:
    repaired_by = None
    if decision.endpoint == "validate":
        content = content_after(decision)
        for at, repair in repairs_before(journal.store, number, decision):
            replayer.note(repair)
            if repair.patch and content_after(repair) == content:
                repaired_by = at
    found = replayer.replay(decision)
    outcome = found.outcome
    after = outcome.violations if outcome else ()
    unchanged = found.verdict is Verdict.SAME and outcome is None
    return ReplayedOne(
        number=number,
        verdict=found.verdict.value,
        direction=found.direction and found.direction.value,
        reason=found.reason or None,
        other_inputs=found.other,
        allowed_before=decision.allowed,
        allowed_after=decision.allowed if unchanged else outcome.allowed if outcome else None,
        findings_before=to_findings(decision.findings),
        findings_after=to_findings(decision.findings if unchanged else after),
        gained=to_findings(found.gained),
        lost=to_findings(found.lost),
        level_changes=_changed_levels(
            (change.before.rule, change.before.level, change.after.level) for change in found.level_changes
        ),
        patch_before=shallow(decision.patch),
        patch_after=shallow(decision.patch if unchanged else list(outcome.operations) if outcome else []),
        repaired_by=repaired_by,
    )


def _many(state: State, question: ReplayQuestion, tried: Snapshot) -> ReplayedMany:
    """Go through the log until the time is over."""
    journal, base = state.journal, state.snapshot
    begun, wanted, changes = time.monotonic(), question.filter(), Changes()
    replayer, pending, last, replayed, complete = Replayer(base, tried), Pending(), None, 0, True
    for decision in journal.store.decisions(_with_repairs(wanted)) if journal else ():
        if replayed >= MAX_DECISIONS or time.monotonic() - begun > MAX_SECONDS:
            complete = False
            break
        if wanted.admits(decision):
            if decision.endpoint == "validate":
                for repair in pending.take(decision):
                    replayer.note(repair)
            changes.add(replayer.replay(decision))
            replayed, last = replayed + 1, decision
        else:
            pending.add(decision)
    groups = sorted(changes.groups.items(), key=lambda item: (_ORDER[item[0].direction], -item[1].count, item[0]))
    return ReplayedMany(
        replayed=replayed,
        complete=complete,
        until=last and spell_time(last.at),
        seconds=round(time.monotonic() - begun, 3),
        verdicts={verdict.value: count for verdict, count in changes.verdicts.items()},
        directions={direction.value: count for direction, count in changes.directions.items()},
        groups=tuple([_alike(journal, kind, group) for kind, group in groups[:MAX_GROUPS] if journal]),
        more_groups=max(0, len(groups) - MAX_GROUPS) + changes.left_out,
        reasons=dict(changes.reasons),
        command=_command(state, question, wanted),
    )


def _with_repairs(wanted: Filter) -> Filter:
    """A wider filter: with the mutations of the pods whose judgements are asked for."""
    since = wanted.since and moved(wanted.since, -APART)
    return replace(wanted, since=since, denied=False, rules=(), names=(), words=(), endpoint=None)


def _alike(journal: Journal, kind: Kind, group: Group) -> ChangedAlike:
    decision = group.example.decision
    return ChangedAlike(
        direction=kind.direction.value,
        explained=kind.explained,
        gained=tuple([shorten(text, MAX_TEXT) for text in kind.gained[:MAX_GROUPS]]),
        lost=tuple([shorten(text, MAX_TEXT) for text in kind.lost[:MAX_GROUPS]]),
        level_changes=_changed_levels(kind.level_changes),
        count=group.count,
        namespaces=_who(group.namespaces),
        users=_who(group.users),
        more_namespaces=max(0, len(group.namespaces) - NAMES),
        more_users=max(0, len(group.users) - NAMES),
        example=_number(journal, decision),
        example_name=shorten(f"{decision.kind}/{decision.name}", MAX_TEXT),
    )


def _changed_levels(found: Iterable[tuple[str, Level, Level]]) -> tuple[ChangedLevel, ...]:
    different = list(dict.fromkeys(found))[:MAX_GROUPS]
    return tuple(
        [ChangedLevel(rule=shorten(rule, MAX_TEXT), before=a.value, after=b.value) for rule, a, b in different]
    )


def _number(journal: Journal, decision: Decision) -> int | None:
    until = moved(decision.at, timedelta(microseconds=1))
    at = Filter(since=decision.at, until=until, endpoint=decision.endpoint, id=decision.id)
    found = journal.store.following(at, 0, 1)
    return found[0].number if found else None


def _who(names: Counter[str]) -> tuple[Who, ...]:
    return tuple([Who(name=shorten(name, MAX_TEXT), decisions=count) for name, count in names.most_common(NAMES)])


def _command(state: State, question: ReplayQuestion, wanted: Filter) -> str:
    """The shell command that answers the same, without the page's bounds."""
    words = ["vgpu-webhook", "replay", *state.replay_options]
    for setting in question.settings:
        words += ["--set", setting]
    words += ["--what-if", f"split={question.split}"] if question.split else []
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
    return shlex.join([*words, state.journal.path if state.journal else "AUDIT_LOG"])


OPERATIONS = (
    Operation(
        "replay",
        Method.POST,
        "/replay",
        "One recorded decision or many, made again with other settings",
        ReplayQuestion,
        Replays,
        replays,
        heavy=True,
    ),
)
