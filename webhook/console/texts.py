"""Amounts, times and sentences as pages show them, and bounds for values that come from users."""

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from webhook.texts import shorten, visible

MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds
MAX_TEXT = 300  # characters of a name in a list
MAX_MANIFEST = 256 << 10  # bytes that a page takes; YAML of this size can keep a core busy for a second
SOURCE = "the manifest"  # of such a page, in messages
MAX_NAME = 253  # characters of a name in Kubernetes; a file may hold longer ones
MAX_DEPTH = 60  # of JSON that a log holds: a pod is not half as deep, and writers of YAML and JSON fail at some depth


def ago(seconds: float) -> str:
    """A length of time, roughly: `45 s`, `12 min`, `3 h`, `20 days`."""
    if seconds < 2 * MINUTE:
        return f"{int(seconds)} s"
    if seconds < 2 * HOUR:
        return f"{int(seconds // MINUTE)} min"
    return f"{int(seconds // HOUR)} h" if seconds < 2 * DAY else f"{int(seconds // DAY)} days"


def elapsed(since: datetime) -> str:
    """How long ago something was, roughly; a clock may be set back."""
    return ago(max((datetime.now(UTC) - since).total_seconds(), 0))


def prose(text: str) -> Markup:
    """A sentence, safe to show; text between backticks is code."""
    spans = [escape(visible(span)) for span in text.split("`")]
    if len(spans) % 2 == 0:  # an odd number of backticks
        return escape(visible(text))
    code = Markup("<code>{}</code>")
    return Markup("").join([code.format(span) if at % 2 else span for at, span in enumerate(spans)])


def shallow(value: Any, depth: int = MAX_DEPTH) -> Any:
    """JSON with `…` where it is too deep to be written."""
    if isinstance(value, dict):
        return {key: shallow(each, depth - 1) for key, each in value.items()} if depth else "…"
    if isinstance(value, list):
        return [shallow(each, depth - 1) for each in value] if depth else "…"
    return value


def brief(value: Any, most: int, items: int | None = None) -> Any:
    """JSON with every text and key in it shortened to so many characters, and every list to so many items."""
    if isinstance(value, str):
        return shorten(value, most)
    if isinstance(value, dict):
        return {shorten(key, most): brief(each, most, items) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [brief(each, most, items) for each in value[:items]]
    return value
