"""Files and standard input, read up to a limit."""

import sys
from pathlib import Path
from typing import Any

from webhook.errors import ConfigError
from webhook.inputs.parse import MAX_VALUES, parse_stream
from webhook.mistakes import mistake_in_file

STANDARD_INPUT = "-"
MAX_MANIFEST_BYTES = 10 << 20


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Read a file.

    Raises:
        ConfigError: it cannot be read, or is larger than the limit.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        if str(path) == STANDARD_INPUT:
            raise ConfigError("standard input cannot be read here; name a file") from error
        raise ConfigError(f"{path}: {mistake_in_file(error)}") from error
    if len(data) > limit:
        raise ConfigError(f"{path}: larger than {limit >> 20} MiB")
    return data


def read_input(path: str, limit: int) -> bytes:
    """Read a file, or standard input for `-`.

    Raises:
        ConfigError: as `read_bytes`.
    """
    if path != STANDARD_INPUT:
        return read_bytes(path, limit)
    data = sys.stdin.buffer.read(limit + 1)
    if len(data) > limit:
        raise ConfigError(f"{source_name(path)}: larger than {limit >> 20} MiB")
    return data


def source_name(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == STANDARD_INPUT else path


def parse_document(data: bytes, source: str, most_values: int = MAX_VALUES) -> Any:
    """Parse one YAML or JSON document; nothing is None. Values are bounded as `parse_stream` bounds them.

    Raises:
        ConfigError: it cannot be read, or there are several.
    """
    documents = parse_stream(data, source, most_values)
    if len(documents) > 1:
        raise ConfigError(f"{source}: {len(documents)} documents where one is expected")
    return documents[0] if documents else None
