"""Puts the serving process together: files and a cluster in, a service out."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
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


Job = Callable[[], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that serves: made before gunicorn forks, run in its worker.

    Attributes:
        jobs: run beside the admissions, in the event loop.
        caught_up: waits until the jobs know what the cluster has, or cannot know it now.
        stop: ends their threads, when no more news is wanted; returns at once.
    """

    admission: Admission
    state: State
    certificate: ServingCertificate
    jobs: Sequence[Job]
    caught_up: Callable[[], Awaitable[None]]
    stop: Callable[[], None]
    drain_seconds: float


def build_service(options: Options) -> Service:
    """Make the service.

    Raises:
        ConfigError: a file cannot be used, or there are no credentials for the API server.
    """
    pair, files = (options.certificate, options.key), _settings_files(options)
    pair_seen, files_seen = signature(pair), signature(files)  # first: what changes while it is read has changed
    metrics = Metrics()
    certificate = ServingCertificate(options.certificate, options.key)
    audit_log = _audit_log(options, metrics)
    given = _load_files(options)
    state = State(_snapshot(given))
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

    if options.cluster is None:
        settings = Watched("settings", files, lambda: _snapshot(_load_files(options)), use, files_seen)
        jobs: list[Job] = []
        caught_up: Callable[[], Awaitable[None]] = _at_once
        stop: Callable[[], None] = _nothing
    else:
        from webhook.cluster.live import Live  # noqa: PLC0415  # the Kubernetes client takes some MiB

        live = Live(options.cluster, given, use, metrics.reloaded)
        state.sources, metrics.fleet_age = live.lines, live.age
        settings = Watched("settings", files, lambda: _load_files(options), live.use_files, files_seen)
        jobs, caught_up, stop = [live.run], live.caught_up, live.stop
    watcher = Watcher([Watched("certificate", pair, certificate.load, _nothing, pair_seen), settings], reloaded)
    admission = Admission(state, audit_log, metrics)
    return Service(admission, state, certificate, [watcher.run, *jobs], caught_up, stop, options.drain_seconds)


def _nothing(*_: object) -> None:
    """Stand where nothing is to be done."""


async def _at_once() -> None:
    """Stand where nothing is to be waited for."""


def _audit_log(options: Options, metrics: Metrics) -> AuditLog | None:
    if not options.audit_log:
        return None
    try:
        return AuditLog(options.audit_log, metrics.audit_failed, options.audit_max_bytes, options.audit_keep)
    except OSError as error:
        raise ConfigError(f"{options.audit_log}: {error.strerror or error}; name a file that can be written") from error


def _load_files(options: Options) -> Files:
    return load_files(options.device_config, options.policy, options.fleet)


def _snapshot(files: Files) -> Snapshot:
    config = files.config or default_device_config()
    return build_snapshot(config, files.policy or default_policy(), files.nodes(config))


def _settings_files(options: Options) -> Sequence[Path]:
    return [path for path in (options.device_config, options.policy, options.fleet) if path is not None]
