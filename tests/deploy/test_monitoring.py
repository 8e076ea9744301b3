"""Alert rules and the dashboard use existing metrics and labels."""

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module

import pytest
import yaml

from tests.cases import each_case
from tests.deploy.chart import NAME
from tests.deploy.files import DEPLOY, ROOT, built, documents, one
from webhook.audit.shipper import METRICS as SHIP_METRICS
from webhook.cli.certs import service_hosts
from webhook.questions import QUESTIONS
from webhook.server.metrics import PREFIX, Metrics
from webhook.server.state import ServerState

MONITORING = DEPLOY / "components" / "monitoring"
FOUND = documents(MONITORING)
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
ALERTS = [rule for group in one(FOUND, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]]

CONSOLE_GAUGES = import_module("webhook.questions.usage.metrics").GAUGES if "usage" in QUESTIONS else {}
SCRAPED = {"job", "pod", "name", "error_type", "le"}  # labels of Prometheus, and of the API server's metrics
FOREIGN = {"up", "apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open_count"}


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in ALERTS)
    yield from (target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])


def exposed() -> set[str]:
    """The names of all samples."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", Metrics().exposition().decode(), re.MULTILINE):
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names | {PREFIX + name for name in (*CONSOLE_GAUGES, *SHIP_METRICS)}


@each_case("expression", sorted(set(expressions())))
def test_an_expression_uses_existing_metrics_and_labels(expression: str):
    bare = re.sub(r'"[^"]*"', "", expression)
    used = set(re.findall(r"\b(?:up|(?:vgpu_webhook|process|apiserver)_\w+)", bare))
    assert used
    unknown = used - exposed() - FOREIGN
    if unknown and not CONSOLE_GAUGES:
        return  # metrics of a question that is gone
    assert unknown == set()
    labels = {label for group in re.findall(r"by \(([^)]*)\)", bare) for label in re.split(r",\s*", group)}
    labels |= set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", "".join(re.findall(r"{([^}]*)}", bare))))
    known = SCRAPED.union(*(_labels(name) for name in used))
    assert labels <= known


def _labels(name: str) -> set[str]:
    from webhook.server import metrics

    for table in (metrics.COUNTERS, metrics.GAUGES, metrics.HISTOGRAMS, CONSOLE_GAUGES, SHIP_METRICS):
        for short, (_, labels) in table.items():
            if name.startswith(PREFIX + short):
                return set(labels)
    return set()


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_severity_a_description_and_a_runbook(rule: dict[str, dict[str, str]]):
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    assert f"\n### {rule['alert']}\n" in (ROOT / "docs" / "operations.md").read_text()
    assert rule["annotations"]["runbook_url"] == f"{source}/blob/main/docs/operations.md#{str(rule['alert']).lower()}"
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    kept = set(re.findall(r"by \((\w+)\)", str(rule["expr"]))) | ({"pod"} if "by (" not in str(rule["expr"]) else set())
    assert used <= kept


def test_the_alert_about_readiness_leaves_out_a_replica_that_shuts_down():
    state = ServerState(None)
    state.draining = True
    (rule,) = [rule for rule in ALERTS if rule["alert"] == "VgpuWebhookNotReady"]
    assert f'reason!~"|{"|".join(state.obstacles)}"' in rule["expr"]


def test_the_dashboard_can_be_loaded():
    assert (DASHBOARD["uid"], DASHBOARD["title"]) == ("vgpu-webhook", "vGPU webhook")
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    (source,) = DASHBOARD["templating"]["list"]
    assert {panel["datasource"]["uid"] for panel in panels} == {f"${{{source['name']}}}"}


def test_the_service_monitor_matches_the_service():
    monitor = one(FOUND, "ServiceMonitor")["spec"]
    service = yaml.safe_load((DEPLOY / "base" / "service.yaml").read_text())
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert [endpoint["port"]] == [port["name"] for port in service["spec"]["ports"]]
    assert (endpoint["scheme"], endpoint["path"]) == ("https", "/metrics")
    assert endpoint["tlsConfig"]["serverName"] in service_hosts("any-name", "any-namespace"), (
        "the certificate is valid for it with any name of the Service"
    )
    assert monitor["jobLabel"] == "app.kubernetes.io/name", "the job of the alerts and of the dashboard"
    assert endpoint["tlsConfig"]["ca"]["secret"] == {"name": "vgpu-webhook-tls", "key": "ca.crt"}


PROMETHEUS = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}}}


def test_prometheus_scrapes_the_sidecars_and_the_console_of_the_store():
    monitor = one(FOUND, "PodMonitor", "vgpu-webhook-store")["spec"]
    found = built(DEPLOY / "overlays" / "store-pods")
    replica, console = (
        one(found, "Deployment", name)["spec"]["template"] for name in ("vgpu-webhook", f"{NAME}-console")
    )
    scraped = [replica["spec"]["initContainers"][0], console["spec"]["containers"][0]]
    for template in (replica, console):
        assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    ports = [(port["name"], port["containerPort"]) for container in scraped for port in container["ports"]]
    assert [name for name, _ in ports] == [endpoint["port"] for endpoint in monitor["podMetricsEndpoints"]]
    for container, (_, port), policy in zip(scraped, ports, ("store", "console-metrics"), strict=True):
        assert f"--metrics-bind=[::]:{port}" in container["args"]
        ingress = one(found, "NetworkPolicy", f"{NAME}-{policy}")["spec"]["ingress"]
        assert ingress == [{"ports": [{"protocol": "TCP", "port": port}], "from": [PROMETHEUS]}]


def test_a_panel_shows_each_metric_of_an_alert():
    watched = {name for rule in ALERTS for name in re.findall(r"vgpu_webhook_\w+", rule["expr"])}
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    assert watched
    assert [name for name in sorted(watched) if name not in shown] == []
