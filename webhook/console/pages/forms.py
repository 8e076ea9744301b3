"""What forms send, as questions of the API have it."""

from collections.abc import Iterable


def lines(texts: Iterable[str]) -> tuple[str, ...]:
    """The lines of some texts, without the empty ones: settings stand in a field one below the other."""
    found = [line.strip() for text in texts for line in text.splitlines()]
    return tuple([line for line in found if line])
