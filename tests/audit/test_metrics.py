"""The metrics parse, count, and have a limited number of series for any pods."""

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.reviewing import DATA, RECORDED
from webhook.policy.policy import default_policy, parse_policy
from webhook.review.endpoints import mutate, validate
from webhook.server.metrics import Metrics
from webhook.settings.snapshot import SnapshotInputs, default_device_config, read_nodes
from webhook.settings.table import FLEET
from webhook.snapshot import Snapshot
from webhook.wire import codec

SNAPSHOT = SnapshotInputs(default_device_config(), default_policy(), None).snapshot()


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name.removeprefix("vgpu_webhook_"), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: Any) -> float:
    return samples(metrics).get((name, tuple(sorted(labels.items()))), 0.0)


def record_reviews(metrics: Metrics, name: str, snapshot: Snapshot = SNAPSHOT, *, dry_run: bool = False) -> None:
    request = codec.decode((DATA / "reviews" / f"{name}.json").read_bytes())
    request = request._replace(dry_run=dry_run)
    metrics.reviewed("mutate", request, mutate(request, snapshot), 200_000)
    metrics.reviewed("validate", request, validate(request, snapshot), 2_000_000)


def test_reviews_are_counted():
    metrics = Metrics()
    for _ in range(3):
        record_reviews(metrics, "cores-over-100")
    labels = {"operation": "CREATE", "dry_run": "false"}
    assert value(metrics, "requests_total", endpoint="validate", outcome="refused", **labels) == 3
    assert value(metrics, "requests_total", endpoint="mutate", outcome="repaired", **labels) == 3
    assert value(metrics, "findings_total", rule="cores-range", level="deny", enforcement="enforce") == 3
    assert value(metrics, "mutations_total", rule="scheduler-name", enforcement="enforce") == 3
    assert value(metrics, "review_seconds_sum", endpoint="validate") == pytest.approx(0.006)
    assert value(metrics, "review_seconds_bucket", endpoint="mutate", le="0.00025") == 3
    assert value(metrics, "review_seconds_bucket", endpoint="mutate", le="0.0001") == 0
    record_reviews(metrics, "gpu-pod1.delete", dry_run=True)
    labels = {"operation": "DELETE", "outcome": "not-reviewed", "dry_run": "true"}
    assert value(metrics, "requests_total", endpoint="mutate", **labels) == 1


@pytest.mark.parametrize("enforcement", ["warn", "audit"])
def test_decisions_that_are_not_enforced_are_counted_separately(enforcement: str):
    metrics = Metrics()
    policy = parse_policy({"enforcement": enforcement}, "the test's policy")
    record_reviews(metrics, "cores-over-100", SnapshotInputs(default_device_config(), policy, None).snapshot())
    labels = {"operation": "CREATE", "dry_run": "false"}
    assert value(metrics, "requests_total", endpoint="validate", outcome="would-be-refused", **labels) == 1
    assert value(metrics, "requests_total", endpoint="mutate", outcome="would-be-repaired", **labels) == 1
    assert value(metrics, "findings_total", rule="cores-range", level="deny", enforcement=enforcement) == 1
    assert value(metrics, "mutations_total", rule="scheduler-name", enforcement=enforcement) == 1


def test_no_series_comes_from_a_pod():
    metrics = Metrics()
    for file in RECORDED:
        record_reviews(metrics, file.stem)
    names = {label for _, labels in samples(metrics) for label, _ in labels}
    ours = "endpoint operation reason outcome dry_run rule level enforcement le generation state"
    assert names <= {*ours.split(), "version", "python", "implementation", "major", "minor", "patchlevel"}


def test_other_events_are_counted():
    metrics = Metrics()
    metrics.refused_bytes("mutate", 413)
    metrics.reloaded("settings", succeeded=False)
    metrics.reloaded("settings", succeeded=True)
    metrics.audit_failed()
    metrics.certificate(1_800_000_000.0)
    assert value(metrics, "bad_requests_total", endpoint="mutate", code="413") == 1
    assert value(metrics, "config_reloads_total", source="settings", result="failure") == 1
    assert value(metrics, "config_reloads_total", source="settings", result="success") == 1
    assert value(metrics, "audit_write_failures_total") == 1
    assert value(metrics, "certificate_expiry_timestamp_seconds") == 1_800_000_000.0


def test_the_fleet_is_counted_by_family():
    metrics = Metrics()
    config = default_device_config()
    nodes = read_nodes(FLEET.load(DATA / "fleets" / "mixed.yaml"), config)
    metrics.fleet(SnapshotInputs(config, default_policy(), nodes).snapshot().fleet)
    sizes = [value(metrics, f"fleet_{name}", family="vgpu") for name in ("nodes", "shapes", "cards")]
    assert sizes == [4, 4, 18]
    assert value(metrics, "fleet_nodes", family="ascend") == 0
    metrics.fleet(None)
    assert value(metrics, "fleet_nodes", family="vgpu") == value(metrics, "fleet_cards", family="vgpu") == 0
