"""A cluster in memory: several `ensure` processes, pods and API servers that lag behind, and other clients that write.

Pods and API servers are not simulated one by one. After each change of the Secret, a pod may serve the new leaf or an
earlier one until the lag is over; an invariant must hold for all of these leaves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from threading import Semaphore, Thread

from cryptography import x509

from certs import verify
from certs.cluster import Cluster, Names, ReadState
from certs.ensure import Patience, ensure
from certs.errors import CertsError, Conflict
from certs.plan import AUTHORITY, SERVING, Action, apply
from certs.state import PUBLISH_LAG, SERVE_LAG, ClusterState, Configuration, Desired, Observed, Secret, observe

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
HOSTS = ("vgpu-webhook.vgpu-webhook.svc", "vgpu-webhook.vgpu-webhook.svc.cluster.local")
FRESH = timedelta(minutes=1)  # how long a process may use what it read
AT_ONCE = Patience(-inf, pause=0.0)
MAX_WRITES = 25  # a single run needs fewer

Versioned = Secret | Configuration | None


@dataclass(frozen=True)
class Change:
    """A write of an object; `ours` if a process did it; `leaf` if the new value has a pair that pods can serve."""

    at: datetime
    value: Versioned
    ours: bool
    leaf: x509.Certificate | None


@dataclass
class World:
    """The objects of the cluster with their history.

    Attributes:
        time: the true time, which decides about lags.
        jump: the error of all clocks.
        urgent_until: until then, API servers may not trust a leaf that was signed when no leaf worked.
    """

    time: datetime = START
    jump: timedelta = timedelta(0)
    history: dict[str, list[Change]] = field(default_factory=dict)
    urgent_until: datetime = START
    foreign_writes: int = 0
    actions: list[Action] = field(default_factory=list)
    writes: int = 0
    lost: set[x509.Certificate] = field(default_factory=set)

    @property
    def now(self) -> datetime:
        return self.time + self.jump

    def get(self, target: str) -> Versioned:
        return self.history[target][-1].value if target in self.history else None

    @property
    def state(self) -> ClusterState:
        return assemble({target: self.get(target) for target in self.history})

    def put(self, target: str, value: Versioned, *, ours: bool) -> None:
        self.writes += 1
        if value is not None:
            value = replace(value, version=str(self.writes))
        if isinstance(value, Secret):
            value = replace(value, written=self.now)
        self.history.setdefault(target, []).append(Change(self.time, value, ours, pair(value)))
        if not ours:
            self.foreign_writes += 1
            known = observe(self.state, self.now, Desired(HOSTS)).known_cas
            self.lost |= {leaf for leaf in self.served_leaves() if verify.issuer(leaf, known) is None}

    def served_leaves(self) -> set[x509.Certificate]:
        """Our leaves that a pod may serve: a pod keeps the last valid pair that it read."""
        changes = [change for change in self.history.get(SERVING, []) if change.leaf]
        return {change.leaf for change in recent(changes, self.time - SERVE_LAG) if change.ours and change.leaf}

    def published_bundles(self, kind: str) -> list[bytes]:
        """Our bundles that an API server may use, the newest last."""
        changes = [change for change in recent(self.history.get(kind, []), self.time - PUBLISH_LAG) if change.ours]
        return [b for change in changes if isinstance(change.value, Configuration) for b in change.value.bundles]


def recent(changes: list[Change], since: datetime) -> list[Change]:
    """The changes after an instant, and the last one before it."""
    older = [change for change in changes if change.at <= since]
    return older[-1:] + [change for change in changes if change.at > since]


def pair(value: Versioned) -> x509.Certificate | None:
    """The leaf, if certificate and key are one pair."""
    if not isinstance(value, Secret):
        return None
    found = verify.certificates(value.data.get("tls.crt", b""))
    return found[0] if found and verify.key_problem(found[0], value.data.get("tls.key", b"")) is None else None


def assemble(objects: Mapping[str, Versioned]) -> ClusterState:
    """A state of objects, which may have been read at different times."""
    authority, serving = objects.get(AUTHORITY), objects.get(SERVING)
    assert not isinstance(authority, Configuration)
    assert not isinstance(serving, Configuration)
    configurations = {kind: found for kind in KINDS if isinstance(found := objects.get(kind), Configuration)}
    return ClusterState(authority, serving, configurations)


class WorldCluster(Cluster):
    """The simulated cluster as `certs.ensure` reads and writes it.

    Attributes:
        pause: called before each read and each write of an object; it may change the cluster.
        fresh: how long a process may use what it read.
    """

    def __init__(self, world: World, desired: Desired, pause: Callable[[], None], fresh: timedelta = FRESH) -> None:
        self.names = Names()
        self.pause, self.fresh = pause, fresh
        self._world, self._desired = world, desired
        self._began, self._objects = world.time, dict[str, Versioned]()

    def read(self) -> ReadState:
        self._began = self._world.time
        for target in (SERVING, *KINDS, AUTHORITY):
            self.pause()
            self._objects[target] = self._world.get(target)
        return ReadState(assemble(self._objects), self._world.now, {}, 0.0)

    def objections(self, reading: ReadState) -> Iterator[str]:
        return iter(())

    def write(self, reading: ReadState, observed: Observed, action: Action) -> None:
        world, target = self._world, action.target
        after = apply(observed, action)
        self.pause()
        if world.time - self._began > self.fresh or world.get(target) != self._objects[target]:
            raise Conflict(f"{target} has changed")
        if target == SERVING and not observe(world.state, world.now, self._desired).leaf_works:
            world.urgent_until = world.time + PUBLISH_LAG
        world.put(target, changed(after, target), ours=True)
        world.actions.append(action)


class Killed(BaseException):
    """Raised in the thread of a process to end it."""


class Process:
    """A run of `certs.ensure` in its own thread; each step does one read or write."""

    def __init__(self, world: World, desired: Desired, *, rotate: bool, fresh: timedelta) -> None:
        self._cluster = WorldCluster(world, desired, self._pause, fresh)
        self._arguments = desired, rotate
        self._go, self._paused = Semaphore(0), Semaphore(0)
        self._killed = self._over = False
        self._error: BaseException | None = None
        Thread(target=self._run, daemon=True).start()

    def step(self) -> bool:
        """Continue up to the next read or write; False if the run is over."""
        if not self._over:
            self._go.release()
            self._paused.acquire()
        if self._error is not None:
            raise self._error
        return not self._over

    def kill(self) -> None:
        """End the run at its current step."""
        self._killed = True
        self.step()

    def _pause(self) -> None:
        self._paused.release()
        self._go.acquire()
        if self._killed:
            raise Killed

    def _run(self) -> None:
        desired, rotate = self._arguments
        self._go.acquire()
        try:
            if not self._killed:
                ensure(self._cluster, desired, AT_ONCE, rotate=rotate, report=ignore)
        except (CertsError, Killed):  # for example, others were faster each time
            pass
        except BaseException as error:  # noqa: BLE001  # raised in the test's thread
            self._error = error
        finally:
            self._over = True
            self._paused.release()


def ignore(*_: object) -> None:
    """A report function that drops its arguments."""


def run(
    world: World, desired: Desired, *, rotate: bool = False, pause: Callable[[], None] = lambda: None
) -> list[Action]:
    """Run `certs.ensure` to its end, calling `pause` before each read and write; returns its actions."""
    before = len(world.actions)
    cluster = WorldCluster(world, desired, pause)
    ensure(cluster, desired, AT_ONCE, rotate=rotate, report=ignore)
    assert len(world.actions) - before < MAX_WRITES, "the run does not end"
    return world.actions[before:]


def changed(state: ClusterState, target: str) -> Versioned:
    if target == AUTHORITY:
        return state.authority
    return state.serving if target == SERVING else state.configurations[target]
