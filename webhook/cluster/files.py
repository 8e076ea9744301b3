"""Device config, policy and fleet from files, bounded and strict."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webhook import names
from webhook.cluster.documents import parse_documents
from webhook.devices.config import DeviceConfig, parse_device_config
from webhook.devices.nodes import Node, read_node
from webhook.errors import ConfigError
from webhook.policy import Policy, parse_policy

MAX_SETTINGS_BYTES = 1 << 20
MAX_FLEET_BYTES = 1 << 30  # 50,000 nodes as kubectl prints them
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
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    if len(data) > limit:
        raise ConfigError(f"{path}: larger than {limit >> 20} MiB")
    return data


def load_device_config(path: str | Path) -> DeviceConfig:
    """Read a device config: the text of `device-config.yaml`, or the ConfigMap that holds it.

    Raises:
        ConfigError: it cannot be read or used.
    """
    document = _single(read_bytes(path, MAX_SETTINGS_BYTES), str(path))
    if isinstance(document, dict) and document.get("kind") == "ConfigMap":
        data = document.get("data")
        text = data.get(names.DEVICE_CONFIG_KEY) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise ConfigError(f"{path}: the ConfigMap has no key {names.DEVICE_CONFIG_KEY}")
        document = _single(text.encode(), f"{path}: {names.DEVICE_CONFIG_KEY}")
    return parse_device_config(document, str(path))


def load_policy(path: str | Path) -> Policy:
    """Read a policy file.

    Raises:
        ConfigError: it cannot be read or used.
    """
    return parse_policy(_single(read_bytes(path, MAX_SETTINGS_BYTES), str(path)), str(path))


def load_nodes(path: str | Path, config: DeviceConfig) -> list[Node]:
    """Read the nodes with devices from what `kubectl get nodes -o yaml|json` prints.

    Raises:
        ConfigError: it cannot be read, or holds something else than nodes.
    """
    nodes: list[Node] = []
    for document in parse_documents(read_bytes(path, MAX_FLEET_BYTES), str(path)):
        for item in _items(document, str(path)):
            node = read_node(item, config)
            if node is not None:
                nodes.append(node)
    return nodes


def _single(data: bytes, source: str) -> Any:
    documents = parse_documents(data, source)
    if len(documents) > 1:
        raise ConfigError(f"{source}: {len(documents)} documents where one is expected")
    return documents[0] if documents else None


def _items(document: Any, source: str) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict) or document.get("kind") not in ("List", "NodeList", "Node"):
        raise ConfigError(f"{source}: a fleet file holds nodes, as `kubectl get nodes -o yaml` prints them")
    items = [document] if document["kind"] == "Node" else document.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigError(f"{source}: items is no list of nodes")
    yield from items
