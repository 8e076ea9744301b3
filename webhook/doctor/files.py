"""Facts from a directory of YAML and JSON, as `kubectl get … -o yaml` prints them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from webhook.doctor.facts import EVERYWHERE, Facts, Kind, Unread, kept
from webhook.doctor.reading import Object, name_of, namespace_of
from webhook.errors import ConfigError
from webhook.mistakes import mistake_in_file
from webhook.offline.manifests import parse_manifests
from webhook.policy.policy import Policy
from webhook.settings.files import read_bytes

SUFFIXES = (".yaml", ".yml", ".json")
MAX_FILES = 1_000
MAX_BYTES = 256 << 20  # of all files

_WITHOUT_KEY = "`kubectl get secret -n NAMESPACE NAME -o json | jq 'del(.data[\"tls.key\"])'`"


def facts_from(directory: Path, now: datetime, policy: Policy | None) -> tuple[Facts, list[str]]:
    """Read all files below a directory.

    Returns:
        What they say, and complaints about files that cannot be read.

    Raises:
        ConfigError: the directory cannot be read, or holds nothing to look at.
    """
    collection = _Collection()
    complaints: list[str] = []
    left = MAX_BYTES
    for path in _files(directory):
        try:
            data = read_bytes(path, left)
            left -= len(data)
            for document in parse_manifests(data, str(path)):
                collection.add(document)
        except ConfigError as error:
            complaints.append(str(error))
    if not collection.objects and not complaints:
        raise ConfigError(f"{directory}: holds no file ({', '.join(SUFFIXES)}) with an object that is looked at")
    return collection.facts(directory, now, policy), complaints


def _files(directory: Path) -> list[Path]:
    """Regular files only: a pipe would be waited for."""

    def fail(error: OSError) -> None:
        raise ConfigError(f"{error.filename}: {mistake_in_file(error)}")

    found: list[Path] = []
    for parent, _, names in os.walk(directory, onerror=fail):
        found += [path for name in names if (path := Path(parent, name)).suffix in SUFFIXES and path.is_file()]
        if len(found) > MAX_FILES:
            raise ConfigError(f"{directory}: more than {MAX_FILES} files")
    return sorted(found)


@dataclass(slots=True)
class _Collection:
    """Objects of all files; of one that stands twice, the first."""

    objects: dict[Kind, dict[tuple[str, str], Object]] = field(default_factory=dict)
    complete: set[tuple[Kind, str]] = field(default_factory=set)

    def add(self, document: Any) -> None:
        """Take the objects of a document, and say of a List that it holds all of its kind in its namespaces."""
        listed: dict[Kind, set[str]] = {}
        for raw, in_list in _flat(document):
            kind = _kind(raw)
            if kind is None:
                continue
            key = (namespace_of(raw) if kind.namespaced else EVERYWHERE, name_of(raw))
            self.objects.setdefault(kind, {}).setdefault(key, kept(kind, raw))
            if in_list:
                listed.setdefault(kind, set()).add(key[0])
        for kind, namespaces in listed.items():
            everywhere = len(namespaces) > 1  # kubectl prints several of them only with -A
            self.complete |= {(kind, namespace) for namespace in ({EVERYWHERE} if everywhere else namespaces)}

    def facts(self, directory: Path, now: datetime, policy: Policy | None) -> Facts:
        gaps = {(kind, EVERYWHERE): Unread(kind.plural, f"not in {directory}", _command(kind)) for kind in Kind}
        needs = "a run against the cluster"
        return Facts(
            now=now,
            objects={kind: tuple(found.values()) for kind, found in self.objects.items()},
            complete=frozenset(self.complete),
            gaps=gaps,
            policy=policy,
            readiness=Unread("/readyz of the webhook", "files do not tell", needs),
            metrics=Unread("metrics of the API server", "files do not tell", needs),
        )


def _command(kind: Kind) -> str:
    if kind is Kind.SECRET:
        return _WITHOUT_KEY
    return f"`kubectl get {kind.plural}{' -A' if kind.namespaced else ''} -o yaml`"


def _kind(raw: Object) -> Kind | None:
    kind = raw.get("kind")
    return Kind(kind) if kind in list(Kind) else None


def _flat(document: Any) -> Iterator[tuple[Object, bool]]:
    """The objects of a document, and whether they stand in a List; those of a NodeList do not say their kind."""
    stack = [(document, False)]
    while stack:
        value, in_list = stack.pop()
        if not isinstance(value, dict):
            continue
        kind, items = value.get("kind"), value.get("items")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            own = kind.removesuffix("List")
            known = {"kind": own} if own else {}
            stack += [(known | item, True) for item in reversed(items) if isinstance(item, dict)]
        else:
            yield value, in_list
