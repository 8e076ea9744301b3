"""What the tests of the plan share: a cluster in order, what a run did in it, and names for deeds."""

from datetime import timedelta

from certs.plan import AUTHORITY, SERVING, Deed
from certs.state import SERVE_LAG, Configuration, Secret, Sight, Wish, look
from tests.certs.world import HOSTS, KINDS, World, run

WISH = Wish(HOSTS)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)

INTRODUCED = (Deed.INTRODUCE, AUTHORITY)
PROMOTED = (Deed.PROMOTE, AUTHORITY)
RETIRED = (Deed.RETIRE, AUTHORITY)
SIGNED = (Deed.SIGN, SERVING)
PUBLISHED = [(Deed.PUBLISH, kind) for kind in KINDS]
MOUNTED = (Deed.PUBLISH, SERVING)


def installed() -> World:
    """An hour after the installation."""
    made = World()
    for kind in KINDS:
        made.put(kind, Configuration((b"", b"")), ours=False)
    assert deeds(made) == [INTRODUCED, *PUBLISHED, SIGNED]
    made.time += SERVE_LAG
    assert deeds(made) == []
    return made


def deeds(world: World, wish: Wish = WISH, *, rotate: bool = False) -> list[tuple[Deed, str]]:
    return [(action.deed, action.target) for action in run(world, wish, rotate=rotate)]


def sight(world: World, wish: Wish = WISH) -> Sight:
    return look(world.state, world.now, wish)


def edit(world: World, target: str, **entries: bytes | None) -> None:
    """Change entries of a Secret, as an outsider does; None deletes, `_` stands for a dot."""
    held = world.get(target)
    assert isinstance(held, Secret)
    changed = {**held.data} | {name.replace("_", "."): content for name, content in entries.items()}
    world.put(target, Secret({name: content for name, content in changed.items() if content is not None}), ours=False)
