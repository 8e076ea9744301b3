"""Writes what a command has found in a format of its option `-o`."""

import sys
from collections.abc import Callable, Iterable
from typing import Any


def for_programs(values: Iterable[Any], output: str) -> str:
    """A line of JSON for each value, or with the output `yaml` a YAML document."""
    if output == "yaml":
        from webhook.output.yaml import to_yaml  # noqa: PLC0415  # most answers are texts

        return "---\n".join(map(to_yaml, values))
    from webhook.output.json import to_json  # noqa: PLC0415

    return "".join(f"{to_json(value)}\n" for value in values)


def emit(values: Iterable[Any], output: str, text: Callable[[], object]) -> None:
    """Write to standard output in a format of `-o`.

    Args:
        values: dataclasses, or JSON objects.
        output: the format: with `json` each value is a line, with `yaml` a document.
        text: writes them in any other format.
    """
    if output in ("json", "yaml"):
        from webhook.output.json import as_value  # noqa: PLC0415

        objects = (value if isinstance(value, dict) else as_value(type(value), value) for value in values)
        sys.stdout.write(for_programs(objects, output))
        sys.stdout.flush()
    else:
        text()
