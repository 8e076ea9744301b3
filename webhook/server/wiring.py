"""Puts the serving process together: files and a cluster in, a service out."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.cluster.files import Files, load_files
from webhook.cluster.options import ClusterOptions
from webhook.cluster.snapshot import build_snapshot, default_device_config
from webhook.errors import ConfigError
from webhook.observe.audit import KEEP, MAX_BYTES, AuditLog
from webhook.observe.metrics import Metrics
from webhook.policy import default_policy
from webhook.review import Snapshot
from webhook.server.admission import Admission
from webhook.server.state import State
from webhook.server.tls import ServingCertificate
from webhook.server.watch import Watched, Watcher, signature

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What to serve with.

    Attributes:
        certificate, key: PEM files.
        fleet: what `kubectl get nodes -o yaml` prints; None takes the cluster's, or leaves the fleet unknown.
        device_config: `device-config.yaml` or its ConfigMap; None takes the cluster's, or Volcano's built-in defaults.
        policy: the policy file; None takes the cluster's, or the default policy.
        cluster: what to follow in the cluster; None asks no API server.
        audit_log: a path, `-` for standard output, None for none.
        audit_max_bytes, audit_keep: when a file is rotated, 0 for never; how many full ones are kept.
        drain_seconds: how long to go on taking connections after a SIGTERM, while not ready.
    """

    certificate: Path
    key: Path
    fleet: Path | None = None
    device_config: Path | None = None
    policy: Path | None = None
    cluster: ClusterOptions | None = None
    audit_log: str | None = "-"
    audit_max_bytes: int = MAX_BYTES
    audit_keep: int = KEEP
    drain_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that serves: made before gunicorn forks, run in its worker.

    Attributes:
        jobs: run beside the admissions, in the event loop.
        stop: ends their threads, when no more news is wanted; returns at once.
    """

    admission: Admission
    state: State
    certificate: ServingCertificate
    jobs: Sequence[Callable[[], Coroutine[None, None, None]]]
    stop: Callable[[], None]
    drain_seconds: float


def build_service(options: Options) -> Service:
    """Make the service.

    Raises:
        ConfigError: a file cannot be used, or there are no credentials for the API server.
    """
    pair, settings = (options.certificate, options.key), _settings_files(options)
    pair_seen, settings_seen = signature(pair), signature(settings)  # first: what changes while it is read has changed
    metrics = Metrics()
    certificate = ServingCertificate(options.certificate, options.key)
    audit_log = _audit_log(options, metrics)
    files = _load_files(options)
    state = State(_snapshot(files))
    state.certificate_expires = lambda: certificate.expires
    metrics.certificate(certificate.expires.timestamp())
    metrics.fleet(state.snapshot.fleet)

    def use(snapshot: Snapshot) -> None:
        state.snapshot = snapshot
        metrics.fleet(snapshot.fleet)

    def reloaded(source: str, problem: str | None) -> None:
        metrics.reloaded(source, succeeded=problem is None)
        if problem is None:
            state.problems.pop(source, None)
            metrics.certificate(certificate.expires.timestamp())
        else:
            state.problems[source] = problem

    watched = [Watched("certificate", pair, certificate.load, lambda _: None, pair_seen)]
    jobs, stop = [Watcher(watched, reloaded).run], _nothing
    if options.cluster is None:
        watched.append(Watched("settings", settings, lambda: _snapshot(_load_files(options)), use, settings_seen))
    else:
        from webhook.cluster.live import Live  # noqa: PLC0415  # its client takes some MiB
        live = Live(options.cluster, files, use, metrics.reloaded)
        state.sources, metrics.fleet_age = live.lines, live.age
    return Service(Admission(state, audit_log, metrics), state, certificate, jobs, stop, options.drain_seconds)


def _load_files(options: Options) -> Files:
    return load_files(options.device_config, options.policy, options.fleet)


def _snapshot(files: Files) -> Snapshot:
    config = files.config or default_device_config()
    return build_snapshot(config, files.policy or default_policy(), files.nodes(config))


def _settings_files(options: Options) -> Sequence[Path]:
    return [path for path in (options.device_config, options.policy, options.fleet) if path is not None]
