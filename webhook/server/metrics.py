"""The Prometheus metrics. No label value comes from a pod, so each label has few values.

Reviews are counted in dictionaries, which costs less than metric objects with locks, and become metrics at each scrape.
The callers must not count or scrape reviews at the same time.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from platform import python_version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.registry import Collector

from webhook import names
from webhook.devices import registry
from webhook.devices.fleet import Fleet
from webhook.outcome import Outcome
from webhook.server.state import ServerState
from webhook.wire.models import Request

LATENCY_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5)
PREFIX = names.METRIC_PREFIX

# Each with its description and its labels.
COUNTERS = {
    "requests": ("Reviews answered.", ("endpoint", "operation", "outcome", "dry_run")),
    "bad_requests": ("Requests without a verdict.", ("endpoint", "code")),
    "findings": ("Findings of the validations.", ("rule", "level", "enforcement")),
    "exceptions_used": ("Reviews in which an exception lowered findings of a rule to audit.", ("namespace", "rule")),
    "mutations": ("Pods changed by a mutation, or only found to need it.", ("rule", "enforcement")),
    "config_reloads": ("Files and ConfigMaps read because they are new or changed.", ("source", "result")),
    "audit_write_failures": ("Audit lines lost.", ()),
}
HISTOGRAMS = {"review_seconds": ("Time from the last byte of a review to its answer.", ("endpoint",))}
GAUGES = {
    "build_info": ("The version of the webhook and of Python; always 1.", ("version", "python")),
    "ready": (
        "Whether requests are to be sent here: 1, or 0 for each setting that is not known, or `shutdown`.",
        ("reason",),
    ),
    "config_last_reload_successful": (
        "Whether the newest version of a setting or certificate is in use: 1 or 0.",
        ("source",),
    ),
    "policy_exceptions": ("Exceptions of the policy; those that ended have no effect.", ("state",)),
    "fleet_nodes": ("Nodes with usable devices; 0 while the fleet is unknown.", ("family",)),
    "fleet_shapes": ("Kinds of such nodes.", ("family",)),
    "fleet_cards": ("Cards, NPUs or chips of such nodes.", ("family",)),
    "fleet_age_seconds": ("Time since the nodes were last known to be up to date; only with `--cluster`.", ()),
    "certificate_expiry_timestamp_seconds": ("When the served certificate expires.", ()),
}


class Metrics(Collector):
    """The metrics of one serving process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._counts: dict[str, Counter[tuple[str, ...]]] = {name: Counter() for name in COUNTERS}
        self._counts["audit_write_failures"][()] = 0  # alerts need a counter that exists before its first event
        self._requests = self._counts["requests"]
        self._latencies: dict[str, tuple[list[int], list[int]]] = {}  # endpoint: count per bucket, [sum in ns]
        self._gauges: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in GAUGES}
        self._gauges["build_info"][version("volcano-vgpu-webhook"), python_version()] = 1
        self.registry.register(self)

    def reviewed(self, endpoint: str, request: Request, outcome: Outcome, duration_ns: int) -> None:
        """Count one answered review."""
        dry_run = "true" if request.dry_run else "false"
        self._requests[endpoint, request.operation, outcome.word, dry_run] += 1
        known = self._latencies.get(endpoint)
        if known is None:
            known = self._latencies[endpoint] = ([0] * (len(LATENCY_BUCKETS) + 1), [0])
        buckets, total = known
        buckets[bisect_left(LATENCY_BUCKETS, duration_ns / 1e9)] += 1
        total[0] += duration_ns
        if not outcome.violations and not outcome.mutations:
            return
        enforcement = str(outcome.enforcement)
        for violation in outcome.violations:
            self._counts["findings"][violation.rule, violation.level.value, enforcement] += 1
        for rule, exception in outcome.exceptions:
            self._counts["exceptions_used"][exception.namespace, rule] += 1
        for rule in outcome.mutations:
            self._counts["mutations"][rule, enforcement] += 1

    def refused_bytes(self, endpoint: str, code: int) -> None:
        """Count a request that got an HTTP error instead of a verdict."""
        self._counts["bad_requests"][endpoint, str(code)] += 1

    def reloaded(self, source: str, succeeded: bool) -> None:
        """Count a file that changed and was read again."""
        self._counts["config_reloads"][source, "success" if succeeded else "failure"] += 1
        self._gauges["config_last_reload_successful"][(source,)] = succeeded

    def audit_failed(self) -> None:
        """Count a lost audit line."""
        self._counts["audit_write_failures"][()] += 1

    def in_use(self, state: ServerState) -> None:
        """Set what the server has at the moment."""
        snapshot, sources, gauges = state.snapshot, state.sources, self._gauges
        gauges["ready"] = {(reason,): 0 for reason in state.obstacles} or {("",): 1}
        today = datetime.now(UTC).date()
        ended = [each.until < today for each in snapshot.policy.exceptions] if snapshot is not None else []
        gauges["policy_exceptions"] = {("active",): ended.count(False), ("expired",): ended.count(True)}
        self.fleet(snapshot.fleet if snapshot is not None else None)
        if sources is not None:
            age = sources.settings.age()
            gauges["fleet_age_seconds"] = {} if age is None else {(): age}
            gauges["certificate_expiry_timestamp_seconds"] = {(): sources.tls.expires.timestamp()}

    def fleet(self, fleet: Fleet | None) -> None:
        """Set the size of the fleet; an unknown fleet counts as empty."""
        by_family = fleet.by_family if fleet else {}
        for family in (family.id for family in registry.FAMILIES):
            real = [shape for shape in by_family.get(family, ()) if not shape.declared]
            self._gauges["fleet_nodes"][(family,)] = sum(shape.nodes for shape in real)
            self._gauges["fleet_shapes"][(family,)] = len(real)
            self._gauges["fleet_cards"][(family,)] = sum(shape.nodes * len(shape.devices) for shape in real)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Turn the counts into metrics."""
        for name, (text, labels) in COUNTERS.items():
            counter = CounterMetricFamily(PREFIX + name, text, labels=labels)
            for values, count in list(self._counts[name].items()):
                counter.add_metric(values, count)
            yield counter
        text, labels = HISTOGRAMS["review_seconds"]
        latency = HistogramMetricFamily(f"{PREFIX}review_seconds", text, labels=labels)
        for endpoint, (buckets, total) in self._latencies.items():
            latency.add_metric((endpoint,), _cumulative(buckets), total[0] / 1e9)
        yield latency
        for name, (text, labels) in GAUGES.items():
            gauge = GaugeMetricFamily(PREFIX + name, text, labels=labels)
            for values, value in list(self._gauges[name].items()):
                gauge.add_metric(values, value)
            yield gauge


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    """Counts by bucket in Prometheus' form: each includes the smaller buckets."""
    bounds = [*map(str, LATENCY_BUCKETS), "+Inf"]
    return [(bound, float(sum(buckets[: place + 1]))) for place, bound in enumerate(bounds)]
