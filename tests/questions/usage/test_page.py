"""The usage of cards by pods: the operation, the page, and their updates."""

import re
from collections.abc import Sequence
from functools import partial
from html import unescape
from itertools import count
from threading import TIMEOUT_MAX
from typing import Any

import pytest

from tests.console.conftest import Fixed, client_of, sample_parts, sample_sources
from tests.console.pages import Page, get_json
from tests.console.rows import page_rows
from tests.questions import needs
from tests.server.program import until
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader
from webhook.live.reader import FileReader, Reports
from webhook.questions.usage.watcher import UsageWatcher

test_page = page_rows(__file__)

HOSTILE = '"><script>alert(1)</script>{{7*7}}\u202e'


class Pods(FileReader):
    """Reads pods that a test can replace."""

    version: int | None = None
    problem: str | None = None

    def __init__(self, settings: Fixed, found: Sequence[BoundPod] | None, problem: str | None = None) -> None:
        super().__init__((), lambda: settings.current, dict, Reports(print))
        self.found, self.problem, self.version = found, problem, None if found is None else 0

    def pods(self) -> Sequence[BoundPod]:
        assert self.found is not None
        return self.found

    def replace(self, found: Sequence[BoundPod]) -> None:
        self.found, self.version = found, (self.version or 0) + 1


@pytest.fixture
def settings() -> Fixed:
    return Fixed(sample_parts())


@pytest.fixture
def pods(settings: Fixed) -> Pods:
    return Pods(settings, sample_sources(settings).reader.pods())


@pytest.fixture
def client(settings: Fixed, pods: Pods) -> Any:
    hours = count()
    watcher = UsageWatcher(pods, lambda: 3600.0 * next(hours))
    watcher.current(TIMEOUT_MAX)  # a page waits for the first result for some seconds only
    return client_of(settings, usage=watcher)


usage = partial(get_json, path="/usage")


def page(client: Any, **query: object) -> str:
    response = client.get("/usage", query_string=query, follow_redirects=True)
    assert response.status_code == 200, response.text
    return unescape(response.text)


def test_pods_and_totals_match_the_bound_pods(client: Any, pods: Pods):
    found = usage(client)
    held = [holder for node in found["nodes"] for card in node["cards"] for holder in card["pods"]]
    assert {(each["namespace"], each["name"]) for each in held} <= {(pod.namespace, pod.name) for pod in pods.pods()}
    assert found["pods"] == len({(each["namespace"], each["name"]) for each in held})
    for total in found["totals"]:
        nodes = [node for node in found["nodes"] if node["family"] == total["family"]]
        cards = [card for node in nodes for card in node["cards"]]
        assert (total["nodes"], total["devices"]) == (len(nodes), len(cards))
        assert total["assigned"]["memory"] == sum(card["assigned"]["memory"] for card in cards)
        assert total["assigned"]["memory"] == sum(holder["memory"] for card in cards for holder in card["pods"])
    shown = page(client)
    for each in held:
        assert f"{each['namespace']}/{each['name']}" in shown


def test_the_page_counts_as_the_command_does(client: Any, run: Any):
    (told,) = run("usage", "--sample", "-o", "json").lines
    by_family = {total["family"]: total for total in told["totals"]}
    for total in usage(client)["totals"]:
        same = by_family[total["family"]]
        assert same | total == same
    shown = Page(client.get("/usage").text).text
    for total in told["totals"]:
        for big in total["largest"]:
            amount = f"{big['number']} × {big['memory'] or big['cores']:,}"
            assert re.search(rf"{amount} \S+( memory)? on {big['node']}", shown)
        assert all(f"{number} × {model}" in shown for model, number in total["idle"].items())
    for node in told["nodes"]:
        slices = [sum(card["accounted"]["slices"] for card in node["cards"])]
        slices.append(sum(card["split"] or 1 for card in node["cards"]))
        assert re.search(rf"{node['name']}(?s:.*?)\b{slices[0]}/{slices[1]} ", shown), node["name"]
    (total,) = [one for one in told["totals"] if one["accounted"] != one["assigned"]]
    assert f"live pods hold {total['assigned']['slices']} slices, {total['assigned']['memory']} MiB" in shown


@needs("why")
@needs("decisions")
def test_a_pod_links_to_why_it_waits_and_to_its_decisions(client: Any):
    shown = Page(client.get("/usage").text)
    for name in ("team-b/train-1", "team-c/unassigned"):  # one holds a card, and the other is a finding
        namespace, pod = name.split("/")
        assert f"/why?namespace={namespace}&pod={pod}#result" in shown.links("/why")
        assert f"/decisions?namespace={namespace}&name={pod}" in shown.links("/decisions?")


def test_links_keep_the_filters_and_start_at_the_first_node(client: Any):
    shown = page(client, sort="fullest", limit=2, offset=2, name="*")
    links = [link for link in re.findall(r'href="(/usage\?[^"]+)"', shown) if "namespace=" in link]
    assert links
    assert all("sort=fullest" in link and "offset" not in link for link in links)
    (following,) = re.findall(r'rel="next" href="([^"]+)"', shown)
    assert "offset=4" in following


def test_a_change_is_found_in_the_background(client: Any, pods: Pods):
    before = usage(client)
    pods.replace([pod for pod in pods.pods() if pod.namespace != "team-a"])
    after = until(lambda: (found := usage(client))["version"] != before["version"] and found)
    assert after["pods"] < before["pods"]
    assert "team-a" not in page(client)


def test_names_of_pods_are_escaped(client: Any, pods: Pods, settings: Fixed):
    held = next(pod for pod in pods.pods() if pod.node == "gpu-b")
    metadata = {"namespace": HOSTILE, "name": HOSTILE, "annotations": dict(held.annotations)}
    raw = {"metadata": metadata, "spec": {"nodeName": "gpu-b"}}
    pods.replace([BoundPodReader(settings.snapshot.config).read(raw)])
    response = until(lambda: "alert(1)" in (found := client.get("/usage").text) and found)
    assert "<script>alert" not in response
    assert "\u202e" not in response


def test_without_permission_to_list_pods_the_page_shows_the_empty_nodes_and_the_problem(settings: Fixed):
    denied = Pods(settings, None, "the pods may not be listed; grant it")
    client = client_of(settings, usage=UsageWatcher(denied))
    shown = page(client, name="gpu-*", namespace="team-a")
    assert "What pods hold is not known." in shown
    assert "grant it" in shown
    assert "volcano.sh/vgpu-number</code> 80" in shown
    assert usage(client) | {"known": False, "problem": denied.problem} == usage(client)
