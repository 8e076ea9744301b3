"""The metrics parse, count, and have a limited number of series for any pods."""

from typing import Any

import pytest

from tests.reviewing import DATA, RECORDED, snapshot
from tests.server.program import samples
from webhook.review.endpoints import mutate, validate
from webhook.server.metrics import Metrics
from webhook.snapshot import Snapshot
from webhook.wire import codec


def value(metrics: Metrics, name: str, **labels: Any) -> float:
    found = [each for each in samples(metrics.exposition().decode()) if each[:2] == (f"vgpu_webhook_{name}", labels)]
    return found[0][2] if found else 0.0


def record_reviews(metrics: Metrics, name: str, used: Snapshot | None = None, *, dry_run: bool = False) -> None:
    request = codec.decode((DATA / "reviews" / f"{name}.json").read_bytes())._replace(dry_run=dry_run)
    used = used or snapshot()
    metrics.reviewed("mutate", request, mutate(request, used), 200_000)
    metrics.reviewed("validate", request, validate(request, used), 2_000_000)


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
    record_reviews(metrics, "cores-over-100", snapshot(enforcement=enforcement))
    labels = {"operation": "CREATE", "dry_run": "false"}
    assert value(metrics, "requests_total", endpoint="validate", outcome="would-be-refused", **labels) == 1
    assert value(metrics, "requests_total", endpoint="mutate", outcome="would-be-repaired", **labels) == 1
    assert value(metrics, "findings_total", rule="cores-range", level="deny", enforcement=enforcement) == 1
    assert value(metrics, "mutations_total", rule="scheduler-name", enforcement=enforcement) == 1


def test_no_series_comes_from_a_pod():
    metrics = Metrics()
    for file in RECORDED:
        record_reviews(metrics, file.stem)
    shown = samples(metrics.exposition().decode())
    assert [value for name, _, value in shown if name == "vgpu_webhook_build_info"] == [1]
    names = {label for _, labels, _ in shown for label in labels}
    ours = "endpoint operation reason outcome dry_run rule level enforcement le generation state"
    assert names <= {*ours.split(), "version", "python", "implementation", "major", "minor", "patchlevel"}


def test_the_fleet_is_counted_by_family():
    metrics = Metrics()
    metrics.fleet(snapshot("mixed", fleet={"declared": [{"name": "new", "cards": [{"type": "A", "memory": 1}]}]}).fleet)
    sizes = [value(metrics, f"fleet_{name}", family="vgpu") for name in ("nodes", "shapes", "cards")]
    assert sizes == [4, 4, 18]
    assert value(metrics, "fleet_nodes", family="ascend") == 0
    metrics.fleet(None)
    assert value(metrics, "fleet_nodes", family="vgpu") == value(metrics, "fleet_cards", family="vgpu") == 0
