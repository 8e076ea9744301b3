"""Turns manifests and recorded reviews into the requests that an API server would send."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from webhook.errors import ConfigError, Malformed, RequestError
from webhook.inputs.files import MAX_MANIFEST_BYTES, flattened, read_input, source_name
from webhook.inputs.parse import parse_stream
from webhook.inputs.positions import Position, SourceText, steps_of
from webhook.lenient import obj
from webhook.wire.codec import creation, to_request
from webhook.wire.models import Request

DEFAULT_NAMESPACE = "default"


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
    text: SourceText | None = None

    def position(self, path: str) -> Position | None:
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
        return self.text.position(self.number, [*inside, *steps_of(path)])


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
    found, text = parse_stream(data, source), SourceText(data)
    if not found:
        raise ConfigError(f"{source}: no document in it")
    places = [f"{source}: document {number}" if len(found) > 1 else source for number in range(1, len(found) + 1)]
    documents = [
        Document(place, value, source, number, text=text)
        for number, (place, value) in enumerate(zip(places, found, strict=True), 1)
    ]
    return [document for outer in documents for document in _flat(outer)]


_VALUES = {"image", "resources", "replicaCount", "nodeSelector", "tolerations"}  # that values of charts usually have
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
        values = f"; {_RENDER}" if len(missing) > 1 and not _VALUES.isdisjoint(value) else ""
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
    metadata = value.get("metadata")
    found = metadata.get(key) if isinstance(metadata, dict) else None
    if found is None or isinstance(found, str):
        return found or ""
    raise Malformed(f"metadata.{key}", "a string", found)


def _spelled(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a bare value"
