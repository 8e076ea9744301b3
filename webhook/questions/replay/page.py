"""The page that replays a recorded decision, with the settings in use or with others."""

from typing import Any

from webhook.audit.pairs import content_after, repairs_before
from webhook.console.pages import Section
from webhook.console.parameters import TriedSettings
from webhook.console.state import AUDIT_LOG, ConsoleState
from webhook.console.texts import shallow
from webhook.outcome import Violation
from webhook.output.json import ResponseModel
from webhook.questions.decisions.page import MAX_SHOWN, Key, find, patch_rows
from webhook.questions.replay.answer import Replayer, ReplayVerdict
from webhook.rules.choices import Level
from webhook.settings.trial import MAX_SPLIT

SECTION = Section(shows=[AUDIT_LOG])

MAX_LEVELS = 100  # rules at another level


class LevelDifference(ResponseModel):
    """A rule with findings then and now, at another level."""

    rule: str
    before: Level
    after: Level


class ReviewResult(ResponseModel):
    """What a review decided: whether it admitted the object, its findings, and its JSON patch."""

    allowed: bool
    findings: tuple[Violation, ...]
    patch: list[dict[str, Any]]


class ReplayedDecision(ResponseModel):
    """A decision and the result of its replay.

    Attributes:
        number: of the decision.
        verdict: `same`, `changed`, `not reproduced` or `not replayable`.
        direction: how it changes; None if it does not.
        reason: why it is not replayable.
        other_inputs: those of `config`, `policy` and `fleet` that differ from the original ones.
        before, after: the original review and the replayed one; None after if it was not replayed.
        gained, lost: findings that are only in the replay, or only in the original.
        level_changes: rules whose findings stay where they were, at another level.
        repaired_by: the number of the mutation that was replayed first, to repair the pod; None if there is none.
    """

    number: int
    verdict: str
    direction: str | None
    reason: str | None
    other_inputs: tuple[str, ...]
    before: ReviewResult
    after: ReviewResult | None
    gained: tuple[Violation, ...]
    lost: tuple[Violation, ...]
    level_changes: tuple[LevelDifference, ...]
    repaired_by: int | None


@SECTION.page(
    "/decisions/<key>/replay",
    "replay.html",
    more=lambda *_: {"patch_rows": patch_rows, "max_shown": MAX_SHOWN, "max_split": MAX_SPLIT},
    heavy=True,
    whole=("before", "after", "gained", "lost"),
    form=True,
)
def replay(state: ConsoleState, key: Key, wanted: TriedSettings) -> ReplayedDecision:
    """A recorded decision, replayed with the settings in use or with others."""
    source, number, original = find(state, key)
    replayer = Replayer(state.snapshot, state.tried(wanted.settings, wanted.split))
    repaired_by = None
    if original.endpoint == "validate":
        content = content_after(original)
        for at, repair in repairs_before(source.store, number, original):
            replayer.note(repair)
            if repair.patch and content_after(repair) == content:
                repaired_by = at
    replayed = replayer.replay(original)
    outcome = replayed.outcome
    before = ReviewResult(allowed=original.allowed, findings=original.findings, patch=shallow(original.patch))
    after = before if replayed.verdict is ReplayVerdict.SAME else None
    if outcome is not None:
        patch = shallow(list(outcome.operations))
        after = ReviewResult(allowed=outcome.allowed, findings=outcome.violations, patch=patch)
    different = list(dict.fromkeys((e.before.rule, e.before.level, e.after.level) for e in replayed.level_changes))
    return ReplayedDecision(
        number=number,
        verdict=replayed.verdict.value,
        direction=replayed.direction and replayed.direction.value,
        reason=replayed.reason or None,
        other_inputs=replayed.other,
        before=before,
        after=after,
        gained=replayed.gained,
        lost=replayed.lost,
        level_changes=tuple(
            [LevelDifference(rule=rule, before=before, after=after) for rule, before, after in different[:MAX_LEVELS]]
        ),
        repaired_by=repaired_by,
    )
