"""The lines of a listing in blocks, of which the dull ones are folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webhook.console.api.review_answers import Line

NEAR = 3  # lines that are seen around what matters
WORTH = 6  # a shorter stretch is not worth a fold
SHORT = 60  # lines that are seen without one


@dataclass(frozen=True, slots=True)
class Block:
    """Lines in a row; folded if nothing happens in them."""

    lines: Sequence[Line]
    folded: bool


def blocks(lines: Sequence[Line]) -> Iterator[Block]:
    """Fold long stretches of lines that neither changed nor have a finding."""
    if len(lines) <= SHORT or all(_is_dull(line) for line in lines):
        yield Block(lines, folded=False)
        return
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and _is_dull(lines[end]):
            end += 1
        first, last = start + (NEAR if start else 0), end - (NEAR if end < len(lines) else 0)
        if last - first >= WORTH:
            yield Block(lines[start:first], folded=False)
            yield Block(lines[first:last], folded=True)
            yield Block(lines[last:end], folded=False)
        else:
            yield Block(lines[start:end], folded=False)
        start = end
        while end < len(lines) and not _is_dull(lines[end]):
            end += 1
        yield Block(lines[start:end], folded=False)
        start = end


def _is_dull(line: Line) -> bool:
    return line.mark in " …" and not line.findings
