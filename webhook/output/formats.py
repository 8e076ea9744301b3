"""Writes what a command has found in a format of its option `-o`."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from webhook.output.json import as_value, to_json
from webhook.output.yaml import to_yaml


def for_programs(values: Iterable[Any], output: str) -> str:
    """A line of JSON for each value, or with the output `yaml` a YAML document."""
    if output == "yaml":
        return "---\n".join(map(to_yaml, values))
    return "".join(f"{to_json(value)}\n" for value in values)


def emit(values: Iterable[Any], output: str, text: Callable[[], object]) -> None:
    """Write to standard output in a format of `-o`.

    Args:
        values: dataclasses, or JSON objects.
        output: the format: with `json` each value is a line, with `yaml` a document.
        text: writes them in any other format.
    """
    if output in ("json", "yaml"):
        found = (value if isinstance(value, dict) else as_value(type(value), value) for value in values)
        sys.stdout.write(for_programs(found, output))
        sys.stdout.flush()
    else:
        text()
