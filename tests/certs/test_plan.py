"""The actions of the plan and their times, in an undamaged cluster. test_plan_property proves that trust never breaks."""

from dataclasses import replace

import pytest

from certs import verify
from certs.plan import AUTHORITY, SERVING, ActionKind, Plan, apply, plan
from certs.state import PUBLISH_LAG, SERVE_LAG, Desired, observe
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
from tests.certs.simulated_cluster import HOSTS, World


def test_a_rotation_of_the_ca_takes_three_steps(world: World):
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


@pytest.mark.parametrize(
    "days, expected",
    [(59, []), (60, [SIGNED]), (6.7 * 365, [INTRODUCED, *PUBLISHED, SIGNED, PROMOTED])],
    ids=[
        "before two thirds of the lifetime of the leaf",
        "after two thirds of the lifetime of the leaf",
        "after two thirds of the lifetime of the CA",
    ],
)
def test_leaf_and_ca_are_renewed_after_two_thirds_of_their_lifetime(
    world: World, days: float, expected: list[tuple[ActionKind, str]]
):
    world.time += days * DAY
    assert run_actions(world) == expected


def test_a_leaf_that_expires_with_its_ca_is_not_renewed(world: World):
    """Otherwise a CA that expires soon would sign in each run."""
    desired = replace(DESIRED, publish_lag=DAY)
    world.time += 3649.5 * DAY
    run_actions(world, desired)
    world.time += 8 * HOUR
    assert verify.renewal_due(observed(world).leaf.certificate, world.now)
    assert run_actions(world, desired) == []


def test_other_hosts_need_another_leaf(world: World):
    desired = Desired((*HOSTS, "vgpu-webhook"))
    assert run_actions(world, desired) == [SIGNED]
    assert verify.hosts(observed(world).leaf.certificate) == frozenset(desired.hosts)
    assert run_actions(world, desired) == []


def test_representations_contain_no_key(world: World):
    run_actions(world, rotate=True)
    keys = [
        line
        for secret in (world.get(AUTHORITY), world.get(SERVING))
        for name, content in secret.data.items()
        if name.endswith(".key")
        for line in content.decode().splitlines()[1:-1]
    ]
    assert len(keys) > 6
    before = observed(world)
    values = [world.state, before, before.authority, before.authority.current.pair, plan(before)]
    printed = " ".join(map(repr, values))
    assert not any(line in printed for line in keys)


def test_apply_changes_one_object_and_keeps_its_version(world: World):
    before = observe(world.state, world.now, replace(DESIRED, replace=verify.fingerprint(observed(world).known_cas[0])))
    (action,) = plan(before).actions
    after = apply(before, action)
    assert after.serving is before.state.serving
    assert after.configurations == before.state.configurations
    assert after.authority != before.state.authority
    assert after.authority.version == before.state.authority.version
