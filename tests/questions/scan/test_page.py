"""The page of existing workloads, and its JSON."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.clock import Clock
from tests.cluster.apiserver import ApiServer
from tests.console.conftest import Fixed, client_of, sample_parts, sample_sources
from tests.console.pages import get_json
from tests.console.rows import page_rows
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.console.state import Sources
from webhook.questions.scan.page import follow
from webhook.settings.sources import SAMPLE_PODS

test_page = page_rows(__file__)

HOSTILE = "<script>alert(1)</script>\u202e"


def console(*files: Path) -> Any:
    sources = sample_sources(Fixed(sample_parts()))
    work = follow(Sources(sources.settings, sources.reader, files))
    client = client_of(sources.settings, scan=work)
    client.clock = work.clock = Clock()
    return client


scan = partial(get_json, path="/scan", wait=30)


def test_the_lines_are_those_of_the_command_and_the_worst_comes_first(run: Any):
    lines = scan(console(SAMPLE_PODS))["lines"]
    command = run("scan", "--sample", "-o", "json", SAMPLE_PODS).out.splitlines()
    assert sorted(map(json.dumps, map(json.loads, command))) == sorted(map(json.dumps, lines))
    levels = [line["level"] for line in lines]
    assert levels == sorted(levels, key=["deny", "warn", "audit", None].index)
    assert {"deny", "warn", None} == set(levels)


def test_without_files_the_pods_of_the_cluster_are_reviewed(tmp_path: Path):
    pods = yaml.safe_load(SAMPLE_PODS.read_text())["items"]
    with ApiServer() as api:
        api.put("/api/v1/pods", *pods)
        credentials = Credentials(api.kubeconfig(tmp_path / "kubeconfig"))
        sources = Sources(Fixed(sample_parts()), connect=lambda: Client(credentials))
        assert scan(client_of(sources.settings, scan=follow(sources)))["pods"] == len(pods)


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path):
    found = scan(console(tmp_path / "missing.json"))
    assert found["lines"] == []
    assert "missing.json" in found["complaints"][0]


@pytest.mark.parametrize("key", ["name", "namespace"])
def test_names_are_escaped(tmp_path: Path, key: str):
    limits = {"volcano.sh/vgpu-number": "99"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b", key: HOSTILE}}
    pod["spec"] = {"containers": [{"name": HOSTILE, "resources": {"limits": limits}}]}
    (tmp_path / "pods.json").write_text(json.dumps(pod))
    page = console(tmp_path / "pods.json").get("/scan?wait=30").text
    assert "deny" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_a_refresh_finds_what_has_changed(tmp_path: Path):
    file = tmp_path / "pods.json"
    file.write_bytes(b"")
    client = console(file)
    assert scan(client)["pods"] == 0
    file.write_text(SAMPLE_PODS.read_text())
    assert scan(client, refresh="true")["pods"] == 0  # the last scan has only just ended
    client.clock.now += 11
    assert scan(client)["pods"] == 0
    assert scan(client, refresh="true")["pods"] > 0
