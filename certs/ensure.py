"""`ensure` and `bind`: read the state, do what is due, and repeat until nothing is due. They can be interrupted at any time."""

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from certs import verify
from certs.cluster import KINDS, Cluster, ReadState
from certs.errors import Again, CertsError, Uncalled
from certs.plan import Plan, plan
from certs.state import Desired, Observed, observe

ROUNDS = 40  # a whole rotation of the CA takes about ten

T = TypeVar("T")
ReportLine = Callable[[str], None]


class Patience(NamedTuple):
    """How often something is tried, and how long to wait.

    Attributes:
        until: when to stop waiting for the next steps of a CA rotation, and for the webhook to respond (time.monotonic).
        tries: in a row, when other clients interfere or the API server is busy.
        pause: seconds after the first failed try; doubled after each further one.
        max_pause: seconds.
        probe: seconds between two attempts to call the webhook.
    """

    until: float
    tries: int = 8
    pause: float = 0.2
    max_pause: float = 5.0
    probe: float = 2.0


def ensure(cluster: Cluster, desired: Desired, patience: Patience, *, rotate: bool, report: ReportLine) -> None:
    """Create, renew and repair the certificates.

    Args:
        cluster: the objects to read and write.
        desired: what the certificates are for.
        patience: how often to try, and how long to wait.
        rotate: replace the CA that is current at the start.
        report: prints one line.

    Raises:
        CertsError: it failed; the changes made so far stay, and the next run continues from there.
    """
    desired = _pin_rotation(_with_retries(cluster.read, patience), desired, report) if rotate else desired
    for _ in range(ROUNDS):
        reading, observed, planned = _with_retries(lambda: _round(cluster, desired, report), patience)
        if planned.actions:
            continue
        seconds = (planned.due - reading.now).total_seconds() if planned.due else None
        if seconds is None or time.monotonic() + seconds > patience.until:
            _report_end(cluster, reading, observed, planned, report)
            return
        report(f"waiting {max(0, round(seconds))} s: {planned.waiting}")
        time.sleep(max(patience.pause, seconds))
    raise CertsError(
        "it does not finish: another client changes the certificates again and again; the lines above name the objects"
    )


def bind(cluster: Cluster, patience: Patience, report: ReportLine) -> None:
    """Make the webhook configurations binding when the API server gets a response from the webhook.

    Args:
        cluster: the objects to read and write.
        patience: how often to try, and how long to wait.
        report: prints one line.

    Raises:
        CertsError: there was no response; the API server still does not depend on the webhook.
    """
    for line in _with_retries(lambda: _bind(cluster, patience, report), patience):
        report(line)


def _bind(cluster: Cluster, patience: Patience, report: ReportLine) -> list[str]:
    reason = ""
    while True:
        try:
            return cluster.bind()
        except Uncalled as error:
            if time.monotonic() + patience.probe > patience.until:
                raise CertsError(
                    f"the API server cannot call the webhook: {error}; until it can, it admits pods without it "
                    f"(or calls it by its previous rules): see `kubectl get pods -n {cluster.names.namespace}`"
                ) from error
            if str(error) != reason:
                reason = str(error)
                report(f"waiting until the API server can call the webhook: {reason}")
            time.sleep(patience.probe)


def _round(cluster: Cluster, desired: Desired, report: ReportLine) -> tuple[ReadState, Observed, Plan]:
    reading = cluster.read()
    observed = observe(reading.state, reading.now, desired)
    planned = plan(observed)
    objection = next(cluster.objections(reading), None)
    if planned.actions and objection:
        raise CertsError(f"{objection}; until then nothing is written")
    for action in planned.actions:
        cluster.write(reading, observed, action)
        report(f"{cluster.names.describe(action.target)}: {action.kind}: {action.why}")
    return reading, observed, planned


def _with_retries(attempt: Callable[[], T], patience: Patience) -> T:
    """Retry with exponential backoff when another client was faster or the API server was busy."""
    for tries in range(1, patience.tries + 1):
        try:
            return attempt()
        except Again as error:
            if tries == patience.tries:
                raise CertsError(f"{error} (tried {tries} times)") from error
            pause = min(patience.max_pause, patience.pause * 2 ** (tries - 1))
            time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311  (so that two runs that collide do not collide again)
    raise AssertionError


def _pin_rotation(reading: ReadState, desired: Desired, report: ReportLine) -> Desired:
    """Fix which CA `--rotate-ca` replaces, so that a run that completes the rotation does not start another one."""
    authority = observe(reading.state, reading.now, desired).authority
    if authority.next is not None:
        report("a CA rotation is already in progress; no other is started")
        return desired
    current = authority.current.certificate if authority.current else None
    return replace(desired, replace=verify.fingerprint(current)) if current else desired


def _report_end(cluster: Cluster, reading: ReadState, observed: Observed, planned: Plan, report: ReportLine) -> None:
    for kind in KINDS:
        if kind not in reading.state.configurations:
            report(f"{cluster.names.describe(kind)} does not exist: skipped until it is applied")
    if planned.due:
        report(f"a CA rotation is in progress: {planned.waiting} (after {planned.due:%Y-%m-%d %H:%M:%S} UTC)")
    leaf = observed.leaf.certificate
    if leaf is not None:
        report(f"in order: the serving certificate is valid until {leaf.not_valid_after_utc:%Y-%m-%d}")
