"""The actions of the plan and their times, and how it repairs damage. test_plan_property proves that trust never breaks."""

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs import pki, verify
from certs.plan import AUTHORITY, SERVING, ActionKind, Plan, apply, plan
from certs.state import PUBLISH_LAG, SERVE_LAG, Authority, Configuration, Desired, Observed, Secret, observe
from tests.certs.simulated_cluster import HOSTS, KINDS, World, run

DESIRED = Desired(HOSTS)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)

INTRODUCED = (ActionKind.INTRODUCE, AUTHORITY)
PROMOTED = (ActionKind.PROMOTE, AUTHORITY)
RETIRED = (ActionKind.RETIRE, AUTHORITY)
SIGNED = (ActionKind.SIGN, SERVING)
PUBLISHED = [(ActionKind.PUBLISH, kind) for kind in KINDS]
MOUNTED = (ActionKind.PUBLISH, SERVING)
FOREIGN_CA = pki.make_ca("another CA", World().time)
FOREIGN = pki.make_leaf(FOREIGN_CA, HOSTS, World().time)
NEXT_MONTH = World().time + 30 * DAY
EARLY = pki.make_leaf(FOREIGN_CA, HOSTS, NEXT_MONTH)


@pytest.fixture
def world() -> World:
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


@pytest.mark.parametrize(
    "hosts, why",
    [
        ((*HOSTS, "vgpu-webhook"), "it is for other hosts"),
        (("elsewhere.svc", *HOSTS), "a client would refuse the leaf: "),
    ],
)
def test_other_hosts_need_another_leaf(world: World, hosts: tuple[str, ...], why: str):
    desired = Desired(hosts)
    (action,) = run(world, desired)
    assert (action.kind, action.target, action.why[: len(why)]) == (*SIGNED, why)
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


# --- damage, foreign content, and clocks that are set back ------------------------------------------------------------


@pytest.mark.parametrize(
    "entries, reason",
    [
        ({"tls_key": pki.make_ca("other").key}, "its key belongs to another certificate"),
        ({"tls_key": None}, "its key cannot be read"),
        ({"tls_crt": None}, "it cannot be read"),
        (
            {"tls_crt": EARLY.certificate, "tls_key": EARLY.key},
            f"it is not valid before {NEXT_MONTH - pki.CLOCK_SKEW:%Y-%m-%d %H:%M}",
        ),
        ({"tls_crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "it cannot be read"),
    ],
)
def test_a_broken_leaf_is_signed_again(world: World, entries: dict[str, bytes | None], reason: str):
    before = world.get(AUTHORITY)
    edit(world, SERVING, **entries, other=b"another client's entry")
    (action,) = run(world, DESIRED)
    assert (action.kind, action.why) == (ActionKind.SIGN, reason)
    assert world.get(AUTHORITY) == before
    assert world.get(SERVING).data["other"] == b"another client's entry"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bundle", [b"", b"garbage", FOREIGN_CA.certificate])
def test_a_bundle_is_repaired(world: World, kind: str, bundle: bytes):
    right = world.get(kind).bundles
    world.put(kind, Configuration((right[0], bundle)), ours=False)
    assert run_actions(world) == [(ActionKind.PUBLISH, kind)]
    assert world.get(kind).bundles == right


def rsa_ca() -> dict[str, bytes]:
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    return {"current_key": key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)}


@pytest.mark.parametrize(
    "entries, reason",
    [
        ({"current_key": None}, "its key cannot be read"),
        ({"current_key": b"garbage"}, "its key cannot be read"),
        ({"current_key": pki.make_ca("other").key}, "its key belongs to another certificate"),
        (rsa_ca(), "its key belongs to another certificate"),
        ({"current_crt": b"garbage"}, "it cannot be read"),
        ({"current_crt": FOREIGN.certificate, "current_key": FOREIGN.key}, "it is not the certificate of a CA"),
    ],
)
def test_a_ca_that_cannot_sign_is_replaced_in_three_steps(world: World, entries: dict[str, bytes], reason: str):
    (old,) = observed(world).known_cas
    edit(world, AUTHORITY, **entries)
    actions = run(world, DESIRED)
    assert actions[0].why == f"the current CA cannot sign: {reason}"
    after = observed(world)
    assert after.authority.current.certificate == old, "a certificate that works is kept, even without its key"
    assert after.issuer == old
    world.time += PUBLISH_LAG
    assert run_actions(world)[0] == SIGNED
    world.time += SERVE_LAG
    assert run_actions(world)[0] == RETIRED
    assert len(observed(world).known_cas) == 1


def test_a_deleted_ca_secret_is_replaced_in_three_steps(world: World):
    (old,) = observed(world).known_cas
    world.put(AUTHORITY, None, ours=False)
    assert run_actions(world) == [INTRODUCED, *PUBLISHED, MOUNTED, PROMOTED]
    assert Authority.read(world.get(AUTHORITY)).current.certificate == old


def test_an_expired_ca_is_replaced_without_waiting(world: World):
    world.time += 3651 * DAY
    actions = run(world, DESIRED)
    assert actions[0].why.startswith("the current CA cannot sign: it expired on 20")
    assert [(action.kind, action.target) for action in actions] == [INTRODUCED, *PUBLISHED, SIGNED]
    assert len(observed(world).known_cas) == 2, "API servers may use the old bundle for a while"
    world.time += SERVE_LAG
    assert run_actions(world) == [RETIRED, *PUBLISHED, MOUNTED]
    assert len(observed(world).known_cas) == 1


def test_a_broken_next_ca_is_created_again(world: World):
    run_actions(world, rotate=True)
    before = observed(world).authority
    edit(world, AUTHORITY, next_key=b"garbage")
    assert run_actions(world)[0] == INTRODUCED
    after = observed(world).authority
    assert after.current == before.current
    assert after.next != before.next
    assert after.former == (before.next.certificate,)


def test_a_working_foreign_leaf_is_replaced_without_a_gap(world: World):
    ours = observed(world).authority.current
    data = {"tls.crt": FOREIGN.certificate, "tls.key": FOREIGN.key, "ca.crt": FOREIGN_CA.certificate}
    world.put(SERVING, Secret(data), ours=False)
    assert run_actions(world) == [INTRODUCED, *PUBLISHED, MOUNTED, PROMOTED]
    assert observed(world).authority.next == ours, "a valid CA is not replaced"
    world.time += PUBLISH_LAG
    assert run_actions(world) == [SIGNED]
    world.time += SERVE_LAG
    run_actions(world)
    assert observed(world).known_cas == (ours.certificate,)


def test_a_promoted_ca_stays_promoted_when_clocks_are_set_back(world: World):
    """Another process may retire the old CA at the same time."""
    run_actions(world, rotate=True)
    world.time += PUBLISH_LAG
    run_actions(world)
    world.jump -= PUBLISH_LAG
    after = observed(world, Desired((*HOSTS, "vgpu-webhook")))
    assert plan(after).actions[0].kind is ActionKind.SIGN
    assert after.signer == after.authority.next


def test_a_secret_with_a_date_in_the_future_is_written_again(world: World):
    """Otherwise the old CA would stay until that date."""
    data = world.get(SERVING)
    ahead = replace(world.state, serving=replace(data, written=world.now + DAY))
    (action,) = plan(observe(ahead, world.now, DESIRED)).actions
    assert (action.kind, action.why) == (ActionKind.SIGN, "it is dated 2026-03-02 13:00, which is in the future")


def test_a_step_with_an_invalid_time_starts_again(world: World):
    run_actions(world, rotate=True)
    for since in (b"", b"yesterday", b"9999-12-31T23:59:59+00:00"):
        edit(world, AUTHORITY, since=since)
        assert run_actions(world) == [PROMOTED]
        assert observed(world).authority.since == world.now
    edit(world, AUTHORITY, since=f"{world.now:%Y-%m-%d %H:%M:%S}".encode())
    assert run_actions(world) == []
