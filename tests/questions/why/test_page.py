"""The page and the operations about waiting pods, with the sample pods."""

import json
import re
from html import unescape
from itertools import count
from math import inf

import pytest
import yaml

from tests.console.conftest import client_of, sample_state
from tests.console.rows import page_rows
from webhook import names
from webhook.errors import ClusterError
from webhook.questions.why import page as why_page
from webhook.questions.why.listing import NOT_EXAMINED
from webhook.settings.sources import SAMPLE_PODS

test_page = page_rows(__file__)

WAITING = "finetune-0"


@pytest.fixture
def state():
    return sample_state()


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch):
    """A list may take as long as a busy machine needs."""
    monkeypatch.setattr(why_page, "LIST_SECONDS", inf)


def test_what_takes_too_long_is_not_examined(client, monkeypatch):
    minutes = count(step=60.0)
    monkeypatch.setattr("time.monotonic", lambda: next(minutes))
    monkeypatch.setattr(why_page, "LIST_SECONDS", 5.0)
    (pod,) = client.get("/api/v1/waiting").get_json()["pods"]
    assert (pod["verdict"], pod["summary"]) == ("unknown", NOT_EXAMINED)


def manifest(**changes):
    items = yaml.safe_load(SAMPLE_PODS.read_text())["items"]
    found = next(item for item in items if item["metadata"]["name"] == WAITING)
    return json.dumps(found | changes)


@pytest.mark.parametrize("address", ["/why?pod=team-c/finetune-0", "/why?namespace=team-c&pod=finetune-0"])
def test_the_page_of_a_pod_explains_why_it_waits(client, run, address):
    page = client.get(address).get_data(as_text=True)
    assert page.count('class="drawing"') == 4
    hints = re.findall(r"→ (.*?)\.</p>", unescape(page))
    assert hints == re.findall(r"→ (.*)", run("why", "--sample", "-n", "team-c", WAITING).out)


def test_a_pod_with_a_status_and_a_new_manifest_can_be_explained(client):
    page = client.post("/why", data={"manifest": manifest()}).get_data(as_text=True)
    assert "Does not fit now" in page
    assert "podgroup-finetune-0" in page
    refused = manifest(status={}).replace('"volcano.sh/vgpu-number": "4"', '"volcano.sh/vgpu-number": "99"')
    assert "Never fits this fleet" in client.post("/why", data={"manifest": refused}).get_data(as_text=True)


def test_hostile_names_are_escaped(client):
    raw = json.loads(manifest())
    raw["metadata"] |= {"name": "<script>alert(1)</script>", "annotations": {names.GROUP_NAME: "<b>"}}
    raw["status"]["conditions"][0]["message"] = "<img src=x onerror=alert(1)>\u202e"
    page = client.post("/why", data={"manifest": json.dumps(raw)}).get_data(as_text=True)
    assert "<script>alert" not in page
    assert "<img src=x" not in page


class Unreadable:
    def waiting(self, _wanted=None):
        raise ClusterError("https://api/api/v1/pods: 403 forbidden", 403)

    read = waiting


def test_pods_that_may_not_be_listed_are_reported(state):
    other = client_of(state.settings, why=Unreadable())
    assert other.get("/api/v1/waiting").get_json()["known"] is False
    assert all("403 forbidden" in other.get(path).text for path in ("/why", "/why?pod=a/b"))


def test_a_manifest_that_is_too_large_is_refused(client):
    response = client.post("/why", data={"manifest": "x" * (300 << 10)})
    assert (response.status_code, "larger than 256 KiB" in response.text) == (413, True)
