"""The results of the doctor, for people and for programs."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from webhook.cli.terminal import Style, Terminal
from webhook.questions.doctor.registry import CHECKS
from webhook.results import WORST_FIRST, CheckResult, Status

_STYLES = {
    Status.OK: Style.GOOD,
    Status.WARNING: Style.WARNING,
    Status.BROKEN: Style.REFUSED,
    Status.UNCHECKED: Style.DIM,
}
_WORDS = {Status.UNCHECKED: "?"}
_STATUS_WIDTH = max(len(_WORDS.get(status, status)) for status in Status)
_CHECK_WIDTH = max(map(len, CHECKS))
_HANGING = " " * (_STATUS_WIDTH + _CHECK_WIDTH + 4)


def show(found: Sequence[CheckResult], terminal: Terminal, *, verbose: bool) -> None:
    """One line a result, the worst first, with the remedy below, and a sum; what is ok only with `verbose`."""
    listed = [result for result in found if verbose or result.status is not Status.OK]
    for result in sorted(listed, key=lambda result: WORST_FIRST.index(result.status)):
        word = _WORDS.get(result.status, result.status.value)
        head = ((_STYLES[result.status], f"{word:<{_STATUS_WIDTH}}"), "  ", f"{result.check:<{_CHECK_WIDTH}}  ")
        unchecked = result.status is Status.UNCHECKED
        message = f"not checked: {result.message}, {result.remedy}" if unchecked else result.message
        terminal.paragraph("", head, message, _HANGING)
        if result.remedy and not unchecked:
            terminal.paragraph(_HANGING, ((Style.BOLD, "do "),), result.remedy, _HANGING + "   ")
    counts = Counter(result.status for result in found)
    hint = "" if len(listed) == len(found) else " (-v lists them)"
    pieces = [
        (_STYLES[status], f"{counts[status]} {status}{hint if status is Status.OK else ''}")
        for status in WORST_FIRST
        if counts[status]
    ]
    if listed:
        terminal.line()
    terminal.line(*[piece for part in pieces for piece in (part, ", ")][:-1])


def to_value(found: Sequence[CheckResult]) -> dict[str, Any]:
    """One object: a number for each status, and all results."""
    counts = Counter(result.status for result in found)
    lines = [
        {"check": result.check, "status": result.status.value, "message": result.message, "remedy": result.remedy}
        for result in found
    ]
    return {"counts": {status.value: counts[status] for status in Status}, "lines": lines}
