"""Device config, policy and nodes as the API server has them, in one snapshot after another.

Threads follow the API server and keep what they hear. The event loop looks at their versions, and has a new snapshot built
in another thread when one has changed; it never waits for the network.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from webhook.cluster.client import Client
from webhook.cluster.config_maps import ConfigMapSetting
from webhook.cluster.credentials import Credentials
from webhook.cluster.files import Files
from webhook.cluster.kinds import DEVICE_CONFIG, POLICY
from webhook.cluster.live_nodes import LiveNodes
from webhook.cluster.mirror import Mirror
from webhook.cluster.options import ClusterOptions
from webhook.cluster.snapshot import Parts
from webhook.cluster.sources import Standing
from webhook.policy import Policy
from webhook.review import Snapshot

LOOK_SECONDS = 0.25  # between two looks for changes
FIRST_LOOK_SECONDS = 0.02  # while nobody is served yet
PAUSE_SECONDS = 3.0  # at least, between two snapshots
SHARE = 0.01  # of the time, at the most, goes into building snapshots: a larger fleet waits longer for its next one
SWITCH_SECONDS = 0.0005  # for a thread that computes to let the event loop go on; Python's own 5 ms add up in a review

log = logging.getLogger(__name__)


class Live:
    """Follows the API server from `run` to `stop`. Made before the server forks; runs in its worker."""

    def __init__(
        self,
        options: ClusterOptions,
        files: Files,
        use: Callable[[Parts, Snapshot], None],
        read: Callable[[str, bool], None],
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            options: what to follow.
            files: what goes over it.
            use: takes a new snapshot and what it was built from, in the event loop.
            read: told, there too, which setting was read and whether it can be used.

        Raises:
            ConfigError: there are no credentials.
        """
        credentials = Credentials(options.kubeconfig, options.context)
        connect = partial(Client, credentials)
        connect()  # in vain, but for the message: each thread has a client of its own
        self._files = files
        self._use = use
        self._read = read
        namespace, name = options.policy_map
        config_places = [(place, options.device_config_map) for place in options.device_config_namespaces]
        policy_places = [(namespace or credentials.namespace, name)]
        self._config = ConfigMapSetting(DEVICE_CONFIG, config_places, connect)
        self._policy = ConfigMapSetting(POLICY, policy_places, connect)
        self._settings = [
            setting for setting, given in ((self._config, files.config), (self._policy, files.policy)) if given is None
        ]
        self._nodes = LiveNodes(connect)
        self._caught_up = asyncio.Event()
        self._stopped = False

    async def run(self) -> None:
        """Follow the API server until `stop`."""
        sys.setswitchinterval(SWITCH_SECONDS)
        self._nodes.began = time.monotonic()
        for mirror in self._mirrors():
            mirror.start()
        built: tuple[Any, ...] | None = None
        earliest = 0.0
        while not self._stopped:
            self._nodes.settle()
            state = self._state()
            known, was_known = state[-1], built is not None and built[-1]
            # Whether the fleet is known matters at once; what changes in it, and in the settings, may come together.
            if state != built and (time.monotonic() >= earliest or known != was_known):
                built, began = state, time.monotonic()
                await self._renew()
                earliest = began + max(PAUSE_SECONDS, (time.monotonic() - began) / SHARE) if known else 0.0
            if self._complete(known=known) or self._in_trouble():
                self._caught_up.set()
            await asyncio.sleep(LOOK_SECONDS if self._caught_up.is_set() else FIRST_LOOK_SECONDS)

    async def caught_up(self) -> None:
        """Wait until a snapshot holds all that the cluster has, or until something of it cannot be had now."""
        await self._caught_up.wait()

    def stop(self) -> None:
        """End all threads; returns at once."""
        self._stopped = True
        self._nodes.stop()
        for mirror in self._mirrors():
            mirror.stop()

    def lines(self) -> Iterator[str]:
        """For people: where everything comes from, and how old it is."""
        for setting in self._settings:
            yield setting.line()
        for mirror in self._mirrors():
            if problem := mirror.problem:
                yield f"{mirror.name}: {problem}"
        if self._files.raw_nodes is None:
            yield self._nodes.line(self.policy.stale_after)

    def standings(self) -> dict[str, Standing]:
        """How that stands which no file gives, by its key in `Snapshot.digests`."""
        found = {"config": self._config.standing(), "policy": self._policy.standing()}
        given = {"config": self._files.config, "policy": self._files.policy, "fleet": self._files.raw_nodes}
        found["fleet"] = self._nodes.standing(self.policy.stale_after)
        return {part: standing for part, standing in found.items() if given[part] is None}

    def age(self) -> float | None:
        """Seconds since the nodes were last known to be up to date; None if they come from a file."""
        return self._nodes.age() if self._files.raw_nodes is None else None

    def use_files(self, files: Files) -> None:
        """Let other contents of the files go over the cluster."""
        self._files = files

    @property
    def policy(self) -> Policy:
        """The one in use."""
        return self._files.policy or self._policy.value

    def _complete(self, *, known: bool) -> bool:
        return all(setting.settled for setting in self._settings) and (known or self._files.raw_nodes is not None)

    def _in_trouble(self) -> bool:
        return bool(self._nodes.problem) or any(mirror.problem for mirror in self._mirrors())

    async def _renew(self) -> None:
        try:
            parts, snapshot, read = await asyncio.get_running_loop().run_in_executor(None, self._build)
        except Exception:
            log.exception("a bug: no snapshot could be built; the last one stays in use")
            return
        for source, good in read:
            self._read(source, good)
        self._use(parts, snapshot)

    def _build(self) -> tuple[Parts, Snapshot, list[tuple[str, bool]]]:
        """Build a snapshot from what is known now; and the settings that were read for it."""
        files = self._files
        read = [(setting.kind.source, setting.problem is None) for setting in self._settings if setting.refresh()]
        config, policy = files.config or self._config.value, self.policy
        nodes = files.nodes(config)
        if nodes is None:
            if files.config or self._config.settled:  # else nobody knows yet what to keep of nodes
                self._nodes.follow(config, policy.stale_after)
            config, nodes = self._nodes.read(config, policy.stale_after)
        parts = Parts(config, policy, nodes)
        return parts, parts.snapshot(), read

    def _state(self) -> tuple[Any, ...]:
        """Changes when a new snapshot is due; the last element says whether the nodes are known."""
        versions = tuple(mirror.version for mirror in self._mirrors())
        return self._files, versions, *self._nodes.state(self.policy.stale_after)

    def _mirrors(self) -> Iterator[Mirror[Any]]:
        """Those of the settings."""
        for setting in self._settings:
            yield from setting.mirrors
