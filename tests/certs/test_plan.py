"""What is done, when, and why: one case after another. That nothing is ever distrusted is test_plan_property's."""

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from certs import pki, verify
from certs.deeds import apply
from certs.plan import AUTHORITY, SERVING, Deed, Plan, plan
from certs.sight import PUBLISH_LAG, SERVE_LAG, Sight, Wish, look
from certs.state import Authority, Configuration, Secret
from tests.certs.world import HOSTS, KINDS, World, run

WISH = Wish(HOSTS)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
FOREIGN_CA = pki.make_ca("somebody else's CA", World().time)
FOREIGN = pki.make_leaf(FOREIGN_CA, HOSTS, World().time)

INTRODUCED = (Deed.INTRODUCE, AUTHORITY)
PROMOTED = (Deed.PROMOTE, AUTHORITY)
RETIRED = (Deed.RETIRE, AUTHORITY)
SIGNED = (Deed.SIGN, SERVING)
PUBLISHED = [(Deed.PUBLISH, kind) for kind in KINDS]
MOUNTED = (Deed.PUBLISH, SERVING)


@pytest.fixture
def world():
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


@pytest.mark.parametrize(
    "entries, why",
    [
        ({"tls_key": pki.make_ca("other").key}, "its key belongs to another certificate"),
        ({"tls_key": None}, "its key cannot be read"),
        ({"tls_crt": None}, "it cannot be read"),
        ({"tls_crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "it cannot be read"),
    ],
)
def test_a_broken_leaf_is_signed_anew(world: World, entries: dict[str, bytes | None], why: str):
    before = world.get(AUTHORITY)
    edit(world, SERVING, **entries, other=b"somebody else's entry")
    (action,) = run(world, WISH)
    assert (action.deed, action.why) == (Deed.SIGN, why)
    assert world.get(AUTHORITY) == before
    assert world.get(SERVING).data["other"] == b"somebody else's entry"


def test_a_lost_leaf_is_signed_anew(world: World):
    world.put(SERVING, None, ours=False)
    assert deeds(world) == [SIGNED]


def test_other_hosts_take_another_leaf(world: World):
    wish = Wish((*HOSTS, "vgpu-webhook"))
    assert deeds(world, wish) == [SIGNED]
    assert verify.hosts(sight(world).leaf.certificate) == frozenset(wish.hosts)
    assert deeds(world, wish) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bundle", [b"", b"rubbish", FOREIGN_CA.certificate])
def test_a_bundle_is_put_right(world: World, kind: str, bundle: bytes):
    right = world.get(kind).bundles
    world.put(kind, Configuration((right[0], bundle)), ours=False)
    assert deeds(world) == [(Deed.PUBLISH, kind)]
    assert world.get(kind).bundles == right


def test_a_configuration_that_is_not_there_is_passed_over(world: World):
    world.put(KINDS[0], None, ours=False)
    assert deeds(world) == []
    world.put(KINDS[0], Configuration((b"",)), ours=False)
    assert deeds(world) == [PUBLISHED[0]]


def rsa_ca() -> dict[str, bytes]:
    key = rsa.generate_private_key(65537, 2048)
    plain = serialization.NoEncryption()
    return {"current_key": key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)}


@pytest.mark.parametrize(
    "entries, why",
    [
        ({"current_key": None}, "its key cannot be read"),
        ({"current_key": b"rubbish"}, "its key cannot be read"),
        ({"current_key": pki.make_ca("other").key}, "its key belongs to another certificate"),
        (rsa_ca(), "its key belongs to another certificate"),
        ({"current_crt": b"rubbish"}, "it cannot be read"),
        ({"current_crt": FOREIGN.certificate, "current_key": FOREIGN.key}, "it is not the certificate of a CA"),
    ],
)
def test_a_ca_that_cannot_sign_any_more_gives_way_in_three_steps(world: World, entries: dict[str, bytes], why: str):
    (old,) = sight(world).known
    edit(world, AUTHORITY, **entries)
    actions = run(world, WISH)
    assert actions[0].why == f"the present one cannot sign: {why}"
    found = sight(world)
    assert found.authority.current.certificate == old, "what works is kept, with its key or without"
    assert found.issuer == old
    world.time += PUBLISH_LAG
    assert deeds(world)[0] == SIGNED
    world.time += SERVE_LAG
    assert deeds(world)[0] == RETIRED
    assert len(sight(world).known) == 1


def test_a_lost_authority_is_followed_by_a_new_one_in_three_steps(world: World):
    (old,) = sight(world).known
    world.put(AUTHORITY, None, ours=False)
    assert deeds(world) == [INTRODUCED, *PUBLISHED, MOUNTED, PROMOTED]
    assert Authority.read(world.get(AUTHORITY)).current.certificate == old


def test_where_nothing_works_nothing_is_waited_for(world: World):
    world.time += 3651 * DAY
    assert deeds(world) == [INTRODUCED, *PUBLISHED, SIGNED]
    assert len(sight(world).known) == 2, "API servers may see the old bundle for a while"
    world.time += SERVE_LAG
    assert deeds(world) == [RETIRED, *PUBLISHED, MOUNTED]
    assert len(sight(world).known) == 1


def test_a_broken_successor_is_made_anew(world: World):
    deeds(world, rotate=True)
    before = sight(world).authority
    edit(world, AUTHORITY, next_key=b"rubbish")
    assert deeds(world)[0] == INTRODUCED
    after = sight(world).authority
    assert after.current == before.current
    assert after.next != before.next
    assert after.former == (before.next.certificate,)


def test_a_strangers_leaf_that_works_is_followed_by_ours_without_a_gap(world: World):
    ours = sight(world).authority.current
    held = {"tls.crt": FOREIGN.certificate, "tls.key": FOREIGN.key, "ca.crt": FOREIGN_CA.certificate}
    world.put(SERVING, Secret(held), ours=False)
    assert deeds(world) == [INTRODUCED, *PUBLISHED, MOUNTED, PROMOTED]
    assert sight(world).authority.next == ours, "a CA that is good is not replaced"
    world.time += PUBLISH_LAG
    assert deeds(world) == [SIGNED]
    world.time += SERVE_LAG
    deeds(world)
    assert sight(world).known == (ours.certificate,)


def test_there_is_no_way_back_from_the_next_ca(world: World):
    """Another process may be retiring the old one at this moment."""
    deeds(world, rotate=True)
    world.time += PUBLISH_LAG
    deeds(world)
    world.jump -= PUBLISH_LAG
    found = sight(world, Wish((*HOSTS, "vgpu-webhook")))
    assert plan(found).actions[0].deed is Deed.SIGN
    assert found.signer == found.authority.next


@pytest.mark.parametrize("back", [timedelta(minutes=4), timedelta(minutes=6), HOUR, 40 * DAY])
def test_clocks_that_are_set_back(world: World, back: timedelta):
    world.time += 80 * DAY
    deeds(world)
    deeds(world, rotate=True)
    world.jump -= back
    for _ in range(3):
        deeds(world)
        assert sight(world).works
        world.time += SERVE_LAG
    deeds(world)
    assert plan(sight(world)) == Plan(())
    assert len(sight(world).known) == 1


def test_a_secret_that_was_written_in_the_future_is_written_again(world: World):
    """Else the old CA would stay until then."""
    held = world.get(SERVING)
    ahead = replace(world.state, serving=replace(held, written=world.now + DAY))
    (action,) = plan(look(ahead, world.now, WISH)).actions
    assert (action.deed, action.why) == (Deed.SIGN, "it is dated 2026-03-02 13:00, which is yet to come")


def test_a_step_whose_time_cannot_be_read_begins_anew(world: World):
    deeds(world, rotate=True)
    for since in (b"", b"yesterday", b"9999-12-31T23:59:59+00:00"):
        edit(world, AUTHORITY, since=since)
        assert deeds(world) == [PROMOTED]
        assert sight(world).authority.since == world.now
    edit(world, AUTHORITY, since=f"{world.now:%Y-%m-%d %H:%M:%S}".encode())
    assert deeds(world) == []


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
