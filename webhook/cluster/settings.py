"""Device config, policy, nodes and other collections as the API server has them: read once, or followed."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Generic, TypeAlias

from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.cluster.pace import Pace
from webhook.cluster.reflector import Access, Reflector, State
from webhook.devices.config import DeviceConfig
from webhook.devices.nodes import Node, read_node
from webhook.errors import ConfigError
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
    DocumentSetting,
    Kept,
    ListSetting,
    Place,
    Value,
)

Content = tuple[Any]  # the text of a ConfigMap that is read; None without it

log = logging.getLogger(__name__)


class FollowedDocument(Generic[Value]):
    """Follows a setting in the first of several ConfigMaps that exists.

    If a ConfigMap cannot be used, the last good one stays in use; before there was one, the setting is not known.

    Attributes:
        setting: which one.
        required: whether one of the ConfigMaps must exist; otherwise the default applies without one.
        value: the setting in use; the default while it is not known.
        problem: why the newest ConfigMap is not in use; None if it is.
        reflectors: one for each ConfigMap.
    """

    def __init__(
        self, setting: DocumentSetting[Value], places: Iterable[Place], access: Access, *, required: bool = False
    ) -> None:
        """Prepare to follow.

        Args:
            setting: which one.
            places: of the ConfigMaps; the first that exists applies.
            access: to the API server.
            required: as the attribute.
        """
        self.setting = setting
        self.required = required
        self.value = setting.default()
        self._state = State.WAITING
        self.problem: str | None = "not read yet"
        self.reflectors: list[Reflector[Content]] = [
            Reflector(
                access,
                f"ConfigMap {namespace}/{name}",
                f"/api/v1/namespaces/{namespace}/configmaps",
                {"fieldSelector": f"metadata.name={name}"},  # selected by name, as RBAC can grant it
                optional=setting.optional,
            )
            for namespace, name in places
        ]
        self._origin = "unknown"
        self._seen: tuple[str, Content | None] | None = None  # what `refresh` read last

    def start(self) -> None:
        for reflector in self.reflectors:
            reflector.follow(self.keep)

    def version(self) -> tuple[int, ...]:
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
            known = self._state is State.KNOWN
            self._state = self._state if known else State.UNKNOWN
            follows = f"{self._origin} stays in use" if known else "it is not known until that is corrected"
            log.error("%s: %s; %s", self.setting.option, self.problem, follows)  # noqa: TRY400
            return True
        self._state, self.problem = State.KNOWN, None
        log.info("%s: %s is in use", self.setting.option, self._origin)
        for doubt in self.setting.doubts(self.value):
            log.warning("%s: %s: %s", self.setting.option, self._origin, doubt)
        return not first or found[1] is not None

    def state(self) -> State:
        """Known if a ConfigMap could be used, or none has to exist."""
        return self._state

    def status(self) -> SourceStatus:
        """What is in use, why the newest ConfigMap is not, and the problems of the connection. Safe in any thread."""
        problems = [self.problem] if self.problem else []
        problems += [f"{each.name}: {problem}" for each in self.reflectors if (problem := each.problem)]
        return SourceStatus(self._origin, "; ".join(problems) or None)

    def _found(self) -> tuple[str, Content | None] | None:
        """Place and content of the ConfigMap that applies; why there is none, and None; or None before all were listed."""
        for reflector in self.reflectors:
            if reflector.state() is State.WAITING:
                return None
            for content in tuple(reflector.objects.values()):
                return reflector.name, content
        hidden = [each.name for each in self.reflectors if each.state() is State.UNKNOWN and not each.missing]
        absent = [each.name for each in self.reflectors if each.name not in hidden]
        reasons = [f"reading {' and '.join(hidden)} is forbidden"] if hidden else []
        reasons += [f"there is no {' and no '.join(absent)}"] if absent else []
        return "; ".join(reasons), None

    def _read(self, place: str, content: Content | None) -> tuple[Value, str]:
        setting = self.setting
        if content is None:
            if self._state is State.KNOWN and (self.required or not setting.deletable):
                raise ConfigError(f"{place}: it was deleted")
            if self.required:
                raise ConfigError(f"{place}, and --{setting.option}-map names it: create it with the key {setting.key}")
            return setting.default(), f"{setting.default_name} ({place})"
        return setting.read_text(*content, place), place

    def keep(self, raw: dict[str, Any]) -> Content:
        """What is kept of a ConfigMap: the text of the setting."""
        return (self.setting.text_in(obj(raw, "data")),)


@dataclass(frozen=True, slots=True)
class _NodeFields:
    """What a device config reads of nodes; equal for device configs that read the same."""

    annotations: frozenset[str]
    config: DeviceConfig = field(compare=False)

    @classmethod
    def of(cls, config: DeviceConfig) -> "_NodeFields":
        return cls(config.node_annotations, config)


class _GoneNodes:
    """The nodes that have disappeared from the API server, for some minutes: most come back, as when their machine restarts.

    Attributes:
        forgotten: grows when some are no longer remembered.
    """

    def __init__(self, pace: Pace) -> None:
        self.forgotten = 0
        self._pace = pace
        self._fields: object = None  # of the nodes of the last update
        self._last: Mapping[str, Node] = {}
        self._gone: dict[str, tuple[Node, float]] = {}  # with the time at which each is forgotten

    def update(self, fields: object, nodes: Mapping[str, Node]) -> list[Node]:
        """Compare the nodes with those of the last update, if that kept the same fields; returns those that are gone."""
        if fields != self._fields:
            self._fields, self._last, self._gone = fields, {}, {}
        missing = self._last.keys() - nodes.keys()
        until = self._pace.clock() + self._pace.gone
        self._gone |= {name: (replace(self._last[name], gone=True), until) for name in missing}
        self._gone = {name: found for name, found in self._gone.items() if name not in nodes}
        self._last = dict(nodes)
        return [node for node, _ in self._gone.values()]

    def forget(self) -> None:
        """Forget those that are gone for too long."""
        now = self._pace.clock()
        kept = {name: found for name, found in self._gone.items() if found[1] > now} if self._gone else self._gone
        if len(kept) < len(self._gone):
            self._gone = kept
            self.forgotten += 1


class FollowedNodes:
    """Follows the nodes, and keeps of them what the device config reads.

    When a new device config reads other annotations, the nodes are listed again. Until that list is complete, the old nodes
    and the old device config stay in use together. Otherwise the old nodes would seem to lack those that the new
    device config reads, and the webhook would refuse good pods.

    Attributes:
        reflector: keeps the copy.
    """

    setting = FLEET

    def __init__(self, access: Access) -> None:
        self.reflector: Reflector[Node] = Reflector(access, "nodes", NODES)
        self.reflectors = [self.reflector]
        self.state = self.reflector.state
        self._began = access.pace.clock()
        self._pace = access.pace
        self._gone = _GoneNodes(access.pace)

    def start(self) -> None:
        """Begin to wait for nodes, which are followed once the device config is known."""
        self._began = self._pace.clock()

    def follow(self, config: DeviceConfig) -> None:
        """Keep the fields that this device config reads."""
        self.reflector.follow(partial(read_node, config=config), _NodeFields.of(config))

    def version(self) -> tuple[bool, int, int]:
        """Whether they are known, the version of the copy, and how often nodes that are gone were forgotten."""
        self._gone.forget()
        return self.state() is State.KNOWN, self.reflector.version, self._gone.forgotten

    def read(self, config: DeviceConfig) -> tuple[DeviceConfig, list[Node] | None]:
        """The device config in use, and its nodes, with those that are gone; None if they are not known, or stale."""
        if self.state() is not State.KNOWN:
            return config, None
        fields, objects = self.reflector.copy
        objects = objects.copy()
        # Sorted, so that every replica has the same fleet, digest and order of messages.
        nodes = sorted((*objects.values(), *self._gone.update(fields, objects)), key=attrgetter("name"))
        assert isinstance(fields, _NodeFields)  # noqa: S101
        return config if fields == _NodeFields.of(config) else fields.config, nodes

    def age(self) -> float:
        """Seconds since they were last confirmed to be up to date, or since the start if they never were."""
        confirmed = self.reflector.confirmed
        return self._pace.clock() - (self._began if confirmed is None else confirmed)

    def status(self) -> SourceStatus:
        """The age of the copy, and its problem. Safe in any thread."""
        state, age, problem = self.state(), self.age(), self.reflector.problem
        if state is not State.KNOWN or problem:
            news = "not listed yet" if state is State.WAITING else f"last news {age:.0f} s ago"
            if state is State.UNKNOWN:
                news += f", more than the {self.reflector.stale_after:.0f} s after which they count as unknown"
            problem = f"{news}: {problem}" if problem else news
        return SourceStatus("the API server", problem, age)


class FollowedCollection(Generic[Kept]):
    """Follows a collection; unknown where the cluster does not have the kind, or the webhook may not read it.

    Attributes:
        setting: which one.
        reflector: keeps the copy. It follows from the start, or from the time on when a known policy has the rule on that
            reads the collection.
    """

    def __init__(self, setting: ListSetting[Kept], access: Access) -> None:
        """Take which one, and the access to the API server."""
        self.setting = setting
        self.reflector: Reflector[Kept] = Reflector(access, setting.part, setting.path, optional=setting.optional)
        self.reflectors = [self.reflector]
        self.state = self.reflector.state

    def start(self) -> None:
        """Follow the collection, if that depends on no rule."""
        if not self.setting.rule:
            self.reflector.follow(self.setting.keep)

    def version(self) -> tuple[bool, int]:
        """Whether the objects are known, and not stale, and the version of the copy."""
        return self.state() is State.KNOWN, self.reflector.version

    def read(self, policy: Policy, *, policy_read: bool) -> Any:
        """The objects, indexed; None if they are not known, or stale, or if no rule reads them.

        Args:
            policy: in use; it also says when objects are stale.
            policy_read: it is the cluster's, or that of a file, so that the objects can be followed that its rules read.
        """
        if not self.setting.is_read(policy):
            return None
        if policy_read:
            self.reflector.follow(self.setting.keep)
        self.reflector.stale_after = policy.fleet.stale_after_seconds
        if self.state() is State.KNOWN:
            return self.setting.index(tuple(self.reflector.objects.values()))
        return None if self.reflector.missing or self.setting.unread is None else self.setting.unread()

    def status(self) -> SourceStatus:
        """The API server, and why it does not give the objects. Safe in any thread."""
        problem = self.reflector.problem
        if problem is not None and not self.reflector.failing:
            fine = self.reflector.missing or self.setting.unread is None
            return SourceStatus(f"unknown ({problem})") if fine else SourceStatus("unknown", problem)
        if problem is None and self.state() is State.WAITING:
            problem = "not listed yet"
        complaints = filter(None, map(self.setting.complaint, tuple(self.reflector.objects.values())))
        return SourceStatus("the API server", problem or next(complaints, None))


_Followed: TypeAlias = FollowedDocument[Any] | FollowedCollection[Any] | FollowedNodes


class ClusterSettings:
    """The settings of a cluster, except those that files give. Created before the server forks; started in its worker."""

    def __init__(self, options: ClusterOptions, given: Mapping[str, Any], access: Access) -> None:
        """Prepare; this sends nothing.

        Args:
            options: what to follow.
            given: the settings of files by part, which take precedence over the cluster's.
            access: to the API server.
        """
        own = Credentials(options.kubeconfig, options.context).webhook_namespace
        self._places = {
            part: [(namespace or own, name) for namespace, name in options.places[part]] for part in options.places
        }
        self._given = given
        self._given_version = 0
        self._documents = {
            each.part: FollowedDocument(each, self._places[each.part], access, required=each.part in options.required)
            for each in DOCUMENTS
            if each.part not in given
        }
        self._collections = [FollowedCollection(each, access) for each in COLLECTIONS if each.part not in given]
        self._nodes = None if FLEET.part in given else FollowedNodes(access)

    def give(self, given: Mapping[str, Any]) -> None:
        """Take newer settings of some of the same files."""
        self._given = {**self._given, **given}
        self._given_version += 1

    def start(self) -> None:
        """Begin to follow.

        Raises:
            ClusterError: a request failed; only if they are read once.
        """
        for each in self._followed():
            each.start()

    def stop(self) -> None:
        """End all threads; returns at once."""
        for reflector in self._reflectors():
            reflector.stop()

    def version(self) -> tuple[object, ...]:
        """Another one when a new snapshot is due."""
        return self._given_version, *(each.version() for each in self._followed())

    @property
    def knows_nodes(self) -> bool:
        """Whether the nodes of the cluster are known."""
        return self._nodes is not None and self._nodes.state() is State.KNOWN

    @property
    def settled(self) -> bool:
        """Whether everything that the cluster has is known, or the rest cannot be read now."""
        if any(reflector.failing for reflector in self._reflectors()):
            return True
        return all(each.state() is not State.WAITING for each in self._followed(self._policy))

    @property
    def unknown(self) -> dict[str, str]:
        """By option, why a document that reviews must not do without is not known; empty if all are."""
        return {
            source.setting.option: source.status().problem or ""
            for source in self._documents.values()
            if source.state() is not State.KNOWN and not source.setting.optional
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
        config_read, policy_read = (
            setting.part in given or sources[setting.part].state() is not State.WAITING
            for setting in (DEVICE_CONFIG, POLICY)
        )
        for source in self._collections:
            values[source.setting.part] = source.read(policy, policy_read=policy_read)
        inputs = replace(SnapshotInputs.of(values), places=self._places)
        if self._nodes is not None:
            # The device config determines what to keep of nodes, the policy how long they are known without news.
            self._nodes.reflector.stale_after = policy.fleet.stale_after_seconds
            if config_read and (policy_read or any(each.failing for each in sources[POLICY.part].reflectors)):
                self._nodes.follow(inputs.config)
            config, nodes = self._nodes.read(inputs.config)
            inputs = replace(inputs, config=config, nodes=nodes)
        return inputs, reloaded

    def statuses(self) -> dict[str, SourceStatus]:
        """The status of each setting that no file gives, by part."""
        return {each.setting.part: each.status() for each in self._followed(self._policy)}

    def age(self) -> float | None:
        """Seconds since the nodes were last confirmed to be up to date; None if they come from a file."""
        return self._nodes.age() if self._nodes is not None else None

    @property
    def _policy(self) -> Policy:
        found: Policy = self._given.get(POLICY.part) or self._documents[POLICY.part].value
        return found

    def _followed(self, policy: Policy | None = None) -> Iterator[_Followed]:
        """All that can be followed; without the collections that no rule reads under a policy, if there is one."""
        yield from self._documents.values()
        yield from (each for each in self._collections if policy is None or each.setting.is_read(policy))
        if self._nodes is not None:
            yield self._nodes

    def _reflectors(self) -> Iterator[Reflector[Any]]:
        for each in self._followed():
            yield from each.reflectors


def connector(options: ClusterOptions) -> Callable[[], Client]:
    """Makes clients of a cluster, of which each thread needs its own; this sends nothing.

    Raises:
        ConfigError: there are no credentials.
    """
    connect = partial(Client, Credentials(options.kubeconfig, options.context))
    connect()
    return connect


def read_inputs(client: Client, options: ClusterOptions, given: Mapping[str, Any]) -> SnapshotInputs:
    """Read the settings of the cluster as it is now, except for what files give.

    Raises:
        ClusterError: a request failed.
        ConfigError: a setting cannot be used.
    """
    settings = ClusterSettings(options, given, Access(lambda: client, once=True))
    settings.start()
    inputs, _ = settings.read()
    if problems := [problem for problem in settings.unknown.values() if problem]:
        raise ConfigError(problems[0])
    return inputs
