"""The state of the webhook's settings, certificate, audit log and cluster, and of this console."""

import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from webhook.console.pages import Section
from webhook.console.sources import LogStatus, log_status
from webhook.console.state import AUDIT_LOG, ConsoleState
from webhook.console.texts import ago, elapsed
from webhook.devices.fleet import Fleet
from webhook.output.json import ResponseModel
from webhook.parameters import Parameters
from webhook.product import product_version
from webhook.questions.doctor.certificate import ServingCertificate, check_certificate
from webhook.questions.doctor.operation import OPTIONS, DoctorResponse, Refresh, Wait, doctor, follow, followed
from webhook.results import WORST_FIRST, CheckResult, Status, ok, warning
from webhook.settings.sources import SettingStatus
from webhook.settings.table import SETTING_NAMES

_STARTED = time.monotonic()


class Health(ResponseModel):
    """The state of everything.

    Attributes:
        status: of the worst part.
        parts: the result for each, whose name is in `check`; the worst first.
        version: of the webhook and this console.
        python: the version of the interpreter.
        uptime_seconds: of this console.
        sources: where device config, policy and fleet come from.
        certificate: None if the console cannot see it.
        audit_log: what is read of it; None if none is read.
        doctor: its last results.
    """

    status: Status
    parts: tuple[CheckResult, ...]
    version: str
    python: str
    uptime_seconds: float
    sources: tuple[SettingStatus, ...]
    certificate: ServingCertificate | None
    audit_log: LogStatus | None
    doctor: DoctorResponse


SECTION = Section("Health", shows=(*SETTING_NAMES.values(), AUDIT_LOG), options=OPTIONS, follow=follow)


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
OF_A_SAMPLE = "Sample data: your cluster is not checked"


def drawn(state: ConsoleState, _: Parameters, found: Health) -> Mapping[str, Any]:
    """What the page shows besides the value."""
    samples = [*state.samples, *["cluster"] * followed(state).is_sample]
    headline = OF_A_SAMPLE if "cluster" in samples and found.status is Status.UNCHECKED else HEADLINES[found.status]
    return {"samples": samples, "signs": SIGNS, "headline": headline, "ago": ago, "elapsed": elapsed}


@SECTION.page("/health", "health.html", more=drawn)
def health(state: ConsoleState, refresh: Refresh = False, wait: Wait = 0.0) -> Health:
    """The state of settings, certificate, audit log and cluster."""
    settings = state.settings.statuses()
    examined = followed(state)
    served = None if examined.certificate is None else check_certificate(examined.certificate)
    log = log_status(state)
    checked = doctor(state, refresh, wait)
    results = {setting.name: _setting(setting, state.snapshot.fleet) for setting in settings}
    results |= {
        "certificate": _certificate(served),
        "audit log": _log(log),
        "doctor": _doctor(checked, sample=examined.is_sample),
    }
    parts = [replace(result, check=name) for name, result in results.items()]
    parts.sort(key=lambda part: WORST_FIRST.index(part.status))
    return Health(
        status=parts[0].status,
        parts=tuple(parts),
        version=product_version(),
        python=platform.python_version(),
        uptime_seconds=time.monotonic() - _STARTED,
        sources=tuple(settings),
        certificate=served,
        audit_log=log,
        doctor=checked,
    )


def _setting(setting: SettingStatus, fleet: Fleet | None) -> CheckResult:
    source = setting.source
    if setting.name == "fleet" and fleet is None:
        return warning(source.problem or "not known", "start the console with --cluster, or with --fleet FILE")
    if source.problem:
        return warning(source.problem, "the version read before stays in use; see the message for what to do")
    if setting.name == "fleet" and fleet is not None:
        return ok(f"{fleet.nodes:,} nodes with usable devices" if fleet.complete else "declared nodes only")
    return ok(f"in use, from {source.origin}")


def _certificate(served: ServingCertificate | None) -> CheckResult:
    if served is None:
        return CheckResult(Status.UNCHECKED, "the console does not see it", "start the console with --tls-cert FILE")
    return served.result


def _log(log: LogStatus | None) -> CheckResult:
    if log is None:
        remedy = "start the console with --audit-log FILE, or with --store URL"
        return CheckResult(Status.UNCHECKED, "none is read", remedy)
    if log.problem:
        return warning(log.problem, "")
    return ok(f"{log.count:,} decisions" + (f"; {log.progress:.0%} of the log is read" if log.progress < 1 else ""))


def _doctor(checked: DoctorResponse, *, sample: bool) -> CheckResult:
    if not checked.available:
        return CheckResult(Status.UNCHECKED, "not used", checked.problem or "")
    if checked.problem:
        return warning(f"it failed: {checked.problem}", "")
    if checked.at is None:
        return CheckResult(Status.UNCHECKED, "still checking")
    counts = {status: checked.counts[status] for status in WORST_FIRST if checked.counts[status]}
    message = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no check found anything"
    if sample:
        return CheckResult(
            Status.UNCHECKED, f"a sample cluster: {message}", "start the console with --cluster to check yours"
        )
    return CheckResult(next(iter(counts), Status.UNCHECKED), f"{checked.subject}: {message}")


SECTION.page("/health/doctor")(doctor)
