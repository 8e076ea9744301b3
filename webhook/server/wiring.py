"""Puts the serving process together: from options to a service."""

from dataclasses import dataclass
from pathlib import Path

from webhook.audit.writer import MAX_BYTES, AuditLogWriter
from webhook.cluster.file_watcher import FileWatcher, WatchedFiles
from webhook.cluster.pace import PACE, Pace
from webhook.cluster.watcher import SettingsWatcher
from webhook.errors import ConfigError
from webhook.inputs.files import signature
from webhook.server.admission import Admission
from webhook.server.limits import LIMITS, ServerLimits
from webhook.server.metrics import Metrics
from webhook.server.state import ServerSources, ServerState
from webhook.server.tls import ServingTls
from webhook.settings.sources import ClusterOptions, Paths
from webhook.snapshot import Snapshot
from webhook.worker import Worker


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
        limits: of clients, and of the start and the end.
        pace: how often to look at files and cluster.
    """

    certificate: Path
    key: Path
    files: Paths
    client_ca: Path | None = None
    cluster: ClusterOptions | None = None
    audit_logs: tuple[str, ...] = ("-",)
    audit_max_bytes: int = MAX_BYTES
    drain_seconds: float = 0.0
    limits: ServerLimits = LIMITS
    pace: Pace = PACE


class Service:
    """The parts of the server: created before gunicorn forks, run in its worker.

    Attributes:
        admission: answers reviews.
        state: what it reviews with.
        tls: of new connections.
        drain_seconds, limits: as in the options.
    """

    def __init__(self, options: Options) -> None:
        """Read the files.

        Raises:
            ConfigError: a file cannot be used, or there are no credentials for the API server.
        """
        pair, client_ca = (options.certificate, options.key), tuple(filter(None, [options.client_ca]))
        seen = signature(pair), signature(client_ca)  # before they are read: a change during that counts as a change
        metrics = Metrics()
        self.drain_seconds, self.limits, self._pace = options.drain_seconds, options.limits, options.pace
        self.tls = ServingTls(options.certificate, options.key, options.client_ca)
        audit_logs = tuple(_audit_log(name, options, metrics) for name in options.audit_logs)
        self._settings = SettingsWatcher(options.files, options.cluster, self._use, metrics.reloaded, pace=self._pace)
        watched = [
            WatchedFiles("certificate", pair, self.tls.load_pair, seen[0]),
            WatchedFiles("client-ca", client_ca, self.tls.load_client_ca, seen[1]),
        ]
        self._tls_files = FileWatcher(watched, metrics.reloaded)
        self._tls_worker = Worker("certificates", self._look)
        self.state = ServerState(
            None if self._settings.unknown else self._settings.snapshot,
            ServerSources(self._settings, self.tls, self._tls_files),
        )
        self.admission = Admission(self.state, audit_logs, metrics, verified_only=options.client_ca is not None)

    def start(self) -> None:
        """Start the threads that follow files and cluster."""
        self._tls_worker.start()
        self._settings.start()

    def stop(self) -> None:
        """Stop the threads; returns at once."""
        self._tls_worker.stop()
        self._settings.stop()

    @property
    def is_settled(self) -> bool:
        """Whether the cluster's settings are in use, or a request for them failed."""
        return self._settings.settled.is_set()

    def _use(self, snapshot: Snapshot) -> None:
        if not self._settings.unknown:
            self.state.snapshot = snapshot

    def _look(self) -> float:
        self._tls_files.look()
        return self._pace.files


def _audit_log(name: str, options: Options, metrics: Metrics) -> AuditLogWriter:
    try:
        return AuditLogWriter(name, metrics.audit_failed, options.audit_max_bytes, options.limits.audit_bytes)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror or error}; name a file that can be written") from error
