"""What is read from files, directories and standard input, and the manifests in it."""

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from webhook.errors import ConfigError
from webhook.inputs.parse import MAX_VALUES, parse_stream
from webhook.mistakes import mistake_in_file
from webhook.texts import matches

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


SUFFIXES = (".yaml", ".yml", ".json")  # of the files that are read in a directory
MAX_FILES = 10_000  # of a directory
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def manifest_files(
    path: str | Path, *, recursive: bool, exclude: Collection[str] = (), most: int = MAX_FILES
) -> list[str]:
    """A file as it is; a directory as its regular files with YAML or JSON, in order. Reading a pipe in it would block.

    Args:
        path: the file or directory; `-` for standard input.
        recursive: take the directories below a directory, too.
        exclude: globs of files and directories to leave out of a directory: of their names, or of their paths below it.
        most: how many files a directory may have.

    Raises:
        ConfigError: a directory cannot be read, or holds no such file, or too many; or the named one is a kustomization, whose
            files are parts and patches of objects.
    """

    def fail(error: OSError) -> None:
        raise ConfigError(f"{error.filename}: {mistake_in_file(error)}")

    if str(path) == STANDARD_INPUT or not Path(path).is_dir():
        return [str(path)]
    for name in KUSTOMIZATIONS:
        if (Path(path) / name).is_file() and not _excluded(Path(path) / name, path, exclude):
            build = f"`kubectl kustomize {path} | vgpu-webhook review -`"
            raise ConfigError(f"{path}: a kustomization, whose files are parts of objects; render it first: {build}")
    found: list[str] = []
    for directory, below, names in os.walk(path, onerror=fail):
        here = Path(directory)
        files = (here / name for name in names if not _excluded(here / name, path, exclude))
        found += [str(file) for file in files if file.suffix in SUFFIXES and file.is_file()]
        if len(found) > most:
            raise ConfigError(f"{path}: more than {most} files; name fewer")
        below[:] = [name for name in below if recursive and not _excluded(here / name, path, exclude)]
    if not found:
        more = "" if recursive else ", or add -R to read the directories below it"
        ends = " or ".join((", ".join(SUFFIXES[:-1]), SUFFIXES[-1]))
        raise ConfigError(f"{path}: no file in this directory ends in {ends}; name a file{more}")
    return sorted(found)


def _excluded(path: Path, top: str | Path, globs: Collection[str]) -> bool:
    return matches(path.name, globs) or matches(path.relative_to(top).as_posix(), globs)


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
