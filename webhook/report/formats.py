"""Outcomes for programs: JSON lines, YAML streams, JSON patches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from webhook.offline.reviewed import Reviewed
from webhook.report.explanation import to_value
from webhook.report.families.told import PodExplanation
from webhook.report.manifest import to_json, to_yaml
from webhook.report.terminal import visible


class Format:
    """Writes each outcome on its own."""

    def __init__(self, stream: TextIO, spell: Callable[[Reviewed, Sequence[PodExplanation] | None], str]) -> None:
        """Take the stream, and the function that spells an outcome."""
        self._stream = stream
        self._spell = spell

    def add(self, reviewed: Reviewed, explanations: Sequence[PodExplanation] | None = None) -> None:
        """Write one outcome."""
        print(self._spell(reviewed, explanations), file=self._stream)

    def finish(self, unread: int) -> None:
        """Nothing: what could not be read is told on standard error."""


def _json(reviewed: Reviewed, explanations: Sequence[PodExplanation] | None) -> str:
    request, outcome = reviewed.request, reviewed.outcome
    line: dict[str, Any] = {
        "kind": request.kind,
        "namespace": request.namespace,
        "name": reviewed.name,
        "allowed": outcome.allowed,
        "enforcement": outcome.enforcement,
        "podsRefused": outcome.pods_refused,
        "notReviewed": reviewed.not_reviewed or None,
        "findings": [
            {"rule": v.rule, "level": v.level, "path": v.path, "message": v.message} for v in outcome.violations
        ],
        "warnings": outcome.warnings,
        "patch": outcome.operations,
        "object": outcome.object,
    }
    if explanations is not None:
        line["explain"] = [to_value(told) for told in explanations]
    return to_json(line)


def _patch(reviewed: Reviewed, _: object) -> str:
    return to_json(reviewed.outcome.operations)


def _yaml(reviewed: Reviewed, _: object) -> str:
    """The object as it would be stored; a refused one only as a comment, so that the stream can be applied."""
    outcome = reviewed.outcome
    about = f"{reviewed.request.kind} {reviewed.name} in {reviewed.request.namespace}"
    lines = [f"# {visible(warning)}" for warning in outcome.warnings]
    if reviewed.not_reviewed:
        lines.append(f"# not reviewed: {visible(reviewed.not_reviewed)}")
    if outcome.pods_refused:
        lines.append(f"# its pods will be REFUSED: put right {', '.join(outcome.pods_refused)}")
    if not outcome.allowed:
        lines += [f"# {visible(f'{v.rule}: {v.message}')}" for v in outcome.denials]
        return "\n".join(["---", f"# REFUSED, left out: {visible(about)}", *lines])
    body = to_yaml(outcome.object).rstrip("\n") if outcome.object else f"# nothing to apply: {visible(about)}"
    return "\n".join(["---", *lines, body])


FORMATS: Mapping[str, Callable[[TextIO], Format]] = {
    "json": lambda stream: Format(stream, _json),
    "yaml": lambda stream: Format(stream, _yaml),
    "patch": lambda stream: Format(stream, _patch),
}
