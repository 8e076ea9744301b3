"""`vgpu-webhook usage`: its input and output."""

import json
import sys
from io import StringIO

import pytest
import yaml

from tests.cli.conftest import CONFIG
from tests.cli.held import FLEET, ITEMS, PODS, pod_with_slice
from tests.cli.rows import rows
from tests.cluster.apiserver import NODES, ApiServer

test_command = rows(__file__)

SETTINGS = ("--fleet", FLEET, "--device-config", CONFIG)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_what_a_terminal_would_obey_or_hide_is_escaped(run, write, output):
    name = "a\u202e\u200b\x7f\x1b[2J"
    pods = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [pod_with_slice(name, "gpu-b", 0, 9000)]})
    result = run("usage", *SETTINGS, "--pods", pods, "-o", output)
    assert all(line.isprintable() for line in result.out.splitlines())
    card = yaml.safe_load(result.out)["nodes"][1]["cards"][0]
    assert {*card} == {*["id", "type", "memory", "split", "cores", "pods", "reserved", "accounted", "assigned", "free"]}
    [holder] = card["pods"]
    assert {*holder} == {
        *["namespace", "name", "container", "memory", "cores", "part", "since", "terminating", "accounted"]
    }
    assert holder["name"] == name, "programs read what it is"


@pytest.fixture
def cluster(tmp_path):
    with ApiServer() as api:
        api.put(NODES, *ITEMS)
        api.put(PODS, *[pod_with_slice(f"p{i:04}", "gpu-b", i % 4, 10) for i in range(1100)])
        yield api, api.kubeconfig(tmp_path / "kubeconfig")


def test_a_cluster_is_read_in_pages(cluster, run):
    api, kubeconfig = cluster
    result = run("usage", "--kubeconfig", kubeconfig, "--device-config", CONFIG, "-o", "json")
    (usage_report,) = result.lines
    assert sum(item["assigned"]["slices"] for item in usage_report["totals"]) == 1100
    requests = api.requests_for(PODS)
    assert len(requests) == 3
    assert requests[0].query["fieldSelector"] == "spec.nodeName!=,status.phase!=Succeeded"


class Watched(StringIO):
    """Standard output: acts when the first report is printed, and presses Ctrl-C when one says something else."""

    def __init__(self, act):
        super().__init__()
        self.act, self.found = act, []

    def write(self, text):
        reported = json.loads(text)["totals"]
        self.found.append((sum(each["assigned"]["slices"] for each in reported), reported[0]["capacity"]["memory"]))
        if len(self.found) == 1:
            self.act()
        elif self.found[-1] != self.found[0]:
            raise KeyboardInterrupt
        return len(text)


@pytest.mark.parametrize("expected", [(1099, 1), (1100, 10)], ids=["a pod ends", "the unit is 10 MiB"])
def test_watch_prints_changes(cluster, run, monkeypatch, tmp_path, expected):
    (api, kubeconfig), (slices, factor) = cluster, expected
    config, text = tmp_path / "device-config.yaml", CONFIG.read_text()
    config.write_text(text)
    larger = text.replace("gpuMemoryFactor: 1\n", "gpuMemoryFactor: 10\n")
    out = Watched(lambda: api.delete(PODS, "p0000") if factor == 1 else config.write_text(larger))
    monkeypatch.setattr(sys, "stdout", out)
    result = run("usage", "--kubeconfig", kubeconfig, "--device-config", config, "--watch", "-o", "json")
    assert result.code == 130
    (_, memory), after = out.found[0], out.found[-1]
    assert (out.found[0][0], after) == (1100, (slices, factor * memory))
