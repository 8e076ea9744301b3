"""A cluster in memory, with all who take part: several `ensure` at once, pods and API servers that lag, outsiders.

Pods and API servers are not simulated but bounded: after each change of the Secret a pod may serve the new leaf or any of
those before it, until the lag is over. What must hold, must hold for each of them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from threading import Semaphore, Thread

from cryptography import x509

from certs import verify
from certs.cluster import Cluster, Names, ReadState
from certs.ensure import ensure
from certs.errors import CertsError, Conflict
from certs.plan import AUTHORITY, SERVING, Action, apply
from certs.state import PUBLISH_LAG, SERVE_LAG, ClusterState, Configuration, Desired, Observed, Secret, observe

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
HOSTS = ("vgpu-webhook.vgpu-webhook.svc", "vgpu-webhook.vgpu-webhook.svc.cluster.local")
FRESH = timedelta(minutes=1)  # for how long a process acts upon what it read
MANY = 25  # writes that no single run should need

Versioned = Secret | Configuration | None


@dataclass(frozen=True)
class Change:
    """That an object became another at a time; `ours` if a process did it; `leaf` if it is a pair that can be served."""

    at: datetime
    value: Versioned
    ours: bool
    leaf: x509.Certificate | None


@dataclass
class World:
    """The objects with all that they have been.

    Attributes:
        time: what pods and API servers live by.
        jump: what all clocks are off by.
        urgent_until: so long, API servers may not yet know the CA of a leaf that was signed when none worked.
    """

    time: datetime = START
    jump: timedelta = timedelta(0)
    history: dict[str, list[Change]] = field(default_factory=dict)
    urgent_until: datetime = START
    outsiders: int = 0
    done: list[Action] = field(default_factory=list)
    writes: int = 0
    lost: set[x509.Certificate] = field(default_factory=set)

    @property
    def now(self) -> datetime:
        """What the clocks say."""
        return self.time + self.jump

    def get(self, target: str) -> Versioned:
        """An object as it is."""
        return self.history[target][-1].value if target in self.history else None

    @property
    def state(self) -> ClusterState:
        """All objects at once."""
        return assemble({target: self.get(target) for target in self.history})

    def put(self, target: str, value: Versioned, *, ours: bool) -> None:
        """Write an object, or delete it."""
        self.writes += 1
        if value is not None:
            value = replace(value, version=str(self.writes))
        if isinstance(value, Secret):
            value = replace(value, written=self.now)
        self.history.setdefault(target, []).append(Change(self.time, value, ours, pair(value)))
        if not ours:
            self.outsiders += 1
            known = observe(self.state, self.now, Desired(HOSTS)).known_cas
            self.lost |= {leaf for leaf in self.served() if verify.issuer(leaf, known) is None}

    def served(self) -> set[x509.Certificate]:
        """The leaves signed here that some pod may serve: a pod keeps the last good pair that it saw."""
        changes = [change for change in self.history.get(SERVING, []) if change.leaf]
        return {change.leaf for change in recent(changes, self.time - SERVE_LAG) if change.ours and change.leaf}

    def seen(self, kind: str) -> list[bytes]:
        """The bundles published here that some API server may use, the newest last."""
        changes = [change for change in recent(self.history.get(kind, []), self.time - PUBLISH_LAG) if change.ours]
        return [b for change in changes if isinstance(change.value, Configuration) for b in change.value.bundles]


def recent(changes: list[Change], since: datetime) -> list[Change]:
    """The changes that were made after an instant, and the last one before it."""
    older = [change for change in changes if change.at <= since]
    return older[-1:] + [change for change in changes if change.at > since]


def pair(value: Versioned) -> x509.Certificate | None:
    """The leaf, if certificate and key are one pair."""
    if not isinstance(value, Secret):
        return None
    found = verify.certificates(value.data.get("tls.crt", b""))
    return found[0] if found and verify.key_problem(found[0], value.data.get("tls.key", b"")) is None else None


def assemble(objects: Mapping[str, Versioned]) -> ClusterState:
    """A state of objects that were perhaps read one after another."""
    authority, serving = objects.get(AUTHORITY), objects.get(SERVING)
    assert not isinstance(authority, Configuration)
    assert not isinstance(serving, Configuration)
    configurations = {kind: found for kind in KINDS if isinstance(found := objects.get(kind), Configuration)}
    return ClusterState(authority, serving, configurations)


class WorldCluster(Cluster):
    """The world as `certs.ensure` reads and writes it; calls `pause` before each read and each write of an object.

    Attributes:
        pause: anything can happen there.
        fresh: for how long a process acts upon what it read.
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
        world.done.append(action)


class Killed(BaseException):
    """Ends the thread of a process."""


class Process:
    """A run of `certs.ensure` that goes on by one read or write at a time, in a thread of its own."""

    def __init__(self, world: World, desired: Desired, *, rotate: bool, fresh: timedelta) -> None:
        self._cluster = WorldCluster(world, desired, self._pause, fresh)
        self._arguments = desired, rotate
        self._go, self._paused = Semaphore(0), Semaphore(0)
        self._killed = self._over = False
        self._error: BaseException | None = None
        Thread(target=self._run, daemon=True).start()

    def step(self) -> bool:
        """Go on to before the next read or write; False if the run is over."""
        if not self._over:
            self._go.release()
            self._paused.acquire()
        if self._error is not None:
            raise self._error
        return not self._over

    def kill(self) -> None:
        """End it where it is."""
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
                ensure(self._cluster, desired, rotate=rotate, until=-inf, report=ignore)
        except (CertsError, Killed):  # as when others were faster again and again
            pass
        except BaseException as error:  # noqa: BLE001  # raised in the test's thread
            self._error = error
        finally:
            self._over = True
            self._paused.release()


def ignore(*_: object) -> None:
    """For what nobody looks at."""


def run(
    world: World, desired: Desired, *, rotate: bool = False, pause: Callable[[], None] = lambda: None
) -> list[Action]:
    """A whole run that nobody disturbs; returns what it did. `pause` is called before each read and write."""
    before = len(world.done)
    ensure(WorldCluster(world, desired, pause), desired, rotate=rotate, until=-inf, report=ignore)
    assert len(world.done) - before < MANY, "it goes on for ever"
    return world.done[before:]


def changed(state: ClusterState, target: str) -> Versioned:
    """One object of a state."""
    if target == AUTHORITY:
        return state.authority
    return state.serving if target == SERVING else state.configurations[target]
