"""Manifests and recorded reviews become the requests that an API server would send."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.errors import ConfigError, Malformed, RequestError
from webhook.offline.manifests import parse_manifests, read_manifests
from webhook.settings.files import source_name
from webhook.wire.codec import API_VERSION, to_request
from webhook.wire.models import Request

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file.

    Attributes:
        place: the file, and where in it.
        value: as JSON.
    """

    place: str
    value: Any


def read_documents(path: str) -> list[Document]:
    """All objects of a file in order; lists are taken apart.

    Raises:
        ConfigError: the file cannot be read, or holds nothing.
    """
    return _apart(read_manifests(path), source_name(path))


def parse_documents(data: bytes, source: str) -> list[Document]:
    """All objects of a manifest in order; lists are taken apart.

    Raises:
        ConfigError: it is neither YAML nor JSON, or holds nothing.
    """
    return _apart(parse_manifests(data, source), source)


def _apart(found: list[Any], source: str) -> list[Document]:
    if not found:
        raise ConfigError(f"{source}: no document in it")
    numbered = [Document(f"{source}: document {n}" if len(found) > 1 else source, v) for n, v in enumerate(found, 1)]
    return [document for outer in numbered for document in _flat(outer)]


def to_review(document: Document) -> Request:
    """The request that an API server would send; a recorded review keeps its own.

    Raises:
        RequestError: it is no object of Kubernetes, or a review that cannot be answered.
    """
    value = document.value
    if not isinstance(value, dict):
        raise RequestError(f"this is {_spelled(value)}, not a Kubernetes object")
    kind, version = value.get("kind"), value.get("apiVersion")
    missing = [key for key, text in (("apiVersion", version), ("kind", kind)) if not isinstance(text, str) or not text]
    if missing or not isinstance(kind, str) or not isinstance(version, str):
        raise RequestError(f"this is not a Kubernetes object: it has no {' and no '.join(missing)}")
    if kind == "AdmissionReview":
        return to_request(value)
    return Request(
        uid=f"offline-{_digest(document)}",
        api_version=API_VERSION,
        operation="CREATE",
        group=version.rpartition("/")[0],
        kind=kind,
        sub_resource="",
        namespace=_text(value, "namespace") or DEFAULT_NAMESPACE,
        name=_text(value, "name"),
        user="",
        dry_run=False,
        object=value,
        old_object=None,
    )


def _digest(document: Document) -> str:
    """Differs from document to document, so that no two decisions share an id."""
    spelled = f"{document.place}\n{document.value!r}".encode(errors="surrogatepass")
    return hashlib.blake2b(spelled, digest_size=8).hexdigest()


def shown_name(request: Request) -> str:
    """The object's name, or the prefix of the name that it will get."""
    found = request.object or request.old_object or {}
    metadata = found.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    name = request.name or told.get("name") or told.get("generateName")
    return name if isinstance(name, str) else ""


def _flat(document: Document) -> Iterator[Document]:
    """Take lists apart, also lists in lists."""
    stack = [document]
    while stack:
        here = stack.pop()
        items = _items(here.value)
        if items is None:
            yield here
        else:
            inside = [Document(f"{here.place}: items[{index}]", item) for index, item in enumerate(items)]
            stack.extend(reversed(inside))


def _items(value: Any) -> list[Any] | None:
    """The items of a List; those of a PodList, as the API gives it, do not say their kind themselves."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    items = value.get("items")
    if not isinstance(items, list):
        return [] if items is None else None
    known = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    return [known | item if known["kind"] and isinstance(item, dict) else item for item in items]


def _text(value: Mapping[str, Any], key: str) -> str:
    metadata = value.get("metadata")
    found = metadata.get(key) if isinstance(metadata, dict) else None
    if found is None or isinstance(found, str):
        return found or ""
    raise Malformed(f"metadata.{key}", "a string", found)


def _spelled(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a bare value"
