"""Puts the serving process together: files and a cluster in, a service out."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.audit.log import KEEP, MAX_BYTES, AuditLog
from webhook.errors import ConfigError
from webhook.review import Snapshot
from webhook.server.admission import Admission
from webhook.server.metrics import Metrics
from webhook.server.state import State
from webhook.server.tls import ServingTls
from webhook.settings.file_watcher import FileWatcher, WatchedFiles, signature
from webhook.settings.files import SettingsFiles
from webhook.settings.sources import ClusterOptions
from webhook.settings.watcher import Job, SettingsWatcher

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What to serve with.

    Attributes:
        certificate, key: PEM files.
        client_ca: a PEM file; reviews are answered only for clients with a certificate of it. None answers everyone.
        files: what they do not say, the cluster says, or a default; without either the fleet is unknown.
        cluster: what to follow in the cluster; None asks no API server.
        audit_logs: paths, `-` for standard output; each gets every line.
        audit_max_bytes, audit_keep: when a file is rotated, 0 for never; how many full ones are kept.
        drain_seconds: how long to go on taking connections after a SIGTERM, while not ready.
    """

    certificate: Path
    key: Path
    files: SettingsFiles
    client_ca: Path | None = None
    cluster: ClusterOptions | None = None
    audit_logs: tuple[str, ...] = ("-",)
    audit_max_bytes: int = MAX_BYTES
    audit_keep: int = KEEP
    drain_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that serves: made before gunicorn forks, run in its worker.

    Attributes:
        jobs: run beside the admissions, in the event loop.
        settled: waits until the jobs know what the cluster has, or cannot know it now.
        stop: ends their threads, when no more news is wanted; returns at once.
    """

    admission: Admission
    state: State
    tls: ServingTls
    jobs: Sequence[Job]
    settled: Callable[[], Awaitable[None]]
    stop: Callable[[], None]
    drain_seconds: float


def build_service(options: Options) -> Service:
    """Make the service.

    Raises:
        ConfigError: a file cannot be used, or there are no credentials for the API server.
    """
    pair, client_ca = (options.certificate, options.key), tuple(filter(None, [options.client_ca]))
    seen = signature(pair), signature(client_ca)  # first: what changes while it is read has changed
    metrics = Metrics()
    tls = ServingTls(options.certificate, options.key, options.client_ca)
    audit_logs = tuple(_audit_log(name, options, metrics) for name in options.audit_logs)

    def use(snapshot: Snapshot) -> None:
        state.snapshot = snapshot
        metrics.fleet(snapshot.fleet)

    def renewed(source: str, succeeded: bool) -> None:
        metrics.reloaded(source, succeeded)
        metrics.certificate(tls.expires.timestamp())

    settings = SettingsWatcher(options.files, options.cluster, use, metrics.reloaded)
    tls_files = FileWatcher(
        [
            WatchedFiles("certificate", pair, tls.load_pair, _nothing, seen[0]),
            WatchedFiles("client-ca", client_ca, tls.load_client_ca, _nothing, seen[1]),
        ],
        renewed,
    )
    state = State(settings.snapshot)
    state.certificate_expires = lambda: tls.expires
    state.sources, state.problems = settings.lines, lambda: tls_files.problems | settings.problems
    metrics.certificate(tls.expires.timestamp())
    metrics.fleet(state.snapshot.fleet)
    metrics.fleet_age = settings.age
    return Service(
        admission=Admission(state, audit_logs, metrics, verified_only=options.client_ca is not None),
        state=state,
        tls=tls,
        jobs=[tls_files.run, *settings.jobs],
        settled=settings.settled,
        stop=settings.stop,
        drain_seconds=options.drain_seconds,
    )


def _nothing(*_: object) -> None:
    """Stand where nothing is to be done."""


def _audit_log(name: str, options: Options, metrics: Metrics) -> AuditLog:
    try:
        return AuditLog(name, metrics.audit_failed, options.audit_max_bytes, options.audit_keep)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; name a file that can be written") from error
