"""Device config, policy and fleet from files, bounded and strict."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.config_file import parse_device_config
from webhook.devices.nodes import Node, read_node
from webhook.errors import ConfigError
from webhook.inputs.files import parse_document, read_bytes
from webhook.inputs.parse import parse_documents
from webhook.lenient import at, table
from webhook.policy.policy import Policy, default_policy, parse_policy
from webhook.settings.snapshot import SnapshotInputs, default_device_config
from webhook.settings.sources import COLLECTIONS, Collection, KubectlFile, key_in
from webhook.volcano.collections import Collections
from webhook.volcano.scheduler import SchedulerConf, parse_scheduler_conf

Loaded = TypeVar("Loaded")

MAX_SETTINGS_BYTES = 1 << 20
MAX_FLEET_BYTES = 1 << 30  # 50,000 nodes as kubectl prints them
MAX_LISTING_BYTES = 64 << 20  # 10,000 queues take some 10 MiB
SAMPLES = Path(str(files("webhook"))) / "samples"
SAMPLE_FLEET, SAMPLE_PODS = SAMPLES / "fleet.yaml", SAMPLES / "pods.yaml"


@dataclass(frozen=True, slots=True, eq=False)
class FileSettings:
    """The content of the settings files; None where there is no file. Compared by identity.

    Attributes:
        config, policy, scheduler: as read.
        raw_nodes: complete nodes, because the device config determines which fields are needed.
        collections: as read.
    """

    config: DeviceConfig | None = None
    policy: Policy | None = None
    raw_nodes: list[dict[str, Any]] | None = None
    scheduler: SchedulerConf | None = None
    collections: Collections = field(default_factory=Collections)

    def nodes(self, config: DeviceConfig) -> list[Node] | None:
        """The nodes with devices, as this device config reads them; None if there is no file."""
        if self.raw_nodes is None:
            return None
        return [node for raw in self.raw_nodes if (node := read_node(raw, config)) is not None]

    def inputs(self) -> SnapshotInputs:
        """The inputs of a snapshot without a cluster."""
        config = self.config or default_device_config()
        policy = self.policy or default_policy()
        return SnapshotInputs(config, policy, self.nodes(config), self.scheduler, self.collections)


@dataclass(frozen=True, slots=True)
class SettingsPaths:
    """The paths of settings files; None where no file is given.

    Attributes:
        device_config: `device-config.yaml` or its ConfigMap.
        policy: the policy file.
        fleet: what `kubectl get nodes -o yaml` prints.
        scheduler_conf: `volcano-scheduler.conf` or its ConfigMap.
        collections: what kubectl prints of a collection, by its field in `Collections`.
    """

    device_config: Path | None = None
    policy: Path | None = None
    fleet: Path | None = None
    scheduler_conf: Path | None = None
    collections: Mapping[str, Path] = field(default_factory=dict)

    @property
    def by_part(self) -> dict[str, Path]:
        """Those that are given, by their setting's key in `Snapshot.digests`."""
        every = {
            "config": self.device_config,
            "policy": self.policy,
            "fleet": self.fleet,
            "scheduler": self.scheduler_conf,
            **self.collections,
        }
        return {part: path for part, path in every.items() if path is not None}

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that are given."""
        return tuple(self.by_part.values())

    def or_samples(self) -> "SettingsPaths":
        """The same paths, with the package's sample device config and fleet where none is given."""
        return replace(
            self,
            device_config=self.device_config or SAMPLES / "device-config.yaml",
            fleet=self.fleet or SAMPLE_FLEET,
        )

    def load(self, begin: Callable[[str, Path], None] = lambda _, __: None) -> FileSettings:
        """Read the files.

        Args:
            begin: called before each file is read, with its setting's key in `Snapshot.digests`, and its path.

        Raises:
            ConfigError: one of them cannot be used.
        """
        given = self.by_part

        def read(part: str, load: Callable[[Path], Loaded]) -> Loaded | None:
            path = given.get(part)
            if path is None:
                return None
            begin(part, path)
            return load(path)

        return FileSettings(
            read("config", load_device_config),
            read("policy", load_policy),
            read("fleet", load_raw_nodes),
            read("scheduler", load_scheduler_conf),
            Collections(*[read(each.part, partial(load_collection, collection=each)) for each in COLLECTIONS]),
        )


def load_device_config(path: str | Path) -> DeviceConfig:
    """Read a device config: the text of `device-config.yaml`, or the ConfigMap that holds it.

    Raises:
        ConfigError: it cannot be read or used.
    """
    return parse_device_config(load_document(path, names.DEVICE_CONFIG_KEY), str(path))


def load_scheduler_conf(path: str | Path) -> SchedulerConf:
    """Read a scheduler's configuration: the text of `volcano-scheduler.conf`, or the ConfigMap that holds it.

    Raises:
        ConfigError: it cannot be read or used.
    """
    data = read_bytes(path, MAX_SETTINGS_BYTES)
    return parse_scheduler_conf(_document_or_map(data, str(path), names.SCHEDULER_CONF_KEY), str(path))


def load_policy(path: str | Path) -> Policy:
    """Read a policy file: the text of the policy, or the ConfigMap that holds it.

    Raises:
        ConfigError: it cannot be read or used.
    """
    return read_policy(read_bytes(path, MAX_SETTINGS_BYTES), str(path))


def read_policy(data: bytes, source: str) -> Policy:
    """Read the bytes of a policy file.

    Raises:
        ConfigError: they cannot be read or used.
    """
    return parse_policy(_document_or_map(data, source, names.POLICY_KEY), source)


def load_document(path: str | Path, key: str) -> Any:
    """Read a settings file as it is written: a document, or the one in a key of a ConfigMap.

    Raises:
        ConfigError: it cannot be read.
    """
    return _document_or_map(read_bytes(path, MAX_SETTINGS_BYTES), str(path), key)


def _document_or_map(data: bytes, source: str, key: str) -> Any:
    """A document; that of a ConfigMap's key if the document is a ConfigMap."""
    document = parse_document(data, source)
    if not isinstance(document, dict) or document.get("kind") != "ConfigMap":
        return document
    section = table(document, "data")
    text = section.get(key_in(section, key))
    if not isinstance(text, str):
        raise ConfigError(f"{source}: the ConfigMap has no key {key}; name the ConfigMap that has it")
    return parse_document(text.encode(), f"{source}: {key}")


def load_nodes(path: str | Path, config: DeviceConfig) -> list[Node]:
    """Read the nodes with devices from what `kubectl get nodes -o yaml|json` prints.

    Raises:
        ConfigError: it cannot be read, or holds something else than nodes.
    """
    return FileSettings(raw_nodes=load_raw_nodes(path)).nodes(config) or []


def load_raw_nodes(path: str | Path) -> list[dict[str, Any]]:
    """Read all nodes, as they are.

    Raises:
        ConfigError: as `load_nodes`.
    """
    return raw_nodes(parse_documents(read_bytes(path, MAX_FLEET_BYTES), str(path)), str(path))


def raw_nodes(documents: Iterable[Any], source: str) -> list[dict[str, Any]]:
    """The nodes in parsed documents, as they are.

    Raises:
        ConfigError: they hold something else than nodes; the message begins with `source`.
    """
    nodes = [item for document in documents for item in _items(document, source, _FLEET)]
    if not nodes:  # without a node every device pod would be refused
        raise ConfigError(f"{source}: there is no node in it; write all that `kubectl get nodes -o yaml` prints")
    if missing := _missing_part(nodes[-1]):
        raise ConfigError(
            f"{source}: its last node has no {missing}, so the file seems to be cut off; "
            "write all that `kubectl get nodes -o yaml` prints"
        )
    return nodes


def load_collection(path: str | Path, collection: Collection[Any]) -> Any:
    """Read a collection from what `kubectl get … -o yaml|json` prints, and index it.

    Raises:
        ConfigError: it cannot be read, holds something else, or is empty and cannot be.
    """
    listing, source = collection.listing, str(path)
    documents = parse_documents(read_bytes(path, MAX_LISTING_BYTES), source)
    found = collection.kept(item for document in documents for item in _items(document, source, listing))
    if not found and not collection.empty:
        raise ConfigError(
            f"{source}: there is no {listing.kind.lower()} in it; write all that `{listing.command}` prints"
        )
    return collection.index(found)


_FLEET = KubectlFile("a fleet file", "Node", "nodes", "kubectl get nodes -o yaml")


def _items(document: Any, source: str, listing: KubectlFile) -> Iterator[dict[str, Any]]:
    only = f"{listing.file} holds {listing.plural}"
    if not isinstance(document, dict) or document.get("kind") not in ("List", f"{listing.kind}List", listing.kind):
        # kubectl sorts the keys, so `kind` comes after `items`.
        cut_off = isinstance(document, dict) and "items" in document and "kind" not in document
        hint = "; this one ends before `kind: List`, so it seems to be cut off" if cut_off else ""
        raise ConfigError(f"{source}: {only}, as `{listing.command}` prints them{hint}")
    items = [document] if document["kind"] == listing.kind else document.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError(f"{source}: items is not a list of {listing.plural}")
    for index, item in enumerate(items):
        kind = item.get("kind", listing.kind)  # the items of a NodeList have none
        if kind != listing.kind:
            raise ConfigError(f"{source}: {only}, but items[{index}] is a {str(kind)[:40]}")
        yield item


def _missing_part(node: dict[str, Any]) -> str | None:
    """A field that every node of an API server has and this one lacks; None if it has all."""
    fields = (("metadata", "name"), ("status", "allocatable"))
    return next((".".join(field) for field in fields if at(node, *field) is None), None)
