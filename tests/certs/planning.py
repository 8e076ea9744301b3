"""Helpers for the tests of the plan: an installed cluster, the actions of a run, and names for actions."""

from datetime import timedelta

from certs.plan import AUTHORITY, SERVING, ActionKind
from certs.state import SERVE_LAG, Configuration, Desired, Observed, Secret, observe
from tests.certs.simulated_cluster import HOSTS, KINDS, World, run

DESIRED = Desired(HOSTS)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)

INTRODUCED = (ActionKind.INTRODUCE, AUTHORITY)
PROMOTED = (ActionKind.PROMOTE, AUTHORITY)
RETIRED = (ActionKind.RETIRE, AUTHORITY)
SIGNED = (ActionKind.SIGN, SERVING)
PUBLISHED = [(ActionKind.PUBLISH, kind) for kind in KINDS]
MOUNTED = (ActionKind.PUBLISH, SERVING)


def installed() -> World:
    """A cluster an hour after the installation."""
    world = World()
    for kind in KINDS:
        world.put(kind, Configuration((b"", b"")), ours=False)
    assert run_actions(world) == [INTRODUCED, *PUBLISHED, SIGNED]
    world.time += SERVE_LAG
    assert run_actions(world) == []
    return world


def run_actions(world: World, desired: Desired = DESIRED, *, rotate: bool = False) -> list[tuple[ActionKind, str]]:
    return [(action.kind, action.target) for action in run(world, desired, rotate=rotate)]


def observed(world: World, desired: Desired = DESIRED) -> Observed:
    return observe(world.state, world.now, desired)


def edit(world: World, target: str, **entries: bytes | None) -> None:
    """Change entries of a Secret as another client does; None deletes an entry, `_` stands for a dot."""
    secret = world.get(target)
    assert isinstance(secret, Secret)
    changed = {**secret.data} | {name.replace("_", "."): content for name, content in entries.items()}
    world.put(target, Secret({name: content for name, content in changed.items() if content is not None}), ours=False)
