"""Puts the serving process together: files in, a service out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from webhook.cluster.files import load_device_config, load_nodes, load_policy
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
        fleet: what `kubectl get nodes -o yaml` prints; None leaves the fleet unknown.
        device_config: `device-config.yaml` or its ConfigMap; None takes Volcano's built-in defaults.
        policy: the policy file; None takes the default policy.
        audit_log: a path, `-` for standard output, None for none.
        audit_max_bytes, audit_keep: when a file is rotated, 0 for never; how many full ones are kept.
        drain_seconds: how long to go on taking connections after a SIGTERM, while not ready.
    """

    certificate: Path
    key: Path
    fleet: Path | None = None
    device_config: Path | None = None
    policy: Path | None = None
    audit_log: str | None = "-"
    audit_max_bytes: int = MAX_BYTES
    audit_keep: int = KEEP
    drain_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that serves: made before gunicorn forks, run in its worker."""

    admission: Admission
    state: State
    certificate: ServingCertificate
    watcher: Watcher
    drain_seconds: float


def load_snapshot(options: Options) -> Snapshot:
    """Read device config, policy and fleet.

    Raises:
        ConfigError: one of them cannot be used.
    """
    config = load_device_config(options.device_config) if options.device_config else default_device_config()
    policy = load_policy(options.policy) if options.policy else default_policy()
    nodes = load_nodes(options.fleet, config) if options.fleet else None
    return build_snapshot(config, policy, nodes)


def build_service(options: Options) -> Service:
    """Make the service.

    Raises:
        ConfigError: a file cannot be used.
    """
    pair, settings = (options.certificate, options.key), _settings_files(options)
    pair_seen, settings_seen = signature(pair), signature(settings)  # first: what changes while it is read has changed
    metrics = Metrics()
    state = State(load_snapshot(options))
    metrics.fleet(state.snapshot.fleet)
    certificate = ServingCertificate(options.certificate, options.key)
    metrics.certificate(certificate.expires.timestamp())
    state.certificate_expires = lambda: certificate.expires
    try:
        audit_log = None
        if options.audit_log:
            audit_log = AuditLog(options.audit_log, metrics.audit_failed, options.audit_max_bytes, options.audit_keep)
    except OSError as error:
        raise ConfigError(f"{options.audit_log}: {error.strerror or error}; name a file that can be written") from error

    def use_snapshot(snapshot: Snapshot) -> None:
        state.snapshot = snapshot
        metrics.fleet(snapshot.fleet)

    def reloaded(source: str, problem: str | None) -> None:
        metrics.reloaded(source, succeeded=problem is None)
        if problem is None:
            state.problems.pop(source, None)
            metrics.certificate(certificate.expires.timestamp())
        else:
            state.problems[source] = problem

    watched = [
        Watched("certificate", pair, certificate.load, lambda _: None, pair_seen),
        Watched("settings", settings, lambda: load_snapshot(options), use_snapshot, settings_seen),
    ]
    admission = Admission(state, audit_log, metrics)
    return Service(admission, state, certificate, Watcher(watched, reloaded), options.drain_seconds)


def _settings_files(options: Options) -> Sequence[Path]:
    return [path for path in (options.device_config, options.policy, options.fleet) if path is not None]
