"""How it stands with the webhook's settings, certificate and audit log, and with this console; and what the doctor says."""

import platform
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from pydantic import Field

from webhook.console.api import doctor
from webhook.console.api.certificate import ServingCertificate, certificate
from webhook.console.api.doctor import MAX_WAIT_SECONDS, WORST_FIRST, Doctor, last_look
from webhook.console.api.openapi import product_version
from webhook.console.api.operation import Answer, Method, Operation, Question
from webhook.console.api.sources import MAX_PROBLEM, Source, sources
from webhook.console.state import State
from webhook.doctor.check import Status
from webhook.texts import shorten

_STARTED = time.monotonic()


class HealthQuestion(Question):
    """How new the doctor's part of the answer is to be."""

    refresh: Annotated[bool, Field(description="let the doctor look anew, though not more often than every 10 s")] = (
        False
    )
    wait: Annotated[
        float,
        Field(ge=0, le=MAX_WAIT_SECONDS, description="for how many seconds to wait for a doctor that is looking"),
    ] = 0.0


class Part(Answer):
    """How one thing stands, in a sentence.

    Attributes:
        name: what it is.
        status: `ok`, `warning`, `broken`, or `not checked` where nobody can tell.
        message: how it stands.
        remedy: what to do about it; may be empty.
    """

    name: str
    status: Status
    message: str
    remedy: str = ""


class AuditLog(Answer):
    """The audit log as it is held here.

    Attributes:
        decisions: how many are held.
        oldest, newest: when the first and the last of them were made; None if there are none.
        progress: how much is read of what there was at the start, from 0 to 1.
        foreign, truncated, too_long: lines that are no decisions, by why.
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


class Health(Answer):
    """All of it.

    Attributes:
        status: of the worst part.
        parts: the worst first.
        version: of the webhook and this console.
        python: that it runs with.
        uptime_seconds: of this console.
        sources: where device config, policy and fleet come from.
        certificate: None if it is not to be seen from here.
        audit_log: None if none is read.
        doctor: what it said last.
    """

    status: Status
    parts: tuple[Part, ...]
    version: str
    python: str
    uptime_seconds: float
    sources: tuple[Source, ...]
    certificate: ServingCertificate | None
    audit_log: AuditLog | None
    doctor: Doctor


def health(state: State, question: HealthQuestion) -> Health:
    """How everything stands."""
    found = sources(state)
    served = None if state.certificate is None else certificate(state.certificate)
    read = _audit_log(state)
    said = last_look(state, refresh=question.refresh, wait=question.wait)
    parts = [
        *_settings(found, state),
        _certificate(served),
        _log(read),
        _doctor(said),
    ]
    parts.sort(key=lambda part: WORST_FIRST.index(part.status))
    return Health(
        status=parts[0].status,
        parts=tuple(parts),
        version=product_version(),
        python=platform.python_version(),
        uptime_seconds=time.monotonic() - _STARTED,
        sources=found,
        certificate=served,
        audit_log=read,
        doctor=said,
    )


def _audit_log(state: State) -> AuditLog | None:
    journal = state.journal
    if journal is None:
        return None
    skipped, problem, extent = journal.skipped, journal.problem, journal.store.extent()
    return AuditLog(
        decisions=extent.count,
        oldest=extent.oldest,
        newest=extent.newest,
        progress=journal.progress,
        foreign=skipped.foreign,
        truncated=skipped.truncated,
        too_long=skipped.too_long,
        problem=None if problem is None else shorten(problem, MAX_PROBLEM),
    )


def _settings(found: tuple[Source, ...], state: State) -> Iterator[Part]:
    fleet = state.snapshot.fleet
    for source in found:
        if source.name == "fleet" and fleet is None:
            remedy = "start the console with --cluster, or with --fleet FILE"
            yield Part(name="fleet", status=Status.WARNING, message=source.problem or "not known", remedy=remedy)
        elif source.problem:
            remedy = "what was read before stays in use; see what the message says"
            yield Part(name=source.name, status=Status.WARNING, message=source.problem, remedy=remedy)
        elif source.name == "fleet" and fleet is not None:
            told = f"{fleet.nodes:,} nodes with usable devices" if fleet.complete else "declared nodes only"
            yield Part(name="fleet", status=Status.OK, message=told)
        else:
            yield Part(name=source.name, status=Status.OK, message=f"in use as {source.origin} has it")


def _certificate(served: ServingCertificate | None) -> Part:
    if served is None:
        how = "start the console with --tls-cert FILE"
        return Part(name="certificate", status=Status.UNCHECKED, message="not to be seen from here", remedy=how)
    return Part(name="certificate", status=served.status, message=served.message, remedy=served.remedy)


def _log(read: AuditLog | None) -> Part:
    if read is None:
        how = "start the console with --audit-log FILE"
        return Part(name="audit log", status=Status.UNCHECKED, message="none is read", remedy=how)
    if read.problem:
        return Part(name="audit log", status=Status.WARNING, message=read.problem)
    message = f"{read.decisions:,} decisions"
    if read.progress < 1:
        message += f"; {read.progress:.0%} of the log is read"
    return Part(name="audit log", status=Status.OK, message=message)


def _doctor(said: Doctor) -> Part:
    if not said.available:
        return Part(name="doctor", status=Status.UNCHECKED, message="not asked", remedy=said.problem or "")
    if said.problem:
        return Part(name="doctor", status=Status.WARNING, message=f"could not look: {said.problem}")
    if said.at is None:
        return Part(name="doctor", status=Status.UNCHECKED, message="still looking")
    worst = next((status for status in WORST_FIRST if said.counts[status]), Status.UNCHECKED)
    counts = ", ".join(f"{said.counts[status]} {status}" for status in WORST_FIRST if said.counts[status])
    return Part(name="doctor", status=worst, message=f"{said.subject}: {counts or 'no check said anything'}")


OPERATIONS = (
    Operation(
        "health",
        Method.GET,
        "/health",
        "How settings, certificate, audit log and cluster stand",
        HealthQuestion,
        Health,
        health,
    ),
    *doctor.OPERATIONS,
)
