"""Each alert with recorded metrics: when it fires, and when it does not."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("promql_parser", reason="`make` installs it with the extra dev")

from tests.deploy.promql import INTERVAL, Recording
from tests.deploy.test_monitoring import ALERTS
from webhook.server.metrics import LATENCY_BUCKETS, Metrics

RULES = {rule["alert"]: rule for rule in ALERTS}
MINUTE = 60
END = 200 * MINUTE
POD = {"job": "vgpu-webhook", "pod": "vgpu-webhook-a"}
REJECTED = "apiserver_admission_webhook_rejection_count"
PASSED = "apiserver_admission_webhook_fail_open_count"

Scene = Callable[[Recording], None]


def every(begin: float = 0, end: float = END) -> Iterator[float]:
    yield from range(int(begin), int(end) + 1, INTERVAL)


def scraped(change: Callable[[Metrics, float], None], begin: float = 0) -> Scene:
    """The metrics of the webhook, changed before each scrape."""

    def scene(recording: Recording) -> None:
        metrics = Metrics()
        for at in every(begin):
            change(metrics, at)
            recording.add(at, "up", 1, POD)
            recording.scrape(at, metrics.exposition().decode(), **POD)

    return scene


def once(act: Callable[[Metrics], None], when: float = END - 2 * MINUTE) -> Scene:
    """A change that happens once."""
    return scraped(lambda metrics, at: act(metrics) if at == when else None)


def always(act: Callable[[Metrics], None]) -> Scene:
    return scraped(lambda metrics, _: act(metrics))


def up(value: int, begin: float = 0, **labels: str) -> Scene:
    def scene(recording: Recording) -> None:
        for at in every(begin):
            recording.add(at, "up", value, POD | labels)

    return scene


def counted(metric: str, begin: float, end: float = END, /, **labels: str) -> Scene:
    """A counter of the API server that grows with each scrape from `begin` to `end`; before that it is 0."""

    def scene(recording: Recording) -> None:
        count = 0.0
        for at in every():
            count += begin <= at <= end
            recording.add(at, metric, count, labels)

    return scene


def reviews(nanoseconds: int, share: int = 10) -> Scene:
    """One review in `share` takes `nanoseconds`, all others 100 µs."""

    def act(metrics: Metrics) -> None:
        for number in range(100):
            metrics._latencies.setdefault("validate", ([0] * (len(LATENCY_BUCKETS) + 1), [0]))
            buckets, total = metrics._latencies["validate"]
            duration = nanoseconds if number % share == 0 else 100_000
            buckets[bisect_left(LATENCY_BUCKETS, duration / 1e9)] += 1
            total[0] += duration

    return always(act)


def nothing(_: Any) -> None:
    pass


def nodes(number: int) -> Scene:
    return always(lambda metrics: metrics._gauges.update(fleet_nodes={("vgpu",): number, ("gpushare",): 0}))


def fleet_age(seconds: float) -> Scene:
    return always(lambda metrics: setattr(metrics, "fleet_age", lambda: seconds))


def ship_lag(seconds: float) -> Scene:
    def scene(recording: Recording) -> None:
        for at in every():
            recording.add(at, "vgpu_webhook_ship_lag_seconds", seconds, POD)

    return scene


def other_restarts(recording: Recording) -> None:
    """A counter falls back to 0 when the pod restarts."""
    for at in every():
        recording.add(at, "vgpu_webhook_bad_requests_total", 5 if at < END - 5 * MINUTE else 0, POD | {"code": "500"})


POD_ENTRY, PROBE = {"name": "pods.vgpu-webhook.svc"}, {"name": "probe.vgpu-webhook.svc"}

FIRES: dict[str, list[tuple[str, Scene]]] = {
    "VgpuWebhookDown": [("no target", nothing), ("every target is down", up(0)), ("another job is up", up(1, job="x"))],
    "VgpuWebhookCallsFail": [
        ("calls fail", counted(REJECTED, END - 8 * MINUTE, error_type="calling_webhook_error", **POD_ENTRY)),
    ],
    "VgpuWebhookPassedOver": [
        ("one request passed", counted(PASSED, END - MINUTE, END - MINUTE, type="validating", **POD_ENTRY)),
    ],
    "VgpuWebhookErrors": [
        ("the first error ever", once(lambda metrics: metrics.refused_bytes("mutate", 500))),
        ("one more", scraped(lambda m, at: m.refused_bytes("mutate", 500) if at in (0, END - 3 * MINUTE) else None)),
    ],
    "VgpuWebhookSlow": [("one in ten takes 0.4 s", reviews(400_000_000))],
    "VgpuWebhookCertificateExpires": [("in 3 days", always(lambda m: m.certificate(END + 3 * 86400)))],
    "VgpuWebhookConfigRefused": [
        ("the first one", once(lambda metrics: metrics.reloaded("policy", succeeded=False))),
    ],
    "VgpuWebhookFleetUnknown": [("no node", nodes(0))],
    "VgpuWebhookFleetStale": [("for 400 s", fleet_age(400))],
    "VgpuWebhookAuditLost": [("a line", once(lambda metrics: metrics.audit_failed()))],
    "VgpuWebhookDecisionsNotShipped": [("for an hour", ship_lag(3600))],
}
QUIET: dict[str, list[tuple[str, Scene]]] = {
    "VgpuWebhookDown": [("one of two replicas is up", lambda r: (up(0, pod="b")(r), up(1)(r))[1])],
    "VgpuWebhookCallsFail": [
        ("pods are denied", counted(REJECTED, 0, error_type="no_error", **POD_ENTRY)),
        ("the probe is refused", counted(REJECTED, 0, error_type="calling_webhook_error", **PROBE)),
        ("another webhook fails", counted(REJECTED, 0, error_type="calling_webhook_error", name="x.example.com")),
        ("it failed for a moment", counted(REJECTED, END - MINUTE, error_type="calling_webhook_error", **POD_ENTRY)),
        (
            "it failed an hour ago",
            counted(REJECTED, 0, END - 60 * MINUTE, error_type="calling_webhook_error", **POD_ENTRY),
        ),
    ],
    "VgpuWebhookPassedOver": [
        ("another webhook", counted(PASSED, 0, type="admit", name="x.example.com")),
        ("an hour ago", counted(PASSED, 0, END - 60 * MINUTE, type="admit", **POD_ENTRY)),
    ],
    "VgpuWebhookErrors": [
        ("bad bytes of a client", always(lambda metrics: metrics.refused_bytes("mutate", 400))),
        ("an error an hour ago", once(lambda metrics: metrics.refused_bytes("mutate", 500), END - 60 * MINUTE)),
        ("a restart", other_restarts),
    ],
    "VgpuWebhookSlow": [("one in ten takes 20 ms", reviews(20_000_000)), ("no reviews", always(nothing))],
    "VgpuWebhookCertificateExpires": [("in 30 days", always(lambda m: m.certificate(END + 30 * 86400)))],
    "VgpuWebhookConfigRefused": [
        ("it was read", once(lambda metrics: metrics.reloaded("policy", succeeded=True))),
        ("it was refused an hour ago", once(lambda m: m.reloaded("policy", succeeded=False), END - 60 * MINUTE)),
    ],
    "VgpuWebhookFleetUnknown": [
        ("some nodes", nodes(3)),
        ("for a moment after the start", scraped(lambda m, _: m.fleet(None), END - 2 * MINUTE)),
    ],
    "VgpuWebhookFleetStale": [("20 s", fleet_age(20)), ("nodes from a file have no age", always(nothing))],
    "VgpuWebhookAuditLost": [("none lost", always(nothing))],
    "VgpuWebhookDecisionsNotShipped": [("a pause between two attempts", ship_lag(35)), ("no store", always(nothing))],
}


def cases(table: dict[str, list[tuple[str, Scene]]]) -> list[Any]:
    return [pytest.param(name, scene, id=f"{name}: {what}") for name, each in table.items() for what, scene in each]


@pytest.mark.parametrize("name, scene", cases(FIRES))
def test_an_alert_fires_with_the_labels_that_its_texts_use(name: str, scene: Scene):
    recording = Recording()
    scene(recording)
    firing = recording.firing(RULES[name], END)
    assert firing
    texts = " ".join(RULES[name]["annotations"].values())
    for labels in firing:
        for label in ("pod", "name", "source", "endpoint"):
            assert f"$labels.{label}" not in texts or label in dict(labels)


@pytest.mark.parametrize("name, scene", cases(QUIET))
def test_an_alert_does_not_fire(name: str, scene: Scene):
    recording = Recording()
    scene(recording)
    assert recording.firing(RULES[name], END) == {}


def test_every_alert_has_a_case_that_fires_and_one_that_does_not():
    assert FIRES.keys() == QUIET.keys() == RULES.keys()


def test_a_healthy_webhook_fires_nothing():
    recording = Recording()

    def healthy(metrics: Metrics, _: float) -> None:
        metrics.certificate(END + 60 * 86400)
        metrics._gauges["fleet_nodes"] = {("vgpu",): 3}
        metrics.fleet_age = lambda: 10.0

    scraped(healthy)(recording)
    assert [name for name, rule in RULES.items() if recording.firing(rule, END)] == []
