"""Finds manifests and recorded reviews in files, and turns them into the requests that an API server would send."""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.errors import ConfigError, Malformed, RequestError
from webhook.inputs.files import MAX_MANIFEST_BYTES, STANDARD_INPUT, opened, read_input, source_name
from webhook.inputs.parse import parse_stream, with_kind
from webhook.lenient import at, obj
from webhook.mistakes import mistake_in_file
from webhook.texts import matches
from webhook.wire.codec import creation, to_request
from webhook.wire.models import Request

if TYPE_CHECKING:
    from webhook.inputs.positions import Position, SourceText

DEFAULT_NAMESPACE = "default"
SUFFIXES = (".yaml", ".yml", ".json")  # of the files that are read in a directory
MAX_FILES = 10_000  # of a directory
_JSON_OBJECT = re.compile(rb"(\xef\xbb\xbf)?\s*\{\s*([\"}]|\Z)")  # a key without quotes is flow style of YAML
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file.

    Attributes:
        place: the file, and where in it, for people.
        value: as JSON.
        file: the file.
        number: of the YAML or JSON document in the file, from 1.
        inside: the way from that document to the object, where it is in lists.
        text: of the file; None if it is not known.
    """

    place: str
    value: Any
    file: str = ""
    number: int = 1
    inside: tuple[str, ...] = ()
    text: "SourceText | None" = None

    def position(self, path: str) -> "Position | None":
        """Where a field of the object is in the file, or the nearest one above it that is there.

        Args:
            path: as findings have it; of an AdmissionReview, in the object that it holds.

        Returns:
            None if it is not known.
        """
        if self.text is None:
            return None
        review = isinstance(self.value, dict) and self.value.get("kind") == "AdmissionReview"
        inside = (*self.inside, "request", "object") if review else self.inside
        return self.text.position(self.number, inside, path)


def read_documents(path: str) -> list[Document]:
    """All objects of a file in order; their items are objects of their own.

    Raises:
        ConfigError: the file cannot be read, or holds nothing.
    """
    return parse_documents(read_input(path, MAX_MANIFEST_BYTES), source_name(path))


def parse_documents(data: bytes, source: str) -> list[Document]:
    """All objects of a manifest in order; their items are objects of their own.

    Raises:
        ConfigError: it is neither YAML nor JSON, or holds nothing.
    """
    from webhook.inputs.positions import SourceText  # noqa: PLC0415  # of most objects no position is wanted

    return documents_of(SourceText(data, source))


def documents_of(text: "SourceText") -> list[Document]:
    """All objects of a text, as `parse_documents`."""
    found, source = text.documents, text.source
    if not found:
        raise ConfigError(f"{source}: no document in it")
    places = [f"{source}: document {number}" if len(found) > 1 else source for number in range(1, len(found) + 1)]
    documents = [
        Document(place, value, source, number, text=text)
        for number, (place, value) in enumerate(zip(places, found, strict=True), 1)
    ]
    return [document for outer in documents for document in _flat(outer)]


_RENDER = "if these are the values of a Helm chart, render it: `helm template CHART -f FILE | vgpu-webhook review -`"


def missing_fields(value: Mapping[str, Any]) -> list[str]:
    """What an object lacks that every object of Kubernetes has: apiVersion, kind."""
    return [key for key in ("apiVersion", "kind") if not isinstance(value.get(key), str) or not value[key]]


def is_object(value: Any) -> bool:
    """Whether it looks like an object of Kubernetes; a `values.yaml` of Helm does not."""
    return isinstance(value, dict) and not missing_fields(value)


def to_review(document: Document) -> Request:
    """The request that an API server would send; a recorded review keeps its own.

    Raises:
        RequestError: it is no object of Kubernetes, or a review that cannot be answered.
    """
    value = document.value
    if not isinstance(value, dict):
        raise RequestError(f"this is {_spelled(value)}, not a Kubernetes object")
    if missing := missing_fields(value):
        values = f"; {_RENDER}" if len(missing) > 1 else ""
        raise RequestError(f"this is not a Kubernetes object: it has no {' and no '.join(missing)}{values}")
    kind, version = value["kind"], value["apiVersion"]
    today = datetime.now(UTC).date()
    if kind == "AdmissionReview":
        return to_request(value)._replace(day=today)
    namespace = _text(value, "namespace") or DEFAULT_NAMESPACE
    request = creation(f"offline-{_digest(document)}", version, kind, namespace, value)
    return request._replace(name=_text(value, "name"), day=today)


def _digest(document: Document) -> str:
    """Unique for each document, so that no two decisions have the same id."""
    spelled = f"{document.place}\n{document.value!r}".encode(errors="surrogatepass")
    return hashlib.blake2b(spelled, digest_size=8).hexdigest()


def shown_name(request: Request) -> str:
    """The object's name, or the prefix of the name that it will get."""
    found = request.object or request.old_object or {}
    named = obj(found, "metadata")
    name = request.name or named.get("name") or named.get("generateName")
    return name if isinstance(name, str) else ""


def _flat(document: Document) -> Iterator[Document]:
    """The items of lists, also of lists in lists."""
    for inside, value in flattened(document.value):
        place = "".join([document.place, *(f": items[{index}]" for index in inside[1::2])])
        yield replace(document, place=place, value=value, inside=inside)


def _text(value: Mapping[str, Any], key: str) -> str:
    found = at(value, "metadata", key)
    if found is None or isinstance(found, str):
        return found or ""
    raise Malformed(f"metadata.{key}", "a string", found)


def _spelled(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a bare value"


# --- existing objects -------------------------------------------------------------------------------------------------


Complain = Callable[[str], None]


class ObjectFiles:
    """Objects of files: large JSON in pieces, everything else as a whole and strictly.

    A file that cannot be read is reported, and the next one is read.
    """

    def __init__(self, paths: Sequence[str], complain: Complain, *, positions: bool = False) -> None:
        """Prepare.

        Args:
            paths: YAML or JSON; `-` is standard input.
            complain: called with an error message.
            positions: keep the texts of files that are read as a whole, for the positions of fields.
        """
        self._paths = paths
        self._complain = complain
        self._positions = positions
        self._stream: BufferedReader | None = None
        self._done = 0
        self._sizes = [file_size(path) for path in paths]

    @property
    def share(self) -> float | None:
        """How many of the bytes have been read; None on a pipe."""
        if not all(self._sizes):
            return None
        here = self._stream.tell() if self._stream else 0
        return (sum(self._sizes[: self._done]) + here) / sum(self._sizes)

    def __iter__(self) -> Iterator[Document]:
        for path in self._paths:
            try:
                yield from self._objects(path)
            except ConfigError as error:
                self._complain(str(error))
            self._stream = None
            self._done += 1

    def _objects(self, path: str) -> Iterator[Document]:
        name = source_name(path)
        with opened(path) as stream:
            large = path == STANDARD_INPUT or file_size(path) > MAX_MANIFEST_BYTES
            if large and _JSON_OBJECT.match(stream.peek(1)[:64]):
                from webhook.inputs.items import ItemStream  # noqa: PLC0415  # most files are small

                self._stream = stream
                found: Iterator[Document] = (Document("", one, name) for one in ItemStream(stream, name))
            else:
                found = _manifests(path, positions=self._positions)
            for number, one in enumerate(found, 1):
                yield replace(one, place=f"{name}: object {number}")


def _manifests(path: str, *, positions: bool) -> Iterator[Document]:
    name = source_name(path)
    try:
        data = read_input(path, MAX_MANIFEST_BYTES)
        documents = parse_stream(data, name)
    except ConfigError as error:
        hint = "; print it with -o json, which is read piece by piece" if "larger than" in str(error) else ""
        raise ConfigError(f"{error}{hint}") from error
    if not documents:
        raise ConfigError(f"{name}: no document in it")
    if positions:
        from webhook.inputs.positions import SourceText  # noqa: PLC0415
    text = SourceText(data) if positions else None
    for number, value in enumerate(documents, 1):
        items = at(value, "items")
        if isinstance(items, list):
            for index, item in enumerate(items):
                yield Document("", with_kind(item, value), name, number, ("items", str(index)), text)
        else:
            yield Document("", value, name, number, text=text)


def file_size(path: str) -> int:
    """How many bytes a file has; 0 if that is not known."""
    try:
        return 0 if path == STANDARD_INPUT else Path(path).stat().st_size
    except OSError:
        return 0


# --- files of a directory, and objects of lists ---------------------------------------------------------------------------


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
    kind = at(value, "kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = value.get("items")
    return [] if items is None else items if isinstance(items, list) else None
