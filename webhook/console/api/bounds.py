"""Bounds for what strangers wrote."""

from typing import Any

from webhook.texts import shorten

MAX_TEXT = 300  # characters of a name in a list
MAX_DEPTH = (
    60  # of what is told of a request: a pod is not half as deep, and writers of YAML and JSON give up somewhere
)


def shallow(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A value, with `…` where it is too deep to be written."""
    if isinstance(value, dict):
        return {key: shallow(each, depth - 1) for key, each in value.items()} if depth else "…"
    if isinstance(value, list):
        return [shallow(each, depth - 1) for each in value] if depth else "…"
    return value


def brief(value: Any, most: int) -> Any:
    """A value with every text in it shortened to so many characters."""
    if isinstance(value, str):
        return shorten(value, most)
    if isinstance(value, dict):
        return {key: brief(each, most) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [brief(each, most) for each in value]
    return value
