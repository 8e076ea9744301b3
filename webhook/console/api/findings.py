"""What rules found, as the API tells it."""

from collections.abc import Iterable

from webhook.console.api.operation import Answer
from webhook.outcome import Violation


class Finding(Answer):
    """What was found, where.

    Attributes:
        rule: its id.
        level: what follows: `deny`, `warn` or `audit`.
        path: the field path.
        message: what is wrong, and what to write instead.
    """

    rule: str
    level: str
    path: str
    message: str


def to_findings(violations: Iterable[Violation]) -> tuple[Finding, ...]:
    """Findings as the API tells them."""
    return tuple([Finding(rule=f.rule, level=f.level.value, path=f.path, message=f.message) for f in violations])
