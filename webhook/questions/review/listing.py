"""An object as YAML lines, with changes marked, and findings at the lines of their fields."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.output.difference import MarkedLine, compare
from webhook.output.yaml import Keep, height
from webhook.texts import shorten

MAX_LINES = 5_000  # of one listing
MAX_TEXT = 1_000  # characters of a line
HIDDEN = "…"

_STEP = re.compile(r"\[.*?\](?=[.\[]|\Z)|\.?[^.\[]+")


@dataclass(slots=True)
class ListedLine:
    """A line.

    Attributes:
        mark: ` ` kept, `-` before, `+` after, `…` for lines that are left out.
        text: as YAML spells it; or how many lines are left out.
        path: its field path, spelled as findings spell it.
        findings: the numbers of the findings at this line, from 0.
    """

    mark: str
    text: str
    path: str
    findings: list[int] = field(default_factory=list)


def listing(before: Any, after: Any, paths: Sequence[str] = (), most: int = MAX_LINES) -> list[ListedLine]:
    """The lines of an object, in time linear in its size.

    Args:
        before: the object as it was received, as JSON.
        after: the object as it was repaired, likewise.
        paths: of the findings. One on a missing field is at the nearest field above it.
        most: lines that are written. A larger object is listed without what neither changed nor has a finding.

    Returns:
        The lines; none for an empty object.
    """
    known = [_ancestors(path) for path in paths]
    keep: Keep | None = None
    if height(before) + height(after) > 2 * most:
        keep = frozenset(path for each in known for path in each).__contains__
    lines = list(_bounded(compare(before, after, keep=keep), most))
    _place_findings(lines, known)
    return lines


def _bounded(marked: Iterable[MarkedLine], most: int) -> Iterator[ListedLine]:
    """The lines; one line replaces several that are left out, and one the rest beyond the limit."""
    number = hidden = 0
    path = ""
    for line in marked:
        if line.hidden or number >= most:
            path = line.field if not hidden else path
            hidden += line.hidden or 1
            continue
        if hidden:
            yield _left_out(hidden, "unchanged", path)
            hidden = 0
        yield ListedLine(line.mark, shorten(line.text, MAX_TEXT), line.field)
        number += 1
    if hidden:
        yield _left_out(hidden, "more" if number >= most else "unchanged", path)


def _left_out(number: int, which: str, path: str) -> ListedLine:
    return ListedLine(HIDDEN, f"{number:,} {which} line{'s' if number > 1 else ''}", path)


# --- the lines of findings ------------------------------------------------------------------------------------------


def _place_findings(lines: list[ListedLine], known: Sequence[Sequence[str]]) -> None:
    """Put each finding at the first line of the longest path that is there, preferably one that was not removed."""
    wanted = {path for each in known for path in each}
    places: dict[str, ListedLine] = {}
    for line in sorted(lines, key=lambda line: line.mark == "-"):
        for path in _ancestors(line.path):
            if path in wanted:
                places.setdefault(path, line)
    for index, each in enumerate(known):
        place = next((places[path] for path in each if path in places), lines[0] if lines else None)
        if place is not None:
            place.findings.append(index)


def _ancestors(path: str) -> list[str]:
    """A path and those above it, longest first."""
    return [path, *(path[: step.start()] for step in reversed(list(_STEP.finditer(path))) if step.start())]
