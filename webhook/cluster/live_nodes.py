"""The nodes of the cluster as they are now, and how far they can be relied on."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from webhook.cluster.client import Client
from webhook.cluster.mirror import WATCH_SECONDS, Mirror
from webhook.cluster.sources import Standing
from webhook.devices.config import DeviceConfig
from webhook.devices.nodes import Node, read_node

NODES = "/api/v1/nodes"


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """Nodes, and the device config that says what is kept of them."""

    config: DeviceConfig
    mirror: Mirror[Node]

    def serves(self, config: DeviceConfig) -> bool:
        """Whether another device config wants the same of nodes."""
        return _wanted(self.config) == _wanted(config)


def _wanted(config: DeviceConfig) -> tuple[frozenset[str], frozenset[str]]:
    return config.node_annotations, frozenset(config.roles)


class LiveNodes:
    """Follows the nodes, reading of them what the device config wants.

    With a device config that wants something else, they are listed anew. Until that list is whole, the old nodes go with
    the old device config: under the new one they would seem to lack what nobody has looked for, and good pods be refused.

    Attributes:
        began: since when they are waited for (time.monotonic).
    """

    def __init__(self, connect: Callable[[], Client]) -> None:
        """Prepare.

        Args:
            connect: makes a client.
        """
        self._connect = connect
        self.began = time.monotonic()
        self._current: _Reading | None = None
        self._coming: _Reading | None = None

    def follow(self, config: DeviceConfig, stale_after: float) -> None:
        """Have what this device config wants, and have news at least twice before they are stale."""
        newest = self._coming or self._current
        if newest is None or not newest.serves(config):
            if self._coming is not None:
                self._coming.mirror.stop()
            mirror = Mirror("nodes", NODES, self._connect, partial(read_node, config=config))
            self._coming = newest = _Reading(config, mirror)
            mirror.start()
        newest.mirror.watch_seconds = min(WATCH_SECONDS, stale_after / 2)

    def settle(self) -> None:
        """Let the newer nodes take over once they are whole."""
        if self._coming is not None and self._coming.mirror.heard is not None:
            if self._current is not None:
                self._current.mirror.stop()
            self._current, self._coming = self._coming, None

    def state(self, stale_after: float) -> tuple[object, int, bool]:
        """Changes when `read` would return something else."""
        version = self._current.mirror.version if self._current else 0
        return self._current, version, self._fresh(stale_after)

    def read(self, config: DeviceConfig, stale_after: float) -> tuple[DeviceConfig, list[Node] | None]:
        """The nodes and the device config that they go with; None if they are not known, or not known any more."""
        if self._current is None or not self._fresh(stale_after):
            return config, None
        # By name, so that every replica has the same fleet, digest and order of messages; copied in one step.
        nodes = sorted(self._current.mirror.objects.values(), key=attrgetter("name"))
        return config if self._current.serves(config) else self._current.config, nodes

    def age(self) -> float:
        """Seconds since they were last known to be up to date, or since the start if they never were."""
        return time.monotonic() - self._heard()

    @property
    def problem(self) -> str | None:
        """Why there is no news of them; None if there is, or if nobody has asked yet."""
        newest = self._coming or self._current
        return newest.mirror.problem if newest else None

    def line(self, stale_after: float) -> str:
        """For people."""
        return f"nodes: {self._told(stale_after)}"

    def standing(self, stale_after: float) -> Standing:
        """The same as values; for any thread."""
        fine = self._fresh(stale_after) and not self.problem
        return Standing("the API server", None if fine else self._told(stale_after), self.age())

    def stop(self) -> None:
        """End all that runs."""
        for reading in (self._current, self._coming):
            if reading is not None:
                reading.mirror.stop()

    def _fresh(self, stale_after: float) -> bool:
        return self._current is not None and self.age() <= stale_after

    def _told(self, stale_after: float) -> str:
        found = self.problem
        problem = f": {found}" if found else ""
        if self._current is None:
            return f"not listed yet{problem}"
        stale = (
            "" if self._fresh(stale_after) else f", more than the {stale_after:.0f} s after which they count as unknown"
        )
        return f"last news {self.age():.0f} s ago{stale}{problem}"

    def _heard(self) -> float:
        heard = self._current.mirror.heard if self._current else None
        return self.began if heard is None else heard
