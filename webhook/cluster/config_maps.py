"""Settings that ConfigMaps hold. One that cannot be used is refused whole, and the last good one stays."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from webhook.cluster.client import Client
from webhook.cluster.files import parse_document
from webhook.cluster.kinds import Kind, Setting
from webhook.cluster.mirror import Mirror
from webhook.cluster.sources import Standing
from webhook.errors import ConfigError

Content = Mapping[str, Any]  # of a ConfigMap: the one key that is read, if it is there

log = logging.getLogger(__name__)


class ConfigMapSetting(Generic[Setting]):
    """Reads a setting from the first of some places that has its ConfigMap.

    Attributes:
        kind: what it is.
        value: the setting; the default until there is another.
        origin: where the value comes from, for people.
        problem: why the newest ConfigMap is not in use; None if it is.
        settled: whether it is known which ConfigMap counts, or that there is none.
        mirrors: what it reads, one for each place.
    """

    def __init__(self, kind: Kind[Setting], places: Sequence[tuple[str, str]], connect: Callable[[], Client]) -> None:
        """Prepare to read.

        Args:
            kind: what to read.
            places: namespace and name of the ConfigMaps, the most important first.
            connect: makes a client.
        """
        self.kind = kind
        self.value = kind.default()
        self.origin = kind.default_name
        self.problem: str | None = None
        self.settled = False
        self.mirrors = [self._mirror(namespace, name, connect) for namespace, name in places]
        self._seen: tuple[str, Content | None] | None = None  # what was read last

    def refresh(self) -> bool:
        """Read what has changed; whether that is worth counting."""
        found = self._found()
        if found is None or found == self._seen:
            return False
        first, self._seen, self.settled = self._seen is None, found, True
        try:
            self.value, self.origin = self._read(*found, first=first)
        except ConfigError as error:
            self.problem = str(error)
            log.error("%s: %s; %s stays in use", self.kind.source, self.problem, self.origin)  # noqa: TRY400
            return True
        self.problem = None
        log.info("%s: %s is in use", self.kind.source, self.origin)
        return not first or found[1] is not None

    def line(self) -> str:
        """For people: what is in use, and why nothing newer."""
        if not self.settled:
            return f"{self.kind.source}: not read yet; {self.origin} until then"
        if self.problem:
            return f"{self.kind.source}: {self.problem}; {self.origin} stays in use"
        return f"{self.kind.source}: {self.origin}"

    def standing(self) -> Standing:
        """The same as values, and whether the API server can be asked at all. For any thread."""
        told = [] if self.settled else ["not read yet"]
        told += [self.problem or ""] + [f"{mirror.name}: {said}" for mirror in self.mirrors if (said := mirror.problem)]
        return Standing(self.origin, "; ".join(filter(None, told)) or None)

    def _found(self) -> tuple[str, Content | None] | None:
        """Place and content of the ConfigMap that counts; no content if there is none; None while that is not known."""
        for mirror in self.mirrors:
            if mirror.heard is None:
                return None
            for content in tuple(mirror.objects.values()):
                return mirror.name, content
        return " and no ".join(mirror.name for mirror in self.mirrors), None

    def _read(self, place: str, content: Content | None, *, first: bool) -> tuple[Setting, str]:
        key = self.kind.key
        if content is None:
            if not first and not self.kind.deletable:
                raise ConfigError(f"{place} was deleted")
            return self.kind.default(), f"{self.kind.default_name} (there is no {place})"
        text = content.get(key)
        if not isinstance(text, str):
            raise ConfigError(f"{place} has no key {key}")
        return self.kind.parse(parse_document(text.encode(), f"{place}: {key}"), f"{place}: {key}"), place

    def _mirror(self, namespace: str, name: str, connect: Callable[[], Client]) -> Mirror[Content]:
        def keep(raw: dict[str, Any]) -> Content:
            data = raw.get("data")
            return {self.kind.key: data[self.kind.key]} if isinstance(data, dict) and self.kind.key in data else {}

        path = f"/api/v1/namespaces/{namespace}/configmaps"
        # Asked for by name, as RBAC can grant it.
        return Mirror(f"ConfigMap {namespace}/{name}", path, connect, keep, {"fieldSelector": f"metadata.name={name}"})
