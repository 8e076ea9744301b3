"""What is done, when, and why, while nobody does harm. That nothing is ever distrusted is test_plan_property's."""

from dataclasses import replace
from datetime import timedelta

import pytest

from certs import verify
from certs.plan import AUTHORITY, SERVING, Deed, Plan, apply, plan
from certs.state import PUBLISH_LAG, SERVE_LAG, Configuration, Wish, look
from tests.certs.planning import (
    DAY,
    HOUR,
    INTRODUCED,
    MOUNTED,
    PROMOTED,
    PUBLISHED,
    RETIRED,
    SECOND,
    SIGNED,
    WISH,
    deeds,
    sight,
)
from tests.certs.world import HOSTS, KINDS, World


def test_a_change_of_the_ca_takes_three_steps(world: World):
    (old,) = sight(world).known
    assert deeds(world, rotate=True) == [INTRODUCED, *PUBLISHED, MOUNTED, PROMOTED]
    introduced = sight(world)
    new = introduced.authority.next.certificate
    assert introduced.issuer == old
    assert set(introduced.bundle) == {old, new}
    assert plan(introduced).due == world.now + PUBLISH_LAG

    world.time += PUBLISH_LAG - SECOND
    assert deeds(world) == []
    world.time += SECOND
    assert deeds(world) == [SIGNED]
    promoted = sight(world)
    assert promoted.issuer == new
    assert set(promoted.bundle) == {old, new}
    assert plan(promoted).due == world.now + SERVE_LAG

    world.time += SERVE_LAG - SECOND
    assert deeds(world) == []
    world.time += SECOND
    assert deeds(world) == [RETIRED, *PUBLISHED, MOUNTED]
    assert sight(world).known == (new,)
    assert set(world.get(AUTHORITY).data) == {"current.crt", "current.key"}
    assert plan(sight(world)) == Plan(())


def test_a_change_that_is_asked_for_again_is_the_same_change(world: World):
    deeds(world, rotate=True)
    following = sight(world).authority.next
    for _ in range(2):
        assert deeds(world, rotate=True) == []
    assert sight(world).authority.next == following


def test_one_run_changes_the_ca_once(world: World):
    at_once = replace(WISH, publish_lag=timedelta(0), serve_lag=timedelta(0))
    assert deeds(world, at_once, rotate=True).count(INTRODUCED) == 1
    assert sight(world).authority.next is None


def test_the_lags_are_the_wish(world: World):
    wish = replace(WISH, publish_lag=SECOND, serve_lag=2 * SECOND)
    deeds(world, wish, rotate=True)
    world.time += SECOND
    assert deeds(world, wish) == [SIGNED]
    world.time += 2 * SECOND
    assert deeds(world, wish) == [RETIRED, *PUBLISHED, MOUNTED]


@pytest.mark.parametrize(
    "days, done",
    [(59, []), (60, [SIGNED]), (6.7 * 365, [INTRODUCED, *PUBLISHED, SIGNED, PROMOTED])],
    ids=["two thirds of the leaf's life are not over", "a third of it is left", "a third of the CA's life is left"],
)
def test_is_renewed_in_time(world: World, days: float, done: list[tuple[Deed, str]]):
    world.time += days * DAY
    assert deeds(world) == done


def test_a_leaf_that_cannot_last_longer_is_left(world: World):
    """Else a CA that dies soon would sign again and again."""
    wish = replace(WISH, publish_lag=DAY)
    world.time += 3649.5 * DAY
    deeds(world, wish)
    world.time += 8 * HOUR
    assert verify.renewal_due(sight(world).leaf.certificate, world.now)
    assert deeds(world, wish) == []


def test_a_lost_leaf_is_signed_anew(world: World):
    world.put(SERVING, None, ours=False)
    assert deeds(world) == [SIGNED]


def test_other_hosts_take_another_leaf(world: World):
    wish = Wish((*HOSTS, "vgpu-webhook"))
    assert deeds(world, wish) == [SIGNED]
    assert verify.hosts(sight(world).leaf.certificate) == frozenset(wish.hosts)
    assert deeds(world, wish) == []


def test_a_configuration_that_is_not_there_is_passed_over(world: World):
    world.put(KINDS[0], None, ours=False)
    assert deeds(world) == []
    world.put(KINDS[0], Configuration((b"",)), ours=False)
    assert deeds(world) == [PUBLISHED[0]]


def test_no_key_is_ever_shown(world: World):
    deeds(world, rotate=True)
    keys = [
        line
        for secret in (world.get(AUTHORITY), world.get(SERVING))
        for name, content in secret.data.items()
        if name.endswith(".key")
        for line in content.decode().splitlines()[1:-1]
    ]
    assert len(keys) > 6
    found = sight(world)
    shown = f"{world.state!r} {found!r} {found.authority!r} {found.authority.current.pair!r} {plan(found)!r}"
    assert not any(line in shown for line in keys)


def test_applying_changes_one_object_and_keeps_its_version(world: World):
    found = look(world.state, world.now, replace(WISH, replace=verify.fingerprint(sight(world).known[0])))
    (action,) = plan(found).actions
    after = apply(found, action)
    assert after.serving is found.state.serving
    assert after.configurations == found.state.configurations
    assert after.authority != found.state.authority
    assert after.authority.version == found.state.authority.version
