"""Bounds for what strangers wrote into a log."""

from typing import Any

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
