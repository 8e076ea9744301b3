"""The state of the webhook's settings, certificate, audit log and cluster, and of this console."""

import platform
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from flask import render_template, request
from pydantic import Field

from webhook.audit.store import Extent
from webhook.console.api import ResponseModel, operation
from webhook.console.certificate import ServingCertificate, check_certificate
from webhook.console.doctor import MAX_WAIT_SECONDS, WORST_FIRST, DoctorRequest, DoctorResponse, doctor
from webhook.console.sources import MAX_PROBLEM, SettingSource, sources
from webhook.console.state import ConsoleState
from webhook.console.texts import ago
from webhook.doctor.check import Status
from webhook.errors import StoreError
from webhook.render.ci import product_version
from webhook.texts import shorten

_STARTED = time.monotonic()


class HealthRequest(DoctorRequest):
    """How recent the doctor's results have to be."""

    wait: Annotated[
        float, Field(ge=0, le=MAX_WAIT_SECONDS, description="how many seconds to wait for a check that is running")
    ] = 0.0


class HealthPart(ResponseModel):
    """The state of one part.

    Attributes:
        name: of the part.
        status: `ok`, `warning`, `broken` or `not checked`.
        message: what was found.
        remedy: what to do about it; may be empty.
    """

    name: str
    status: Status
    message: str
    remedy: str = ""


class AuditLogStatus(ResponseModel):
    """The audit log and the decisions of it that are stored here.

    Attributes:
        decisions: how many are stored.
        oldest, newest: when the first and the last of them were made; None if there are none.
        progress: the share that is read of what there was at the start, from 0 to 1.
        foreign, truncated, too_long: lines that are not decisions, by the reason.
        problem: what cannot be read, and what to do about it.
    """

    decisions: int
    oldest: datetime | None
    newest: datetime | None
    progress: float
    foreign: int
    truncated: int
    too_long: int
    problem: str | None


class Health(ResponseModel):
    """The state of everything.

    Attributes:
        status: of the worst part.
        parts: the worst first.
        version: of the webhook and this console.
        python: the version of the interpreter.
        uptime_seconds: of this console.
        sources: where device config, policy and fleet come from.
        certificate: None if the console cannot see it.
        audit_log: None if none is read.
        doctor: its last results.
    """

    status: Status
    parts: tuple[HealthPart, ...]
    version: str
    python: str
    uptime_seconds: float
    sources: tuple[SettingSource, ...]
    certificate: ServingCertificate | None
    audit_log: AuditLogStatus | None
    doctor: DoctorResponse


@operation("GET", "/health")
def health(state: ConsoleState, wanted: HealthRequest) -> Health:
    """The state of settings, certificate, audit log and cluster."""
    found = sources(state)
    served = None if state.certificate is None else check_certificate(state.certificate)
    log = _audit_log(state)
    checked = doctor.run(state, wanted)
    parts = [*_settings(found, state), _certificate(served), _log(log), _doctor(checked)]
    parts.sort(key=lambda part: WORST_FIRST.index(part.status))
    return Health(
        status=parts[0].status,
        parts=tuple(parts),
        version=product_version(),
        python=platform.python_version(),
        uptime_seconds=time.monotonic() - _STARTED,
        sources=found,
        certificate=served,
        audit_log=log,
        doctor=checked,
    )


def _audit_log(state: ConsoleState) -> AuditLogStatus | None:
    journal = state.journal
    if journal is None:
        return None
    skipped, problem = journal.skipped, journal.problem
    try:
        extent = journal.store.extent()
    except StoreError as error:
        extent, problem = Extent(0, 0, None, None), str(error)
    return AuditLogStatus(
        decisions=extent.count,
        oldest=extent.oldest,
        newest=extent.newest,
        progress=journal.progress,
        foreign=skipped.foreign,
        truncated=skipped.truncated,
        too_long=skipped.too_long,
        problem=problem and shorten(problem, MAX_PROBLEM),
    )


def _settings(found: tuple[SettingSource, ...], state: ConsoleState) -> Iterator[HealthPart]:
    fleet = state.snapshot.fleet
    for source in found:
        if source.name == "fleet" and fleet is None:
            remedy = "start the console with --cluster, or with --fleet FILE"
            message = source.problem or "not known"
            yield HealthPart(name="fleet", status=Status.WARNING, message=message, remedy=remedy)
        elif source.problem:
            remedy = "the version read before stays in use; see the message for what to do"
            yield HealthPart(name=source.name, status=Status.WARNING, message=source.problem, remedy=remedy)
        elif source.name == "fleet" and fleet is not None:
            message = f"{fleet.nodes:,} nodes with usable devices" if fleet.complete else "declared nodes only"
            yield HealthPart(name="fleet", status=Status.OK, message=message)
        else:
            yield HealthPart(name=source.name, status=Status.OK, message=f"in use, from {source.origin}")


def _certificate(served: ServingCertificate | None) -> HealthPart:
    if served is None:
        remedy = "start the console with --tls-cert FILE"
        message = "the console does not see it"
        return HealthPart(name="certificate", status=Status.UNCHECKED, message=message, remedy=remedy)
    return HealthPart(name="certificate", status=served.status, message=served.message, remedy=served.remedy)


def _log(log: AuditLogStatus | None) -> HealthPart:
    if log is None:
        remedy = "start the console with --audit-log FILE, or with --store URL"
        return HealthPart(name="audit log", status=Status.UNCHECKED, message="none is read", remedy=remedy)
    if log.problem:
        return HealthPart(name="audit log", status=Status.WARNING, message=log.problem)
    message = f"{log.decisions:,} decisions"
    if log.progress < 1:
        message += f"; {log.progress:.0%} of the log is read"
    return HealthPart(name="audit log", status=Status.OK, message=message)


def _doctor(checked: DoctorResponse) -> HealthPart:
    if not checked.available:
        return HealthPart(name="doctor", status=Status.UNCHECKED, message="not used", remedy=checked.problem or "")
    if checked.problem:
        return HealthPart(name="doctor", status=Status.WARNING, message=f"it failed: {checked.problem}")
    if checked.at is None:
        return HealthPart(name="doctor", status=Status.UNCHECKED, message="still checking")
    counts = {status: checked.counts[status] for status in WORST_FIRST if checked.counts[status]}
    worst = next(iter(counts), Status.UNCHECKED)
    message = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no check found anything"
    return HealthPart(name="doctor", status=worst, message=f"{checked.subject}: {message}")


# --- the page -------------------------------------------------------------------------------------------------------

# The sign of each status, as not all people tell the colours apart, and its class.
SIGNS = {
    Status.BROKEN: ("✕", "broken"),
    Status.WARNING: ("▲", "warning"),
    Status.UNCHECKED: ("?", "unchecked"),
    Status.OK: ("✓", "ok"),
}
HEADLINES = {
    Status.BROKEN: "Something is broken",
    Status.WARNING: "Something needs attention",
    Status.UNCHECKED: "No problem found, but not everything could be checked",
    Status.OK: "All is well",
}


def page(state: ConsoleState) -> str:
    """The state of everything."""
    wanted = health.parse_query(request.args)
    found = health.run(state, wanted)
    headline = HEADLINES[found.status]
    return render_template("health.html", found=found, asked=wanted, signs=SIGNS, headline=headline, ago=ago)
