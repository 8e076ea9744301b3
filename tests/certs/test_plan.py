"""What is done, when, and why, while nobody does harm. That nothing is ever distrusted is test_plan_property's."""

from dataclasses import replace
from datetime import timedelta

import pytest

from certs import verify
from certs.plan import AUTHORITY, SERVING, ActionKind, Plan, apply, plan
from certs.state import PUBLISH_LAG, SERVE_LAG, Configuration, Desired, observe
from tests.certs.planning import (
    DAY,
    DESIRED,
    HOUR,
    INTRODUCED,
    MOUNTED,
    PROMOTED,
    PUBLISHED,
    RETIRED,
    SECOND,
    SIGNED,
    observed,
    run_actions,
)
from tests.certs.simulated_cluster import HOSTS, KINDS, World


def test_a_change_of_the_ca_takes_three_steps(world: World):
    (old,) = observed(world).known_cas
    assert run_actions(world, rotate=True) == [INTRODUCED, *PUBLISHED, MOUNTED, PROMOTED]
    introduced = observed(world)
    new = introduced.authority.next.certificate
    assert introduced.issuer == old
    assert set(introduced.bundle) == {old, new}
    assert plan(introduced).due == world.now + PUBLISH_LAG

    world.time += PUBLISH_LAG - SECOND
    assert run_actions(world) == []
    world.time += SECOND
    assert run_actions(world) == [SIGNED]
    promoted = observed(world)
    assert promoted.issuer == new
    assert set(promoted.bundle) == {old, new}
    assert plan(promoted).due == world.now + SERVE_LAG

    world.time += SERVE_LAG - SECOND
    assert run_actions(world) == []
    world.time += SECOND
    assert run_actions(world) == [RETIRED, *PUBLISHED, MOUNTED]
    assert observed(world).known_cas == (new,)
    assert set(world.get(AUTHORITY).data) == {"current.crt", "current.key"}
    assert plan(observed(world)) == Plan(())


def test_a_change_that_is_requested_again_is_the_same_change(world: World):
    run_actions(world, rotate=True)
    following = observed(world).authority.next
    for _ in range(2):
        assert run_actions(world, rotate=True) == []
    assert observed(world).authority.next == following


def test_one_run_changes_the_ca_once(world: World):
    at_once = replace(DESIRED, publish_lag=timedelta(0), serve_lag=timedelta(0))
    assert run_actions(world, at_once, rotate=True).count(INTRODUCED) == 1
    assert observed(world).authority.next is None


def test_the_lags_are_configurable(world: World):
    desired = replace(DESIRED, publish_lag=SECOND, serve_lag=2 * SECOND)
    run_actions(world, desired, rotate=True)
    world.time += SECOND
    assert run_actions(world, desired) == [SIGNED]
    world.time += 2 * SECOND
    assert run_actions(world, desired) == [RETIRED, *PUBLISHED, MOUNTED]


@pytest.mark.parametrize(
    "days, done",
    [(59, []), (60, [SIGNED]), (6.7 * 365, [INTRODUCED, *PUBLISHED, SIGNED, PROMOTED])],
    ids=["two thirds of the leaf's life are not over", "a third of it is left", "a third of the CA's life is left"],
)
def test_is_renewed_in_time(world: World, days: float, done: list[tuple[ActionKind, str]]):
    world.time += days * DAY
    assert run_actions(world) == done


def test_a_leaf_that_cannot_last_longer_is_left(world: World):
    """Else a CA that dies soon would sign again and again."""
    desired = replace(DESIRED, publish_lag=DAY)
    world.time += 3649.5 * DAY
    run_actions(world, desired)
    world.time += 8 * HOUR
    assert verify.renewal_due(observed(world).leaf.certificate, world.now)
    assert run_actions(world, desired) == []


def test_a_lost_leaf_is_signed_anew(world: World):
    world.put(SERVING, None, ours=False)
    assert run_actions(world) == [SIGNED]


def test_other_hosts_take_another_leaf(world: World):
    desired = Desired((*HOSTS, "vgpu-webhook"))
    assert run_actions(world, desired) == [SIGNED]
    assert verify.hosts(observed(world).leaf.certificate) == frozenset(desired.hosts)
    assert run_actions(world, desired) == []


def test_a_configuration_that_is_not_there_is_passed_over(world: World):
    world.put(KINDS[0], None, ours=False)
    assert run_actions(world) == []
    world.put(KINDS[0], Configuration((b"",)), ours=False)
    assert run_actions(world) == [PUBLISHED[0]]


def test_no_key_is_ever_shown(world: World):
    run_actions(world, rotate=True)
    keys = [
        line
        for secret in (world.get(AUTHORITY), world.get(SERVING))
        for name, content in secret.data.items()
        if name.endswith(".key")
        for line in content.decode().splitlines()[1:-1]
    ]
    assert len(keys) > 6
    found = observed(world)
    shown = f"{world.state!r} {found!r} {found.authority!r} {found.authority.current.pair!r} {plan(found)!r}"
    assert not any(line in shown for line in keys)


def test_applying_changes_one_object_and_keeps_its_version(world: World):
    found = observe(world.state, world.now, replace(DESIRED, replace=verify.fingerprint(observed(world).known_cas[0])))
    (action,) = plan(found).actions
    after = apply(found, action)
    assert after.serving is found.state.serving
    assert after.configurations == found.state.configurations
    assert after.authority != found.state.authority
    assert after.authority.version == found.state.authority.version
