"""Device config, policy, nodes and other collections as the API server has them: read once, or followed."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from typing import Any, Generic

from webhook.devices.config import DeviceConfig
from webhook.devices.nodes import Node, read_node
from webhook.errors import ClusterError, ConfigError
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.kube.reflector import ABSENT, WATCH_SECONDS, Reflector
from webhook.lenient import obj
from webhook.policy.policy import Policy
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import ClusterOptions, SourceStatus
from webhook.settings.table import (
    COLLECTIONS,
    DEVICE_CONFIG,
    DOCUMENTS,
    FLEET,
    NODES,
    POLICY,
    SETTINGS,
    DocumentSetting,
    Kept,
    ListSetting,
    Place,
    Value,
)

Content = tuple[Any]  # the text of a ConfigMap that is read; None without it

GONE_SECONDS = 300.0  # a node counts, in doubt, after it has disappeared

log = logging.getLogger(__name__)


class ConfigMapSource(Generic[Value]):
    """Follows a setting in the first of several ConfigMaps that exists.

    If a ConfigMap cannot be used, the last good one stays in use; before there was one, the setting is not known.

    Attributes:
        setting: which one.
        required: whether one of the ConfigMaps must exist; otherwise the default applies without one.
        value: the setting in use; the default while it is not known.
        known: whether a ConfigMap could be used, or none has to exist.
        problem: why the newest ConfigMap is not in use; None if it is.
        reflectors: one for each ConfigMap.
    """

    followed = True

    def __init__(
        self,
        setting: DocumentSetting[Value],
        places: Iterable[Place],
        connect: Callable[[], Client],
        *,
        required: bool = False,
    ) -> None:
        """Prepare to follow.

        Args:
            setting: which one.
            places: of the ConfigMaps; the first that exists applies.
            connect: makes a client.
            required: as the attribute.
        """
        self.setting = setting
        self.required = required
        self.value = setting.default()
        self.known = False
        self.problem: str | None = "not read yet"
        self.reflectors = [self._reflector(namespace, name, connect) for namespace, name in places]
        self._origin = "unknown"
        self._seen: tuple[str, Content | None] | None = None  # what `refresh` read last

    def version(self, _stale_after: float) -> tuple[int, ...]:
        """The versions of the copies."""
        return tuple(reflector.version for reflector in self.reflectors)

    def refresh(self) -> bool:
        """Use the ConfigMap if it has changed; returns whether that counts as a reload."""
        found = self._found()
        if found is None or found == self._seen:
            return False
        first, self._seen = self._seen is None, found
        try:
            self.value, self._origin = self._read(*found)
        except ConfigError as error:
            self.problem = str(error)
            follows = f"{self._origin} stays in use" if self.known else "it is not known until that is corrected"
            log.error("%s: %s; %s", self.setting.option, self.problem, follows)  # noqa: TRY400
            return True
        self.known, self.problem = True, None
        log.info("%s: %s is in use", self.setting.option, self._origin)
        return not first or found[1] is not None

    @property
    def settled(self) -> bool:
        """Whether the ConfigMaps were looked for."""
        return self._seen is not None

    @property
    def unreachable(self) -> bool:
        """Whether a ConfigMap cannot be read at the moment."""
        return any(reflector.problem for reflector in self.reflectors)

    def status(self) -> SourceStatus:
        """What is in use, why the newest ConfigMap is not, and the problems of the connection. Safe in any thread."""
        problems = [self.problem] if self.problem else []
        problems += [
            f"{reflector.name}: {problem}"
            for reflector in self.reflectors
            if (problem := reflector.problem or reflector.absent)
        ]
        return SourceStatus(self._origin, "; ".join(problems) or None)

    def _found(self) -> tuple[str, Content | None] | None:
        """Place and content of the ConfigMap that applies; content None if there is none; None before all were listed."""
        for reflector in self.reflectors:
            if reflector.confirmed is None and not reflector.absent:
                return None
            for content in tuple(reflector.objects.values()):
                return reflector.name, content
        return " and no ".join(reflector.name for reflector in self.reflectors), None

    def _read(self, place: str, content: Content | None) -> tuple[Value, str]:
        setting = self.setting
        if content is None:
            if self.known and (self.required or not setting.deletable):
                raise ConfigError(f"{place} was deleted")
            if self.required:
                raise ConfigError(_missing(setting, place))
            return setting.default(), f"{setting.default_name} (there is no {place})"
        return setting.read_text(*content, place), place

    def _reflector(self, namespace: str, name: str, connect: Callable[[], Client]) -> Reflector[Content]:
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        # Selected by name, as RBAC can grant it.
        query = {"fieldSelector": f"metadata.name={name}"}
        found = Reflector(f"ConfigMap {namespace}/{name}", path, connect, self._keep, query)
        found.optional = self.setting.optional
        return found

    def _keep(self, raw: dict[str, Any]) -> Content:
        return (self.setting.text_in(obj(raw, "data")),)


@dataclass(frozen=True, slots=True, eq=False)
class _NodeCache:
    """Nodes, and the device config that determines what is kept of them."""

    config: DeviceConfig
    reflector: Reflector[Node]

    def serves(self, config: DeviceConfig) -> bool:
        """Whether another device config keeps the same fields of nodes."""
        return _node_fields(self.config) == _node_fields(config)


def _node_fields(config: DeviceConfig) -> tuple[frozenset[str], frozenset[str]]:
    return config.node_annotations, frozenset(config.roles)


class _GoneNodes:
    """The nodes that have disappeared from the API server, for some minutes: most come back, as when their machine restarts.

    Attributes:
        forgotten: grows when some are no longer remembered.
    """

    def __init__(self) -> None:
        self.forgotten = 0
        self._last: Mapping[str, Node] = {}
        self._gone: dict[str, tuple[Node, float]] = {}  # with the time at which each is forgotten (time.monotonic)

    def update(self, nodes: Mapping[str, Node]) -> list[Node]:
        """Compare the nodes with those of the last update; returns those that are gone."""
        missing = self._last.keys() - nodes.keys()
        until = time.monotonic() + GONE_SECONDS
        self._gone |= {name: (replace(self._last[name], gone=True), until) for name in missing}
        self._gone = {name: found for name, found in self._gone.items() if name not in nodes}
        self._last = dict(nodes)
        return [node for node, _ in self._gone.values()]

    def forget(self) -> None:
        """Forget those that are gone for too long."""
        now = time.monotonic()
        kept = {name: found for name, found in self._gone.items() if found[1] > now} if self._gone else self._gone
        if len(kept) < len(self._gone):
            self._gone = kept
            self.forgotten += 1


class NodeSource:
    """Follows the nodes, and keeps of them what the device config reads.

    When a new device config reads other fields, the nodes are listed again. Until that list is complete, the old nodes
    and the old device config stay in use together. Otherwise the old nodes would seem to lack the fields that the new
    device config reads, and the webhook would refuse good pods.

    Attributes:
        began: when the source began to wait for nodes (time.monotonic).
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        """Prepare.

        Args:
            connect: makes a client.
        """
        self._connect = connect
        self.began = time.monotonic()
        self._current: _NodeCache | None = None
        self._next: _NodeCache | None = None
        self._gone = _GoneNodes()

    def follow(self, config: DeviceConfig, stale_after: float) -> None:
        """Keep the fields that this device config reads, and confirm them at least twice before they are stale."""
        newest = self._next or self._current
        if newest is None or not newest.serves(config):
            if self._next is not None:
                self._next.reflector.stop()
            reflector = Reflector("nodes", NODES, self._connect, partial(read_node, config=config))
            self._next = newest = _NodeCache(config, reflector)
        newest.reflector.watch_seconds = min(WATCH_SECONDS, stale_after / 2)
        newest.reflector.start()

    def switch(self) -> None:
        """Use the newer copy of the nodes once its list is complete."""
        if self._next is not None and self._next.reflector.confirmed is not None:
            if self._current is not None:
                self._current.reflector.stop()
            self._current, self._next = self._next, None
            self._gone = _GoneNodes()  # those of the last copy have other fields

    @property
    def version(self) -> tuple[object, int, int]:
        """Which copy of the nodes is in use, its version, and how often nodes that are gone were forgotten."""
        self._gone.forget()
        return self._current, self._current.reflector.version if self._current else 0, self._gone.forgotten

    def known(self, stale_after: float) -> bool:
        """Whether the nodes are listed, and not stale."""
        return self._current is not None and self.age() <= stale_after

    def read(self, config: DeviceConfig, stale_after: float) -> tuple[DeviceConfig, list[Node] | None]:
        """The device config in use, and its nodes, with those that are gone; None if they are not known, or stale."""
        if self._current is None or not self.known(stale_after):
            return config, None
        objects = self._current.reflector.objects.copy()
        # Sorted, so that every replica has the same fleet, digest and order of messages.
        nodes = sorted((*objects.values(), *self._gone.update(objects)), key=attrgetter("name"))
        return config if self._current.serves(config) else self._current.config, nodes

    def age(self) -> float:
        """Seconds since they were last confirmed to be up to date, or since the start if they never were."""
        confirmed = self._current.reflector.confirmed if self._current else None
        return time.monotonic() - (self.began if confirmed is None else confirmed)

    @property
    def problem(self) -> str | None:
        """Why the copy is not being updated; None if it is, or if the nodes are not followed yet."""
        newest = self._next or self._current
        return newest.reflector.problem if newest else None

    def status(self, stale_after: float) -> SourceStatus:
        """The age of the copy, and its problem. Safe in any thread."""
        known, age = self.known(stale_after), self.age()
        problem = None
        if not known or self.problem:
            news = "not listed yet" if self._current is None else f"last news {age:.0f} s ago"
            if self._current is not None and not known:
                news += f", more than the {stale_after:.0f} s after which they count as unknown"
            problem = f"{news}: {self.problem}" if self.problem else news
        return SourceStatus("the API server", problem, age)

    def stop(self) -> None:
        """Stop the reflectors; returns at once."""
        for cache in (self._current, self._next):
            if cache is not None:
                cache.reflector.stop()


class CollectionSource(Generic[Kept]):
    """Follows a collection; unknown where the cluster does not have the kind, or the webhook may not read it.

    Attributes:
        setting: which one.
        reflectors: one, which keeps the copy.
        followed: whether to follow it: from the start, or from the time on when a known policy has the rule on that reads it.
    """

    def __init__(self, setting: ListSetting[Kept], connect: Callable[[], Client]) -> None:
        """Prepare.

        Args:
            setting: which one.
            connect: makes a client.
        """
        self.setting = setting
        self._reflector: Reflector[Kept] = Reflector(setting.part, setting.path, connect, setting.keep)
        self._reflector.optional = setting.optional
        self.reflectors = [self._reflector]
        self.followed = not setting.rule

    def version(self, stale_after: float) -> int | None:
        """The version of the copy; None if the objects are not known, or stale."""
        confirmed = self._reflector.confirmed
        known = confirmed is not None and time.monotonic() - confirmed <= stale_after
        return self._reflector.version if known else None

    def read(self, policy: Policy, *, policy_known: bool) -> Any:
        """The objects, indexed; None if they are not known, or stale, or if no rule reads them.

        Args:
            policy: in use; it also says when objects are stale, and they are confirmed at least twice before.
            policy_known: it is the cluster's, or that of a file, so that the objects can be followed that its rules read.
        """
        if not self.setting.is_read(policy):
            return None
        if policy_known:
            self.followed = True
            self._reflector.start()
        self._reflector.watch_seconds = min(WATCH_SECONDS, policy.stale_after / 2)
        if self.version(policy.stale_after) is None:
            missing = self._reflector.absent is not None and not self._reflector.forbidden
            return None if missing or self.setting.unread is None else self.setting.unread()
        return self.setting.index(tuple(self._reflector.objects.values()))

    @property
    def settled(self) -> bool:
        """Whether they were listed, or cannot be."""
        return self._reflector.confirmed is not None or self._reflector.absent is not None

    def status(self) -> SourceStatus:
        """The API server, and why it does not give the objects. Safe in any thread."""
        if absent := self._reflector.absent:
            doubted = self._reflector.forbidden and self.setting.unread is not None
            return SourceStatus("unknown", absent) if doubted else SourceStatus(f"unknown ({absent})")
        problem = self._reflector.problem or (None if self.settled else "not listed yet")
        return SourceStatus(
            "the API server", problem or self.setting.complaint(tuple(self._reflector.objects.values()))
        )


class ClusterSources:
    """The settings of a cluster, except those that files give. Created before the server forks; started in its worker."""

    def __init__(self, options: ClusterOptions, given: Mapping[str, Any]) -> None:
        """Prepare; this sends nothing.

        Args:
            options: what to follow.
            given: the settings of files by part, which take precedence over the cluster's.

        Raises:
            ConfigError: there are no credentials.
        """
        credentials = Credentials(options.kubeconfig, options.context)
        connect = partial(Client, credentials)
        connect()  # raises ConfigError if there are no credentials; each thread makes its own client
        self._given = given
        self._given_version = 0
        self._documents = {
            each.part: ConfigMapSource(
                each, _places(each, options, credentials), connect, required=each.part in options.required
            )
            for each in DOCUMENTS
            if each.part not in given
        }
        self._nodes = NodeSource(connect)
        self._collections = [CollectionSource(each, connect) for each in COLLECTIONS if each.part not in given]
        self._sources: list[ConfigMapSource[Any] | CollectionSource[Any]] = [
            *self._documents.values(),
            *self._collections,
        ]

    def give(self, given: Mapping[str, Any]) -> None:
        """Take newer settings of the same files."""
        self._given = given
        self._given_version += 1

    def start(self) -> None:
        """Start the threads."""
        self._nodes.began = time.monotonic()
        for reflector in self._reflectors():
            reflector.start()

    def stop(self) -> None:
        """End all threads; returns at once."""
        self._nodes.stop()
        for source in self._sources:
            for reflector in source.reflectors:
                reflector.stop()

    def version(self) -> tuple[object, ...]:
        """Another one when a new snapshot is due; takes the newest complete copy of the nodes into use."""
        self._nodes.switch()
        stale_after = self._policy.stale_after
        copies = [source.version(stale_after) for source in self._sources]
        return self._given_version, self.nodes_known, self._nodes.version, *copies

    @property
    def nodes_known(self) -> bool:
        """Whether the copy of the nodes in use is complete, and not stale."""
        return self._nodes.known(self._policy.stale_after)

    @property
    def complete(self) -> bool:
        """Whether everything that the cluster has is known, or the rest cannot be read now."""
        if self._nodes.problem or any(reflector.problem for reflector in self._reflectors()):
            return True
        nodes_known = self.nodes_known or FLEET.part in self._given
        return nodes_known and all(source.settled or not source.followed for source in self._sources)

    @property
    def unknown(self) -> dict[str, str]:
        """By option, why a document that reviews must not do without is not known; empty if all are."""
        return {
            source.setting.option: source.status().problem or ""
            for source in self._documents.values()
            if not source.known and not source.setting.optional
        }

    def read(self) -> tuple[SnapshotInputs, Mapping[str, bool]]:
        """Read what has changed, and follow the nodes and collections that the device config and the policy require.

        Returns:
            What a snapshot is built from, and for each ConfigMap that has changed whether its new version can be used.
        """
        sources, given = self._documents, self._given
        reloaded = {each.setting.option: each.problem is None for each in sources.values() if each.refresh()}
        values = {part: source.value for part, source in sources.items()} | {**given}
        policy = values[POLICY.part]
        config_known, policy_known = (
            setting.part in given or sources[setting.part].settled for setting in (DEVICE_CONFIG, POLICY)
        )
        for source in self._collections:
            values[source.setting.part] = source.read(policy, policy_known=policy_known)
        inputs = SnapshotInputs.of(values)
        if FLEET.part not in given:
            # The device config determines what to keep of nodes, the policy how long a watch of them may last.
            if config_known and (policy_known or sources[POLICY.part].unreachable):
                self._nodes.follow(inputs.config, policy.stale_after)
            config, nodes = self._nodes.read(inputs.config, policy.stale_after)
            inputs = replace(inputs, config=config, nodes=nodes)
        return inputs, reloaded

    def statuses(self) -> dict[str, SourceStatus]:
        """The status of each setting that no file gives, by part."""
        found = {source.setting.part: source.status() for source in self._sources if source.followed}
        if FLEET.part not in self._given:
            found[FLEET.part] = self._nodes.status(self._policy.stale_after)
        return found

    def age(self) -> float | None:
        """Seconds since the nodes were last confirmed to be up to date; None if they come from a file."""
        return None if FLEET.part in self._given else self._nodes.age()

    @property
    def _policy(self) -> Policy:
        found: Policy = self._given.get(POLICY.part) or self._documents[POLICY.part].value
        return found

    def _reflectors(self) -> list[Reflector[Any]]:
        """Those of everything but the nodes that is followed."""
        return [reflector for source in self._sources if source.followed for reflector in source.reflectors]


def read_inputs(client: Client, options: ClusterOptions, given: Mapping[str, Any]) -> SnapshotInputs:
    """Read the settings of the cluster as it is now, except for what files give.

    Raises:
        ClusterError: a request failed.
        ConfigError: a setting cannot be used.
    """
    values = {**given}
    for setting in SETTINGS:
        if setting.part in given:
            continue
        try:
            if isinstance(setting, DocumentSetting):
                places = _places(setting, options, Credentials(options.kubeconfig, options.context))
                values[setting.part] = _read_document(client, setting, places, setting.part in options.required)
            elif setting is FLEET:
                values[setting.part] = client.list(setting.path)  # read later, one page at a time
            elif isinstance(setting, ListSetting) and setting.is_read(values[POLICY.part]):
                values[setting.part] = setting.index(setting.kept(client.list(setting.path)))
        except ClusterError as error:
            if not setting.optional or error.status not in ABSENT:
                raise
            if isinstance(setting, ListSetting) and setting.unread and error.status == HTTPStatus.FORBIDDEN:
                values[setting.part] = setting.unread()
    return SnapshotInputs.of(values)


def _read_document(client: Client, setting: DocumentSetting[Value], places: Sequence[Place], required: bool) -> Value:
    """Read a document from the first ConfigMap that exists; otherwise the default, unless one is required."""
    for namespace, name in places:
        try:
            found = client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                continue
            raise
        try:
            return setting.read_text(setting.text_in(obj(found, "data")), f"ConfigMap {namespace}/{name}")
        except ConfigError:
            if not setting.optional:
                raise
    if required:
        raise ConfigError(_missing(setting, " and no ".join(f"ConfigMap {'/'.join(place)}" for place in places)))
    return setting.default()


def _missing(setting: DocumentSetting[Any], place: str) -> str:
    return f"there is no {place}, and --{setting.option}-map names it: create it with the key {setting.key}"


def _places(setting: DocumentSetting[Any], options: ClusterOptions, credentials: Credentials) -> list[Place]:
    return [(namespace or credentials.webhook_namespace, name) for namespace, name in options.places[setting.part]]
