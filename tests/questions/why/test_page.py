"""The page and the operations about waiting pods, with the sample pods."""

import json
import re
from html import unescape
from itertools import count

import pytest
import yaml

from tests.cases import each_case
from tests.console.conftest import Fixed, followed, sample_parts, sample_sources
from webhook import names
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.errors import ClusterError
from webhook.questions.why.listing import NOT_EXAMINED
from webhook.settings.sources import SAMPLE_PODS

WAITING = "finetune-0"


@pytest.fixture
def state():
    settings = Fixed(sample_parts())
    return ConsoleState(settings, followed=followed(sample_sources(settings)))


def test_what_takes_too_long_is_not_examined(client, monkeypatch):
    minutes = count(step=60.0)
    monkeypatch.setattr("time.monotonic", lambda: next(minutes))
    (pod,) = client.get("/api/v1/waiting").get_json()["pods"]
    assert (pod["verdict"], pod["summary"]) == ("unknown", NOT_EXAMINED)


def manifest(**changes):
    items = yaml.safe_load(SAMPLE_PODS.read_text())["items"]
    found = next(item for item in items if item["metadata"]["name"] == WAITING)
    return json.dumps(found | changes)


def test_waiting_pods_are_listed(client):
    found = client.get("/api/v1/waiting").get_json()
    (pod,) = found.pop("pods")
    assert found == {"known": True, "problem": None, "more": 0}
    assert (pod["namespace"], pod["name"], pod["verdict"]) == ("team-c", WAITING, "not-now")
    assert (pod["ends"], pod["holder"]["name"], pod["change"]["most"]) == ("team-b/train-1", "train-0", 3)
    page = client.get("/why").get_data(as_text=True)
    assert "1 waiting pod</h2>" in page
    assert "once team-b/train-1 has ended it fits on gpu-b; with volcano.sh/vgpu-number 3 or less" in page


def test_the_operation_has_the_verdict_its_reasons_and_the_group(client):
    found = client.post("/api/v1/why", json={"namespace": "team-c", "pod": WAITING}).get_json()
    [result] = found["answers"]
    assert result["verdict"] == "not-now"
    reason = next(reason for reason in result["reasons"] if reason["node"] == "gpu-b")
    assert (reason["ends"], reason["holders"][0]["name"]) == ("team-b/train-1", "train-0")
    assert result["change"]["most"] == 3
    assert result["group"]["phase"] == "Inqueue"


@pytest.mark.parametrize("address", ["/why?pod=team-c/finetune-0", "/why?namespace=team-c&pod=finetune-0"])
def test_the_page_of_a_pod_explains_why_it_waits(client, run, address):
    page = client.get(address).get_data(as_text=True)
    assert "Does not fit now" in page
    assert "team-b/train-1" in page
    assert page.count('class="drawing"') == 4
    hints = re.findall(r"→ (.*?)\.</p>", unescape(page))
    assert hints == re.findall(r"→ (.*)", run("why", "--sample", "-n", "team-c", WAITING).out)
    assert 'href="/why?namespace=team-c&amp;pod=finetune-0#result" aria-current="true"' in page


def test_a_pod_with_a_status_and_a_new_manifest_can_be_explained(client):
    page = client.post("/why", data={"manifest": manifest()}).get_data(as_text=True)
    assert "Does not fit now" in page
    assert "podgroup-finetune-0" in page
    refused = manifest(status={})
    refused = refused.replace('"volcano.sh/vgpu-number": "4"', '"volcano.sh/vgpu-number": "99"')
    assert "Never fits this fleet" in client.post("/why", data={"manifest": refused}).get_data(as_text=True)


@each_case(
    ("data", "status", "message"),
    [
        ({"manifest": "a: ["}, 422, "the manifest"),
        ({"manifest": "kind: Pod\nmetadata: {name: x}"}, 400, "apiVersion"),
        ({"manifest": "x" * (300 << 10)}, 413, "larger than 256 KiB"),
        (
            {"manifest": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c}]}"},
            422,
            "no devices",
        ),
    ],
)
def test_an_invalid_manifest_is_refused_with_the_reason(client, data, status, message):
    response = client.post("/why", data=data)
    assert (response.status_code, message in response.get_data(as_text=True)) == (status, True)


def test_a_missing_pod_is_reported(client):
    response = client.get("/why?pod=team-c/gone")
    assert (response.status_code, "there is no pod gone" in response.get_data(as_text=True)) == (422, True)
    both = client.post("/api/v1/why", json={"pod": "a", "manifest": "b"})
    assert both.status_code == 422


def test_hostile_names_are_escaped(client):
    raw = json.loads(manifest())
    raw["metadata"]["name"] = "<script>alert(1)</script>"
    raw["metadata"]["annotations"] = {names.GROUP_NAME: "<b>"}
    raw["status"]["conditions"][0]["message"] = "<img src=x onerror=alert(1)>\u202e"
    page = client.post("/why", data={"manifest": json.dumps(raw)}).get_data(as_text=True)
    assert "<script>alert" not in page
    assert "<img src=x" not in page


class Unreadable:
    """A cluster whose pods the console may not list."""

    def waiting(self, _wanted=None):
        raise ClusterError("https://api/api/v1/pods: 403 forbidden", 403)

    read = waiting


@pytest.mark.parametrize(("source", "message"), [(None, "reads no pods"), (Unreadable(), "403 forbidden")])
def test_without_pods_the_page_shows_the_reason(state, source, message):
    other = create_app(ConsoleState(state.settings, followed={"why": source})).test_client()
    assert message in other.get("/why").get_data(as_text=True)
    assert other.get("/api/v1/waiting").get_json()["known"] is False
    assert message in other.get("/why?pod=a/b").get_data(as_text=True)
