"""Each alert with recorded metrics: when it fires, and when it does not, as Prometheus evaluates its rule.

`promtool test rules` does; .ci/run gets it with Debian's package prometheus.
"""

import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.test_monitoring import ALERTS
from tests.reviewing import request, snapshot
from webhook.review.endpoints import validate
from webhook.server.metrics import Metrics

REQUIRED = "VGPU_WEBHOOK_PROMTOOL"  # "required": the test fails without promtool
INTERVAL = 60  # seconds between two scrapes, and between two evaluations of a rule
RULES = {rule["alert"]: rule for rule in ALERTS}
EXPRESSIONS = " ".join(rule["expr"] for rule in ALERTS)
MINUTE = 60
END = 130 * MINUTE
POD = {"job": "vgpu-webhook", "pod": "vgpu-webhook-a"}
NODES = snapshot("rtx4090").fleet  # of vGPUs only
REQUEST = request({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}})
ADMITTED = validate(REQUEST, snapshot())
REJECTED = "apiserver_admission_webhook_rejection_count"
PASSED = "apiserver_admission_webhook_fail_open_count"


class Recording:
    """Scraped samples, by series."""

    def __init__(self) -> None:
        self._series: dict[str, dict[int, float]] = defaultdict(dict)

    def add(self, at: int, name: str, value: float, labels: Mapping[str, str]) -> None:
        text = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels))
        self._series[f"{name}{{{text}}}"][at] = value

    def scrape(self, at: int, metrics: Metrics) -> None:
        """Add the samples that alerts read, with the labels of the webhook's target."""
        for family in metrics.collect():
            for sample in family.samples:
                if sample.name in EXPRESSIONS:
                    self.add(at, sample.name, sample.value, POD | sample.labels)

    def input_series(self) -> list[dict[str, str]]:
        return [
            {"series": name, "values": " ".join(str(found.get(at, "_")) for at in every())}
            for name, found in self._series.items()
        ]


Scene = Callable[[Recording], None]


def every(begin: int = 0, end: int = END) -> Iterator[int]:
    yield from range(begin, end + 1, INTERVAL)


def scraped(change: Callable[[Metrics, int], None], begin: int = 0) -> Scene:
    """The metrics of the webhook, changed before each scrape."""

    def scene(recording: Recording) -> None:
        metrics = Metrics()
        for at in every(begin):
            change(metrics, at)
            recording.add(at, "up", 1, POD)
            recording.scrape(at, metrics)

    return scene


def once(act: Callable[[Metrics], None], when: int = END - 2 * MINUTE) -> Scene:
    """A change that happens once."""
    return scraped(lambda metrics, at: act(metrics) if at == when else None)


def always(act: Callable[[Metrics], None]) -> Scene:
    return scraped(lambda metrics, _: act(metrics))


def up(value: int, begin: int = 0, **labels: str) -> Scene:
    def scene(recording: Recording) -> None:
        for at in every(begin):
            recording.add(at, "up", value, POD | labels)

    return scene


def counted(metric: str, begin: int, end: int = END, /, **labels: str) -> Scene:
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
        for duration in (nanoseconds, *[100_000] * (share - 1)):
            metrics.reviewed("validate", REQUEST, ADMITTED, duration)

    return always(act)


def nothing(_: Any) -> None:
    pass


def fleet_age(seconds: float) -> Scene:
    return always(lambda metrics: metrics.fleet_age(seconds))


def not_ready(*reasons: str) -> Scene:
    return always(lambda metrics: metrics.ready(reasons))


def ship_lag(seconds: float) -> Scene:
    def scene(recording: Recording) -> None:
        for at in every():
            recording.add(at, "vgpu_webhook_ship_lag_seconds", seconds, POD)

    return scene


def assignment_findings(rule: str, count: int) -> Scene:
    def scene(recording: Recording) -> None:
        for at in every():
            recording.add(at, "vgpu_webhook_assignment_findings", count, POD | {"rule": rule})

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
    "VgpuWebhookNotReady": [
        ("it waits for a policy", not_ready("policy")),
        ("and for more", not_ready("policy", "device-config")),
    ],
    "VgpuWebhookConfigRefused": [
        ("the first one", once(lambda metrics: metrics.reloaded("policy", succeeded=False))),
    ],
    "VgpuWebhookFleetUnknown": [("no node", always(lambda metrics: metrics.fleet(None)))],
    "VgpuWebhookFleetStale": [("for 400 s", fleet_age(400))],
    "VgpuWebhookAssignmentLeft": [("one pod", assignment_findings("assignment-left-behind", 1))],
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
        ("no policy yet", always(lambda metrics: metrics.refused_bytes("mutate", 503))),
        ("an error an hour ago", once(lambda metrics: metrics.refused_bytes("mutate", 500), END - 60 * MINUTE)),
        ("a restart", other_restarts),
    ],
    "VgpuWebhookSlow": [("one in ten takes 20 ms", reviews(20_000_000)), ("no reviews", always(nothing))],
    "VgpuWebhookCertificateExpires": [("in 30 days", always(lambda m: m.certificate(END + 30 * 86400)))],
    "VgpuWebhookNotReady": [
        ("it is ready", not_ready()),
        ("it shuts down", not_ready("shutdown")),
        (
            "it became ready",
            scraped(lambda m, at: setattr(m, "obstacles", lambda: () if at > END - 10 * MINUTE else ["policy"])),
        ),
    ],
    "VgpuWebhookConfigRefused": [
        ("it was read", once(lambda metrics: metrics.reloaded("policy", succeeded=True))),
        ("it was refused an hour ago", once(lambda m: m.reloaded("policy", succeeded=False), END - 60 * MINUTE)),
    ],
    "VgpuWebhookFleetUnknown": [
        ("some nodes", always(lambda metrics: metrics.fleet(NODES))),
        ("for a moment after the start", scraped(lambda m, _: m.fleet(None), END - 2 * MINUTE)),
    ],
    "VgpuWebhookFleetStale": [("20 s", fleet_age(20)), ("nodes from a file have no age", always(nothing))],
    "VgpuWebhookAssignmentLeft": [
        ("it was deleted", assignment_findings("assignment-left-behind", 0)),
        ("another finding", assignment_findings("card-overcommitted", 1)),
    ],
    "VgpuWebhookAuditLost": [("none lost", always(nothing))],
    "VgpuWebhookDecisionsNotShipped": [("a pause between two attempts", ship_lag(35)), ("no store", always(nothing))],
}


def healthy(metrics: Metrics, _: float) -> None:
    metrics.certificate(END + 60 * 86400)
    metrics.fleet(NODES)
    metrics.fleet_age(10.0)


def case(alert: str, what: str, scene: Scene, *, fires: bool) -> dict[str, Any]:
    """Expect that an alert fires with all labels that its texts use, or not at all."""
    recording = Recording()
    scene(recording)
    texts = " ".join(RULES[alert]["annotations"].values()) if alert else ""
    used = (
        [label for label in ("pod", "name", "source", "endpoint", "reason", "rule") if f"$labels.{label}" in texts]
        if fires
        else []
    )
    named = [f'alertname="{alert}"'] if alert else []
    selector = ",".join(['alertstate="firing"', *named, *(f'{label}!=""' for label in used)])
    return {
        "name": f"{alert}: {what}",
        "interval": f"{INTERVAL}s",
        "input_series": recording.input_series(),
        "promql_expr_test": [
            {
                "expr": f"(count(ALERTS{{{selector}}}) or vector(0)) > bool 0",
                "eval_time": f"{END}s",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }
        ],
    }


def suites() -> Iterator[tuple[list[Any], list[dict[str, Any]]]]:
    """Rules with their cases: each rule by itself, since promtool evaluates all rules of a file in each case."""
    for alert, rule in RULES.items():
        scenes = [(True, *scene) for scene in FIRES[alert]] + [(False, *scene) for scene in QUIET[alert]]
        yield [rule], [case(alert, what, scene, fires=fires) for fires, what, scene in scenes]
    yield ALERTS, [case("", "a healthy webhook", scraped(healthy), fires=False)]


def test_every_alert_has_a_case_that_fires_and_one_that_does_not():
    assert FIRES.keys() == QUIET.keys() == RULES.keys()


def test_alerts_fire_as_recorded(tmp_path: Path):
    promtool = shutil.which("promtool")
    if promtool is None:
        assert os.environ.get(REQUIRED) != "required", f"promtool is not installed, but {REQUIRED}=required"
        pytest.skip("promtool is not installed: it is in Debian's package prometheus")
    files = []
    for number, (rules, tests) in enumerate(suites()):
        groups = {"groups": [{"name": "alerts", "rules": rules}]}
        suite = {"rule_files": [f"rules-{number}.json"], "evaluation_interval": f"{INTERVAL}s", "tests": tests}
        (tmp_path / f"rules-{number}.json").write_text(json.dumps(groups))
        files.append(tmp_path / f"tests-{number}.json")
        files[-1].write_text(json.dumps(suite))
    command = [promtool, "test", "rules", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
