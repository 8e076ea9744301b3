"""The metrics of the console: the usage of devices, in a limited number of time series."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.console.conftest import client_of, sample_state
from webhook.devices.usage import report
from webhook.questions.usage.metrics import OTHERS, UsageMetrics
from webhook.server.metrics import PREFIX

CARD, HELD = "card_accounted_memory_mib", "namespace_assigned_memory_mib"


@pytest.fixture
def state():
    return sample_state()


@pytest.fixture
def usage(state):
    live = state.followed["usage"].live()
    return report(live.occupancy, live.snapshot.families)


def samples(families):
    """The values of metrics, by name and labels."""
    return {
        (sample.name.removeprefix(PREFIX), *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of(name, found):
    return {key: value for key, value in found.items() if key[0] == name}


def test_the_metrics_match_the_usage(client, usage):
    found = samples(text_string_to_metric_families(client.get("/metrics").text))
    assert found == samples(UsageMetrics(usage).collect())
    for total in usage.totals:
        assert found["devices_accounted_memory_mib", ("family", total.family)] == total.accounted.memory
        assert found["devices_assigned_slices", ("family", total.family)] == total.assigned.slices
        assert found["devices_capacity_cores", ("family", total.family)] == total.capacity.cores
    for node in usage.nodes:
        for card in node.cards:
            labels = (("card", card.id), ("family", node.family), ("node", node.name))
            assert found[CARD, *labels] == card.accounted.memory
    assert found["cards_left_out",] == 0
    assert sum(of("assignment_findings", found).values()) == len(usage.findings)
    assert sum(of(HELD, found).values()) == sum(total.assigned.memory for total in usage.totals)


def test_the_number_of_series_is_limited(usage):
    every, few = (samples(UsageMetrics(usage, **most).collect()) for most in ({}, {"cards": 9, "namespaces": 1}))
    assert len(of(CARD, few)) == 9
    assert few["cards_left_out",] == len(of(CARD, every)) - 9
    shown = {dict(key[1:])["namespace"] for key in of(HELD, few)}
    assert (len(shown), OTHERS in shown) == (2, True)
    assert sum(of(HELD, few).values()) == sum(of(HELD, every).values())


def test_without_pods_there_are_no_metrics():
    response = client_of().get("/metrics")
    assert response.status_code >= 400
    assert "the console reads no pods" in response.text
