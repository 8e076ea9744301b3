"""`ensure` and `bind`: look, do what is due, look again, until nothing is due. A run that is interrupted loses nothing."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from certs import verify
from certs.cluster import KINDS, Cluster, Seen
from certs.errors import Again, CertsError, Uncalled
from certs.plan import Plan, plan
from certs.state import Sight, Wish, look

TRIES = 8  # in a row that others spoil, or the API server
LOOKS = 40  # a whole change of a CA takes some ten
PAUSE_SECONDS = 0.2  # after the first try in vain; then twice as long, at most
PAUSE_AT_MOST = 5.0
PROBE_SECONDS = 2.0  # between two attempts to call the webhook

T = TypeVar("T")
Tell = Callable[[str], None]


def ensure(cluster: Cluster, wish: Wish, *, rotate: bool, until: float, tell: Tell) -> None:
    """Put the certificates in order.

    Args:
        cluster: where.
        wish: what for.
        rotate: whether the CA that is current at the first look shall be replaced.
        until: when to stop waiting for the next steps of a change of the CA, by the monotonic clock, in seconds.
        tell: takes each line for people.

    Raises:
        CertsError: it could not be done; what was done stays, and the next run goes on from there.
    """
    wish = _resolved(_patiently(cluster.read), wish, tell) if rotate else wish
    for _ in range(LOOKS):
        seen, sight, found = _patiently(lambda: _round(cluster, wish, tell))
        if found.actions:
            continue
        seconds = (found.due - seen.now).total_seconds() if found.due else None
        if seconds is None or time.monotonic() + seconds > until:
            _conclude(cluster, seen, sight, found, tell)
            return
        tell(f"waiting {max(0, round(seconds))} s: {found.waiting}")
        time.sleep(max(PAUSE_SECONDS, seconds))
    raise CertsError(
        "it is never done: somebody changes the certificates back, again and again; the lines above say which object"
    )


def bind(cluster: Cluster, *, until: float, tell: Tell) -> None:
    """Make the webhook configurations binding, as soon as the API server gets an answer from the webhook.

    Args:
        cluster: where.
        until: when to stop waiting for the answer, by the monotonic clock, in seconds.
        tell: takes each line for people.

    Raises:
        CertsError: there was no answer, so that the API server still does not depend on the webhook.
    """
    for line in _patiently(lambda: _bind(cluster, until, tell)):
        tell(line)


def _bind(cluster: Cluster, until: float, tell: Tell) -> list[str]:
    reason = ""
    while True:
        try:
            return cluster.bind()
        except Uncalled as error:
            if time.monotonic() + PROBE_SECONDS > until:
                raise CertsError(
                    f"the API server cannot call the webhook: {error}; until it can, it admits pods without it "
                    f"(or by the rules of before): see `kubectl get pods -n {cluster.names.namespace}`"
                ) from error
            if str(error) != reason:
                reason = str(error)
                tell(f"waiting until the API server can call the webhook: {reason}")
            time.sleep(PROBE_SECONDS)


def _round(cluster: Cluster, wish: Wish, tell: Tell) -> tuple[Seen, Sight, Plan]:
    seen = cluster.read()
    sight = look(seen.state, seen.now, wish)
    found = plan(sight)
    objection = next(cluster.objections(seen), None)
    if found.actions and objection:
        raise CertsError(f"{objection}; until then nothing is written")
    for action in found.actions:
        cluster.write(seen, sight, action)
        tell(f"{cluster.names.of(action.target)}: {action.deed}: {action.why}")
    return seen, sight, found


def _patiently(attempt: Callable[[], T]) -> T:
    """Try again, from a fresh look, where others were faster or the API server was busy."""
    for tries in range(1, TRIES + 1):
        try:
            return attempt()
        except Again as error:
            if tries == TRIES:
                raise CertsError(f"{error} (tried {TRIES} times)") from error
            pause = min(PAUSE_AT_MOST, PAUSE_SECONDS * 2 ** (tries - 1))
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (two that collide shall not do so again)
    raise AssertionError


def _resolved(seen: Seen, wish: Wish, tell: Tell) -> Wish:
    """Say which CA `--rotate-ca` means, so that a run that goes through all steps does not begin again."""
    authority = look(seen.state, seen.now, wish).authority
    if authority.next is not None:
        tell("a change of the CA is under way already; no other is begun")
        return wish
    current = authority.current.certificate if authority.current else None
    return replace(wish, replace=verify.fingerprint(current)) if current else wish


def _conclude(cluster: Cluster, seen: Seen, sight: Sight, found: Plan, tell: Tell) -> None:
    for kind in KINDS:
        if kind not in seen.state.configurations:
            tell(f"{cluster.names.of(kind)} is not there: passed over until it is applied")
    if found.due:
        tell(f"a change of the CA is under way: {found.waiting} (from {found.due:%Y-%m-%d %H:%M:%S} UTC on)")
    leaf = sight.leaf.certificate
    if leaf is not None:
        tell(f"in order: the serving certificate is valid until {leaf.not_valid_after_utc:%Y-%m-%d}")
