"""The results of the doctor, for people and for programs."""

from collections import Counter
from collections.abc import Sequence

from webhook.doctor.check import CheckResult, Status
from webhook.doctor.registry import CHECKS
from webhook.doctor.score import MOST, PRACTICES, Score
from webhook.render.terminal import Piece, Style, Terminal
from webhook.render.yaml import to_json

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


def show(found: Sequence[CheckResult], terminal: Terminal) -> None:
    """One line a result, with the remedy below, and a sum."""
    for result in found:
        word = _WORDS.get(result.status, result.status.value)
        head = ((_STYLES[result.status], f"{word:<{_STATUS_WIDTH}}"), "  ", f"{result.check:<{_CHECK_WIDTH}}  ")
        unchecked = result.status is Status.UNCHECKED
        message = f"not checked: {result.message}, {result.remedy}" if unchecked else result.message
        _show_entry(terminal, head, message, "" if unchecked else result.remedy, _HANGING)
    counts = Counter(result.status for result in found)
    pieces = [(_STYLES[status], f"{counts[status]} {status}") for status in Status if counts[status]]
    terminal.line()
    terminal.line(*[piece for part in pieces for piece in (part, ", ")][:-1])


def _show_entry(terminal: Terminal, head: tuple[Piece, ...], text: str, remedy: str, hanging: str) -> None:
    """A text behind its head, and below it what to do, if there is anything to do."""
    terminal.paragraph("", head, text, hanging)
    if remedy:
        terminal.paragraph(hanging, ((Style.BOLD, "do "),), remedy, hanging + "   ")


def as_json(found: Sequence[CheckResult]) -> str:
    """One object: a number for each status, and all results."""
    counts = Counter(result.status for result in found)
    lines = [
        {"check": result.check, "status": result.status.value, "message": result.message, "remedy": result.remedy}
        for result in found
    ]
    return to_json({"counts": {status.value: counts[status] for status in Status}, "lines": lines})


_POINT_STYLES = {2: Style.GOOD, 1: Style.WARNING, 0: Style.REFUSED, None: Style.DIM}
_PRACTICE_WIDTH = max(map(len, PRACTICES))
_SCORE_HANGING = " " * (_PRACTICE_WIDTH + 5)


def show_score(found: Sequence[Score], terminal: Terminal) -> None:
    """One line a practice with its points, the remedy below, and the sum."""
    for score in found:
        points = "?" if score.points is None else str(score.points)
        head = ((_POINT_STYLES[score.points], points), "  ", f"{score.practice:<{_PRACTICE_WIDTH}}  ")
        unread = score.points is None
        evidence = f"not read: {score.evidence}, {score.remedy}" if unread else score.evidence
        _show_entry(terminal, head, evidence, "" if unread else score.remedy, _SCORE_HANGING)
    reached, most = _sum(found)
    terminal.line()
    terminal.line(f"{reached} of {most} points")


def score_as_json(found: Sequence[Score]) -> str:
    """One object: the sum, the most that was possible, and every practice."""
    reached, most = _sum(found)
    practices = [
        {"practice": score.practice, "points": score.points, "evidence": score.evidence, "remedy": score.remedy}
        for score in found
    ]
    return to_json({"score": reached, "of": most, "practices": practices})


def _sum(found: Sequence[Score]) -> tuple[int, int]:
    """The points, and the most that was possible, of what could be read."""
    points = [score.points for score in found if score.points is not None]
    return sum(points), MOST * len(points)
