"""What Prometheus scrapes. Every label has a bounded set of values: none comes from a pod."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector

from webhook.devices.fleet import Fleet
from webhook.review import Outcome
from webhook.wire.models import Request

LATENCY_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5)
PREFIX = "vgpu_webhook_"


class Metrics:
    """The registry of one serving process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._requests = self._counter("requests", "Reviews answered.", ("endpoint", "operation", "outcome", "dry_run"))
        self._bad_requests = self._counter("bad_requests", "Requests without a verdict.", ("endpoint", "code"))
        self._findings = self._counter("findings", "Findings of the validations.", ("rule", "level"))
        self._mutations = self._counter("mutations", "Pods changed by a mutation.", ("rule",))
        self._reloads = self._counter("config_reloads", "Files read again after a change.", ("source", "result"))
        self._audit_failures = self._counter("audit_write_failures", "Audit lines lost.", ())
        self._seconds = Histogram(
            f"{PREFIX}review_seconds",
            "Time from the last byte of a review to its answer.",
            ("endpoint",),
            buckets=LATENCY_BUCKETS,
            registry=self.registry,
        )
        self._expiry = self._gauge("certificate_expiry_timestamp_seconds", "When the served certificate expires.")
        self._nodes = self._gauge("fleet_nodes", "Nodes with usable vGPU cards.")
        self._shapes = self._gauge("fleet_shapes", "Kinds of such nodes.")
        self._cards = self._gauge("fleet_cards", "Cards of such nodes.")
        # Looking a child up by its labels costs more than counting it; there are as few as there are labels.
        self._children: dict[Any, Any] = {}

    def reviewed(self, endpoint: str, request: Request, outcome: Outcome, duration_ns: int) -> None:
        """Count one answered review."""
        word = outcome.word if outcome.touched else "untouched"
        dry_run = "true" if request.dry_run else "false"
        self._child(self._requests, endpoint, request.operation, word, dry_run).inc()
        self._child(self._seconds, endpoint).observe(duration_ns / 1e9)
        for violation in outcome.violations:
            self._child(self._findings, violation.rule, violation.level).inc()
        for rule in outcome.mutations:
            self._child(self._mutations, rule).inc()

    def _child(self, metric: Any, *labels: str) -> Any:
        key = (metric, labels)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = metric.labels(*labels)
        return found

    def refused_bytes(self, endpoint: str, code: int) -> None:
        """Count a request that got an HTTP error instead of a verdict."""
        self._bad_requests.labels(endpoint, code).inc()

    def reloaded(self, source: str, *, succeeded: bool) -> None:
        """Count a file that changed and was read again."""
        self._reloads.labels(source, "success" if succeeded else "failure").inc()

    def audit_failed(self) -> None:
        """Count a lost audit line."""
        self._audit_failures.inc()

    def certificate(self, expires: float) -> None:
        """Note when the served certificate expires, in seconds since 1970."""
        self._expiry.set(expires)

    def fleet(self, fleet: Fleet | None) -> None:
        """Note the size of the fleet; an unknown one counts as empty."""
        real = [shape for shape in fleet.shapes if not shape.declared] if fleet else []
        self._nodes.set(sum(shape.nodes for shape in real))
        self._shapes.set(len(real))
        self._cards.set(sum(shape.nodes * len(shape.cards) for shape in real))

    def exposition(self) -> bytes:
        """The text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(PREFIX + name, text, registry=self.registry)
