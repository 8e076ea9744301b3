"""What a command tries out on top of device config, policy and nodes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook import names
from webhook.devices.config import VgpuConfig
from webhook.devices.nodes import HANDSHAKE, Node
from webhook.errors import ConfigError
from webhook.inputs.files import parse_document
from webhook.lenient import texts
from webhook.policy.policy import parse_policy
from webhook.settings.snapshot import SnapshotInputs
from webhook.texts import matches
from webhook.volcano.target import Target

MAX_SPLIT = 1000

_NAMESPACE = re.compile(r"namespaces\.(.+)\.(exempt|enforcement|(?:rules|repairs)\.[a-z0-9-]+)")


def try_out(inputs: SnapshotInputs, settings: Sequence[str], split: int | None) -> SnapshotInputs:
    """The inputs with some keys of the policy changed, `KEY=VALUE`, and the split count of all vGPU cards, where given.

    Nodes get or lose the handshake if another device plugin of the policy's target writes it or does not.

    Raises:
        ConfigError: a setting cannot be used, or there is no fleet for the split count.
    """
    nodes = inputs.nodes
    if split is not None:
        if nodes is None:
            raise ConfigError("another split count needs the nodes: start this command with --fleet FILE")
        nodes = [registered(node, inputs.config.vgpu, split=split) for node in nodes]
    document: Mapping[str, Any] = inputs.policy.document
    for setting in settings:
        document = with_setting(document, setting)
    policy = parse_policy(document, "the policy with these settings") if settings else inputs.policy
    target = policy.target.facts()
    if nodes is not None and target.writes_handshake is not inputs.policy.target.facts().writes_handshake:
        nodes = [with_handshake(node, target) for node in nodes]
    return replace(inputs, policy=policy, nodes=nodes)


def registered(
    node: Node, vgpu: VgpuConfig, *, split: int | None = None, factor: int | None = None, mode: str | None = None
) -> Node:
    """The node as its device plugin would register it with another split count, memory factor or sharing mode."""
    text = node.annotations.get(names.NODE_VGPU_REGISTER, "")
    entries = [entry.split(",") for entry in text.split(":")]
    cards = [entry for entry in entries if len(entry) > 1]
    if not cards:
        return node
    offers: dict[str, int] = {}
    for entry in cards:
        if split is not None:
            entry[1] = str(split)
            offers |= dict.fromkeys((vgpu.number_name, names.VGPU_NUMBER), split * len(cards))
        if factor is not None and entry[2:] and entry[2].isdecimal():
            entry[2] = str(int(entry[2]) * vgpu.memory_factor // factor)
        if mode is not None and entry[5:]:
            entry[5] = mode
    if factor is not None:
        memory = sum(int(entry[2]) for entry in cards if entry[2:] and entry[2].isdecimal())
        offers |= dict.fromkeys((vgpu.memory_name, names.VGPU_MEMORY), memory)

    def offered(amounts: Mapping[str, int]) -> dict[str, int]:
        return {name: offers.get(name, amount) if amount else amount for name, amount in amounts.items()}

    register = ":".join([",".join(entry) for entry in entries])
    return replace(
        node,
        annotations={**node.annotations, names.NODE_VGPU_REGISTER: register},
        capacity=offered(node.capacity),
        allocatable=offered(node.allocatable),
    )


def with_handshake(node: Node, target: Target) -> Node:
    """The node as another device plugin leaves it: with a handshake if that plugin writes one."""
    annotations = {key: value for key, value in node.annotations.items() if key != names.NODE_VGPU_HANDSHAKE}
    if target.writes_handshake and names.NODE_VGPU_REGISTER in annotations:
        annotations[names.NODE_VGPU_HANDSHAKE] = HANDSHAKE
    return replace(node, annotations=annotations)


def with_setting(document: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """A policy document with one more `KEY=VALUE`; the value is YAML.

    Raises:
        ConfigError: there is no such key, or the value is no YAML.
    """
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ConfigError(f"setting {setting}: write KEY=VALUE, such as rules.card-count=deny")
    value = parse_document(text.encode(), f"setting {setting}")
    changed: dict[str, Any] = dict(document)
    where = _NAMESPACE.fullmatch(key)
    if where:
        changed["namespaces"] = _with_namespace(changed.get("namespaces"), where[1], where[2].split("."), value)
    else:
        _put(changed, key.split("."), value, setting)
    return changed


def _with_namespace(entries: Any, pattern: str, keys: Sequence[str], value: Any) -> list[Any]:
    """The policy's namespaces with one more entry: the one that decides for this glob so far, with one key changed.

    The last entry that matches decides alone, so it goes to the end.
    """
    found = list(entries) if isinstance(entries, list) else []
    winner: dict[str, Any] = next((entry for entry in reversed(found) if _covers(entry, pattern)), {})
    entry = {**winner, "match": [pattern]}
    _put(entry, keys, value, pattern)
    return [*found, entry]


def _covers(entry: Any, pattern: str) -> bool:
    return matches(pattern, texts(entry, "match"))


def _put(document: dict[str, Any], keys: Sequence[str], value: Any, setting: str) -> None:
    """Set a value below some keys; objects on the way are copied."""
    *parents, last = keys
    for key in parents:
        inner = document.get(key)
        if inner is not None and not isinstance(inner, dict):
            raise ConfigError(f"setting {setting}: {key} has no keys of its own")
        document[key] = dict(inner or {})
        document = document[key]
    document[last] = value
