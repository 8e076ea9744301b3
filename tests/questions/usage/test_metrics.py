"""The metrics of the console: the usage of devices, in a limited number of time series."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.console.conftest import Fixed, sample_parts, sample_state
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.devices.usage import report
from webhook.questions.usage import metrics
from webhook.server.metrics import PREFIX


@pytest.fixture
def state():
    return sample_state()


def samples(client):
    response = client.get("/metrics")
    assert response.status_code == 200
    found = {}
    for family in text_string_to_metric_families(response.get_data(as_text=True)):
        for sample in family.samples:
            found[sample.name.removeprefix(PREFIX), *sorted(sample.labels.items())] = sample.value
    return found


def test_the_metrics_match_the_usage(client, state):
    found = samples(client)
    live = state.followed["usage"].live()
    usage = report(live.occupancy, live.snapshot.families)
    for total in usage.totals:
        assert found["devices_accounted_memory_mib", ("family", total.family)] == total.accounted.memory
        assert found["devices_assigned_slices", ("family", total.family)] == total.assigned.slices
        assert found["devices_capacity_cores", ("family", total.family)] == total.capacity.cores
    for node in usage.nodes:
        for card in node.cards:
            labels = (("card", card.id), ("family", node.family), ("node", node.name))
            assert found["card_accounted_memory_mib", *labels] == card.accounted.memory
    assert found["cards_left_out",] == 0
    assert sum(value for key, value in found.items() if key[0] == "assignment_findings") == len(usage.findings)
    held = {key: value for key, value in found.items() if key[0] == "namespace_assigned_memory_mib"}
    assert sum(held.values()) == sum(total.assigned.memory for total in usage.totals)


def test_the_number_of_series_is_limited(client, monkeypatch):
    everything = samples(client)
    monkeypatch.setattr(metrics, "MAX_CARDS", 9)
    monkeypatch.setattr(metrics, "MAX_NAMESPACES", 1)
    metrics._exposition.cache_clear()
    found = samples(client)
    cards = [key for key in found if key[0] == "card_accounted_memory_mib"]
    assert len(cards) == 9
    assert found["cards_left_out",] == len([key for key in everything if key[0] == "card_accounted_memory_mib"]) - 9
    held = {key: value for key, value in found.items() if key[0] == "namespace_assigned_memory_mib"}
    assert {dict(key[1:])["namespace"] for key in held} - {metrics.OTHERS} != set()
    assert len({dict(key[1:])["namespace"] for key in held}) == 2
    before = {key: value for key, value in everything.items() if key[0] == "namespace_assigned_memory_mib"}
    assert sum(held.values()) == sum(before.values())


def test_without_pods_there_are_no_metrics():
    response = create_app(ConsoleState(Fixed(sample_parts()))).test_client().get("/metrics")
    assert response.status_code >= 400
    assert "the console reads no pods" in response.get_data(as_text=True)
