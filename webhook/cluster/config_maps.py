"""Settings that ConfigMaps hold. One that cannot be used is refused whole, and the last good one stays."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from webhook import names
from webhook.cluster.client import Client
from webhook.cluster.files import parse_document
from webhook.cluster.mirror import Mirror
from webhook.cluster.snapshot import default_device_config
from webhook.devices.config import DeviceConfig, parse_device_config
from webhook.errors import ConfigError
from webhook.policy import Policy, default_policy, parse_policy

Setting = TypeVar("Setting")
Content = Mapping[str, Any]  # of a ConfigMap: the one key that is read, if it is there

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kind(Generic[Setting]):
    """A kind of setting.

    Attributes:
        source: what logs and metrics call it.
        key: where it stands in its ConfigMap.
        parse: makes it of the key's YAML and the name of the place; raises ConfigError.
        default: what holds without a ConfigMap.
        default_name: what people call that.
        deletable: whether the default holds again when the ConfigMap is deleted; else that is a mistake.
    """

    source: str
    key: str
    parse: Callable[[object, str], Setting]
    default: Callable[[], Setting]
    default_name: str
    deletable: bool


DEVICE_CONFIG: Kind[DeviceConfig] = Kind(
    source="device-config",
    key=names.DEVICE_CONFIG_KEY,
    parse=parse_device_config,
    default=default_device_config,
    default_name="Volcano's built-in defaults",
    deletable=True,  # as Volcano does
)
POLICY: Kind[Policy] = Kind(
    source="policy",
    key=names.POLICY_KEY,
    parse=parse_policy,
    default=default_policy,
    default_name="the default policy",
    deletable=False,  # rules that were off would refuse pods all of a sudden
)


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
