"""Outcomes for programs: JSON lines, YAML streams, JSON patches."""

from collections.abc import Callable, Mapping
from typing import Any, TextIO

from webhook.report.explanation import to_value
from webhook.report.manifest import to_json, to_yaml
from webhook.report.terminal import visible
from webhook.report.text import Reviewed


class Format:
    """Writes each outcome on its own."""

    def __init__(self, stream: TextIO, spell: Callable[[Reviewed], str]) -> None:
        """Take the stream, and the function that spells an outcome."""
        self._stream = stream
        self._spell = spell

    def add(self, reviewed: Reviewed) -> None:
        """Write one outcome."""
        print(self._spell(reviewed), file=self._stream)

    def finish(self, unread: int) -> None:
        """Nothing: what could not be read is told on standard error."""


def _json(reviewed: Reviewed) -> str:
    request, outcome = reviewed.request, reviewed.outcome
    line: dict[str, Any] = {
        "kind": request.kind,
        "namespace": request.namespace,
        "name": reviewed.name,
        "allowed": outcome.allowed,
        "findings": [
            {"rule": v.rule, "level": v.level, "path": v.path, "message": v.message} for v in outcome.violations
        ],
        "warnings": outcome.warnings,
        "patch": outcome.operations,
        "object": outcome.object,
    }
    if reviewed.explanations is not None:
        line["explain"] = [to_value(told) for told in reviewed.explanations]
    return to_json(line)


def _patch(reviewed: Reviewed) -> str:
    return to_json(reviewed.outcome.operations)


def _yaml(reviewed: Reviewed) -> str:
    """The object as it would be stored; a refused one only as a comment, so that the stream can be applied."""
    outcome = reviewed.outcome
    about = f"{reviewed.request.kind} {reviewed.name} in {reviewed.request.namespace}"
    lines = [f"# {visible(warning)}" for warning in outcome.warnings]
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
