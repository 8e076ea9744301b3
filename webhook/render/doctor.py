"""What the doctor found, for a person and for programs."""

from collections import Counter
from collections.abc import Sequence

from webhook.doctor.check import Status
from webhook.doctor.registry import CHECKS, Told
from webhook.render.terminal import Style, Terminal
from webhook.render.yaml import to_json

_STYLES = {
    Status.OK: Style.GOOD,
    Status.WARNING: Style.WARNING,
    Status.BROKEN: Style.REFUSED,
    Status.UNCHECKED: Style.DIM,
}
_WORDS = {Status.UNCHECKED: "?"}
_STATUS_WIDTH = max(len(_WORDS.get(status, status)) for status in Status)
_CHECK_WIDTH = max(len(check.id) for check in CHECKS)
_HANGING = " " * (_STATUS_WIDTH + _CHECK_WIDTH + 4)


def show(found: Sequence[Told], terminal: Terminal) -> None:
    """One line a finding, with the remedy below, and a sum."""
    for told in found:
        line = told.line
        word = _WORDS.get(line.status, line.status.value)
        head = ((_STYLES[line.status], f"{word:<{_STATUS_WIDTH}}"), "  ", f"{told.check:<{_CHECK_WIDTH}}  ")
        unchecked = line.status is Status.UNCHECKED
        message = f"not checked: {line.message}, {line.remedy}" if unchecked else line.message
        terminal.paragraph("", head, message, _HANGING)
        if line.remedy and not unchecked:
            terminal.paragraph(_HANGING, ((Style.BOLD, "do "),), line.remedy, _HANGING + "   ")
    counts = Counter(told.line.status for told in found)
    pieces = [(_STYLES[status], f"{counts[status]} {status}") for status in Status if counts[status]]
    terminal.line()
    terminal.line(*[piece for part in pieces for piece in (part, ", ")][:-1])


def as_json(found: Sequence[Told]) -> str:
    """One object: a number for each status, and all lines."""
    counts = Counter(told.line.status for told in found)
    lines = [
        {
            "check": told.check,
            "status": told.line.status.value,
            "message": told.line.message,
            "remedy": told.line.remedy,
        }
        for told in found
    ]
    return to_json({"counts": {status.value: counts[status] for status in Status}, "lines": lines})
