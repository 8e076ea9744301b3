"""Reads manifests: a YAML stream, JSON, or several JSON documents. Bounded; the values are plain JSON."""

import json
import math
import os
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from webhook.errors import ConfigError
from webhook.inputs.files import MAX_MANIFEST_BYTES, STANDARD_INPUT, read_input, source_name
from webhook.inputs.parse import MAX_DEPTH, parse_documents, why_unreadable
from webhook.mistakes import mistake_in_file

MAX_TEXT = 64 << 20  # characters of one file once aliases are followed: a long text can be repeated, too
SUFFIXES = (".yaml", ".yml", ".json")  # of the files that are read in a directory
MAX_FILES = 10_000  # of a directory

_MARKED = (b"\xef\xbb\xbf{", b"\xef\xbb\xbf[")  # JSON behind a byte order mark


def manifest_files(path: str | Path, *, recursive: bool, exclude: Collection[str] = ()) -> list[str]:
    """A file as it is; a directory as its regular files with YAML or JSON, in order. Reading a pipe in it would block.

    Args:
        path: the file or directory; `-` for standard input.
        recursive: take the directories below a directory, too.
        exclude: globs of files and directories to leave out of a directory: of their names, or of their paths below it.

    Raises:
        ConfigError: a directory cannot be read, or holds no such file, or too many.
    """

    def fail(error: OSError) -> None:
        raise ConfigError(f"{error.filename}: {mistake_in_file(error)}")

    if str(path) == STANDARD_INPUT or not Path(path).is_dir():
        return [str(path)]
    found: list[str] = []
    for directory, below, names in os.walk(path, onerror=fail):
        here = Path(directory)
        files = (here / name for name in names if not _excluded(here / name, path, exclude))
        found += [str(file) for file in files if file.suffix in SUFFIXES and file.is_file()]
        if len(found) > MAX_FILES:
            raise ConfigError(f"{path}: more than {MAX_FILES} files; name fewer")
        below[:] = [name for name in below if recursive and not _excluded(here / name, path, exclude)]
    if not found:
        more = "" if recursive else ", or add -R to read the directories below it"
        ends = " or ".join((", ".join(SUFFIXES[:-1]), SUFFIXES[-1]))
        raise ConfigError(f"{path}: no file in this directory ends in {ends}; name a file{more}")
    return sorted(found)


def _excluded(path: Path, top: str | Path, globs: Collection[str]) -> bool:
    return any(fnmatchcase(name, glob) for name in (path.name, path.relative_to(top).as_posix()) for glob in globs)


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
        found = dict[str, Any]()
        for key, value in pairs:
            if key in found:
                raise ConfigError(f"{source}: the key {key[:60]!r} appears twice in one object")
            found[key] = value
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
    """Flow style YAML looks like JSON; if it is neither, the error of the JSON parser is clearer."""
    try:
        return parse_documents(data, source)
    except ConfigError as error:
        if broken is None:
            raise
        raise ConfigError(f"{source}: not JSON that can be read: {why_unreadable(data, broken)}") from error


def _refuse_foreign_values(documents: list[Any], source: str) -> None:
    """Refuse NaN, lone surrogates, texts that aliases multiply and deep nesting, so that no later code meets them."""
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
            raise ConfigError(f"{source}: {value} is not a number that Kubernetes accepts")
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


def flattened(document: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The objects of a document, each with the way to it: the items of lists, also of lists in lists, in order."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), document)]
    while stack:
        inside, value = stack.pop()
        items = _items(value)
        if items is None:
            yield inside, value
        else:
            found = [((*inside, "items", str(index)), with_kind(item, value)) for index, item in enumerate(items)]
            stack += reversed(found)


def _items(value: Any) -> list[Any] | None:
    """The items of a List; None if the value is not one."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = value.get("items")
    return [] if items is None else items if isinstance(items, list) else None


def with_kind(item: Any, of: Mapping[str, Any]) -> Any:
    """An item of a list, with its kind: the items of a PodList from the API have none."""
    kind = of.get("kind")
    if not isinstance(item, dict) or not isinstance(kind, str) or kind == "List" or not kind.endswith("List"):
        return item
    return {"apiVersion": of.get("apiVersion"), "kind": kind.removesuffix("List")} | item
