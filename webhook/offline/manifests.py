"""Manifests as people keep them: a YAML stream, JSON, or JSON documents in a row. Bounded; what comes out is plain JSON."""

import json
import math
from typing import Any

from webhook.errors import ConfigError
from webhook.settings.documents import MAX_DEPTH, parse_documents
from webhook.settings.files import MAX_MANIFEST_BYTES, read_input, source_name
from webhook.settings.syntax import why_unreadable

MAX_TEXT = 64 << 20  # characters of one file once aliases are followed: a long text can be repeated, too

_MARKED = (b"\xef\xbb\xbf{", b"\xef\xbb\xbf[")  # JSON behind a byte order mark


def read_manifests(path: str) -> list[Any]:
    """Read all documents of a file, or of standard input.

    Args:
        path: the file; `-` for standard input.

    Raises:
        ConfigError: it cannot be read, is too large, or is neither YAML nor JSON.
    """
    return parse_manifests(read_input(path, MAX_MANIFEST_BYTES), source_name(path))


def parse_manifests(data: bytes, source: str) -> list[Any]:
    """Parse all documents.

    Raises:
        ConfigError: neither YAML nor JSON, a key twice in one object, or a value that JSON does not have.
    """
    broken: Exception | None = None
    documents: list[Any] | None = None
    if data.lstrip()[:1] in (b"{", b"[") or data.startswith(_MARKED):
        try:
            documents = _json_row(data.decode("utf-8-sig"), source)
        except (RecursionError, ValueError) as error:
            broken = error
    if documents is None:
        documents = _yaml_stream(data, source, broken)
    _refuse_foreign_values(documents, source)
    return documents


def _json_row(text: str, source: str) -> list[Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in found if keys.count(key) > 1)
            raise ConfigError(f"{source}: the key {twice[:60]!r} stands twice in one object")
        return found

    decoder = json.JSONDecoder(object_pairs_hook=unique)
    documents, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        document, at = decoder.raw_decode(text, at)
        documents.append(document)
    return documents


def _yaml_stream(data: bytes, source: str, broken: Exception | None) -> list[Any]:
    """Flow style YAML looks like JSON; where it is neither, JSON's own complaint says more."""
    try:
        return parse_documents(data, source)
    except ConfigError as error:
        if broken is None:
            raise
        raise ConfigError(f"{source}: not JSON that can be read: {why_unreadable(data, broken)}") from error


def _refuse_foreign_values(documents: list[Any], source: str) -> None:
    """No NaN, no half characters, no text that aliases multiply, nothing too deep: all doors down the way may rely on it."""
    left = MAX_TEXT
    stack = [(document, 0) for document in documents]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, str):
            left -= len(value)
            if left < 0:
                raise ConfigError(f"{source}: more text than 64 MiB once aliases (&, *) are followed")
            _refuse_half_characters(value, source)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{source}: {value} is no number that Kubernetes knows")
        elif isinstance(value, int) and value.bit_length() > 63:
            raise ConfigError(f"{source}: a number beyond 64 bits; put it in quotes if it is text")
        elif isinstance(value, dict | list) and value:
            if depth >= MAX_DEPTH:
                raise ConfigError(f"{source}: nested more than {MAX_DEPTH} deep")
            stack.extend((child, depth + 1) for child in _children(value))


def _children(value: dict[str, Any] | list[Any]) -> list[Any]:
    return [*value, *value.values()] if isinstance(value, dict) else value


def _refuse_half_characters(text: str, source: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{source}: a text holds half a character (a lone surrogate)") from error
