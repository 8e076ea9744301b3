"""Puts the serving process together: from options to a service."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from webhook.audit.writer import MAX_BYTES, AuditLogWriter
from webhook.cluster.file_watcher import FileWatcher, WatchedFiles, signature
from webhook.cluster.pace import PACE
from webhook.cluster.watcher import SettingsWatcher
from webhook.errors import ConfigError
from webhook.server.admission import Admission
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState
from webhook.server.tls import ServingTls
from webhook.settings.files import Paths
from webhook.settings.sources import ClusterOptions
from webhook.snapshot import Snapshot
from webhook.worker import Worker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What to serve with.

    Attributes:
        certificate, key: PEM files.
        client_ca: a PEM file; only clients with a certificate of this CA are answered. None answers all clients.
        files: the settings files, which take precedence over the cluster and the defaults.
        cluster: the cluster to follow; None sends no request to an API server.
        audit_logs: paths, `-` for standard output; each gets every line.
        audit_max_bytes: the size at which a log is renamed to FILE.1; 0 for never.
        drain_seconds: how long to accept connections after a SIGTERM, while unready.
    """

    certificate: Path
    key: Path
    files: Paths
    client_ca: Path | None = None
    cluster: ClusterOptions | None = None
    audit_logs: tuple[str, ...] = ("-",)
    audit_max_bytes: int = MAX_BYTES
    drain_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of the server: created before gunicorn forks, run in its worker.

    Attributes:
        start: starts the threads that follow files and cluster.
        is_settled: whether the cluster's settings are in use, or a request for them failed.
        stop: stops the threads; returns at once.
    """

    admission: Admission
    state: ServerState
    tls: ServingTls
    start: Callable[[], None]
    is_settled: Callable[[], bool]
    stop: Callable[[], None]
    drain_seconds: float


def build_service(options: Options) -> Service:
    """Make the service.

    Raises:
        ConfigError: a file cannot be used, or there are no credentials for the API server.
    """
    pair, client_ca = (options.certificate, options.key), tuple(filter(None, [options.client_ca]))
    seen = signature(pair), signature(client_ca)  # before they are read: a change during that counts as a change
    metrics = Metrics()
    tls = ServingTls(options.certificate, options.key, options.client_ca)
    audit_logs = tuple(_audit_log(name, options, metrics) for name in options.audit_logs)

    def use(snapshot: Snapshot) -> None:
        if not settings.unknown:
            state.snapshot = snapshot
            metrics.fleet(snapshot.fleet)

    def renewed(source: str, succeeded: bool) -> None:
        metrics.reloaded(source, succeeded)
        metrics.certificate(tls.expires.timestamp())

    settings = SettingsWatcher(options.files, options.cluster, use, metrics.reloaded)
    tls_files = FileWatcher(
        [
            WatchedFiles("certificate", pair, tls.load_pair, seen[0]),
            WatchedFiles("client-ca", client_ca, tls.load_client_ca, seen[1]),
        ],
        renewed,
    )

    def look() -> float:
        tls_files.look()
        return PACE.files

    tls_worker = Worker("certificates", look)

    def start() -> None:
        tls_worker.start()
        settings.start()

    def stop() -> None:
        tls_worker.stop()
        settings.stop()

    state = ServerState(None if settings.unknown else settings.snapshot)
    state.certificate_expires = lambda: tls.expires
    state.sources, state.problems = settings.lines, lambda: tls_files.problems | settings.problems
    state.unknown = lambda: settings.unknown
    metrics.certificate(tls.expires.timestamp())
    metrics.fleet(state.snapshot.fleet if state.snapshot else None)
    metrics.fleet_age = settings.age
    metrics.exceptions = lambda: state.snapshot.policy.exceptions if state.snapshot else ()
    metrics.obstacles = lambda: state.obstacles
    return Service(
        admission=Admission(state, audit_logs, metrics, verified_only=options.client_ca is not None),
        state=state,
        tls=tls,
        start=start,
        is_settled=settings.settled.is_set,
        stop=stop,
        drain_seconds=options.drain_seconds,
    )


def _audit_log(name: str, options: Options, metrics: Metrics) -> AuditLogWriter:
    try:
        return AuditLogWriter(name, metrics.audit_failed, options.audit_max_bytes)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; name a file that can be written") from error
