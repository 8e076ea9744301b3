"""`vgpu-webhook usage`: its input and output."""

import json
import sys
from io import StringIO

import pytest
import yaml

from tests.cli.conftest import CONFIG
from tests.cli.held import FLEET, ITEMS, PODS, card, pod_with_slice
from tests.cluster.apiserver import NODES, ApiServer
from tests.cluster.faults import status

SETTINGS = ("--fleet", FLEET, "--device-config", CONFIG)


@pytest.fixture
def pods(write):
    return write(
        "pods.json",
        {
            "apiVersion": "v1",
            "kind": "List",
            "items": [pod_with_slice("a", "gpu-b", 0, 30000), pod_with_slice("b", "gpu-b", 0, 9000, "other")],
        },
    )


def test_a_card_that_a_rule_reserves_is_marked(run, write):
    held = pod_with_slice("a", "gpu-b", 1, 30000)
    held["metadata"]["labels"] = {"app": "train", "owner": "anna"}
    pods = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [held]})
    rules = {"deviceshare.GPUExclusiveRules": [{"app": "train"}]}
    conf = write("conf.yaml", {"tiers": [{"plugins": [{"name": "deviceshare", "arguments": rules}]}]})
    options = ("usage", *SETTINGS, "--pods", pods, "--by", "card", "--node", "gpu-b")
    rows = [line.split() for line in run(*options, "--scheduler-conf", conf).out.splitlines()]
    assert rows[0][-2:] == ["PODS", "RESERVED"]
    assert [row[-2:] for row in rows[1:5]].count(["team/a", "app=train"]) == 1
    assert "RESERVED" not in run(*options).out


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_what_a_terminal_would_obey_or_hide_is_escaped(run, write, output):
    name = "a\u202e\u200b\x7f\x1b[2J"
    pods = write("pods.json", {"apiVersion": "v1", "kind": "List", "items": [pod_with_slice(name, "gpu-b", 0, 9000)]})
    result = run("usage", *SETTINGS, "--pods", pods, "-o", output)
    assert all(line.isprintable() for line in result.out.splitlines())
    [holder] = yaml.safe_load(result.out)["nodes"][1]["cards"][0]["pods"]
    assert holder["name"] == name, "programs read what it is"


def test_json_of_files(run, pods):
    result = run("usage", *SETTINGS, "--pods", pods, "-o", "json")
    assert (result.code, result.err) == (0, "")
    [usage_report] = result.lines
    node = next(node for node in usage_report["nodes"] if node["name"] == "gpu-b")
    first = node["cards"][0]
    amounts = {"accounted", "assigned", "free"}
    assert first.keys() == {"id", "type", "memory", "split", "cores", "pods", "reserved"} | amounts
    assert first["pods"][0].keys() == {
        *("namespace", "name", "container", "memory", "cores", "part", "since", "terminating", "accounted")
    }
    assert first["accounted"] == first["assigned"] == {"slices": 2, "memory": 39000, "cores": 40}
    assert [(item["namespace"], item["name"], item["memory"], item["cores"]) for item in first["pods"]] == [
        ("team", "a", 30000, 20),
        ("other", "b", 9000, 20),
    ]
    assert usage_report["findings"] == []
    assert yaml.safe_load(run("usage", *SETTINGS, "--pods", pods, "-o", "yaml").out) == usage_report


@pytest.mark.parametrize(
    ("options", "row"),
    [
        (
            ("--by", "node"),
            ["gpu-b", "vgpu", "4", "NVIDIA", "A100-SXM4-80GB", "2/40", "39000/327680", "12%", "40/400", "81920"],
        ),
        (
            ("--by", "card", "-n", "other"),
            ["gpu-b", card("gpu-b", 0), "2/10", "39000/81920", "48%", "40/100", "42920", "other/b"],
        ),
        (("--by", "namespace"), ["team", "vgpu", "1", "1", "30000", "20"]),
        (("--by", "pod", "--node", "gpu-b"), ["other", "b", "main", "gpu-b", card("gpu-b", 0), "9000", "20"]),
    ],
)
def test_tables(run, pods, options, row):
    result = run("usage", *SETTINGS, "--pods", pods, *options)
    assert result.code == 0
    assert row in [line.split() for line in result.out.splitlines()]
    assert "largest pod that fits now: 1 × 81920 MiB on gpu-b" in result.out


def test_findings_are_below_the_table(run, write):
    misplaced = pod_with_slice("stray", "gpu-b", 0, 100)
    misplaced["spec"]["nodeName"] = "gpu-c"
    result = run("usage", *SETTINGS, "--pods", write("pods.json", misplaced))
    assert "assigned-card-missing  gpu-c: team/stray: the pod holds card" in result.out


def test_the_samples(run):
    result = run("usage", "--sample", "--size", "50000")
    assert result.code == 0
    assert "live pods hold 8 slices" in result.out
    assert "free on cards that cannot give a slice of this size" in result.out


def test_a_cluster_without_pods(run, write):
    result = run("usage", *SETTINGS, "--pods", write("pods.json", {"apiVersion": "v1", "kind": "List", "items": []}))
    assert (result.code, "largest pod that fits now" in result.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fleet", FLEET), "name the pods with --pods FILE"),
        (("--sample", "--watch"), "--watch follows a cluster"),
        (("--sample", "-A", "-n", "x"), "exclude each other"),
        (("--sample", "--node", "nope"), "node nope has no devices"),
        (("--sample", "--pods", FLEET), "there is no pod in it"),
        (("--sample", "--by", "card", "--pods", "https://example.com/pods"), "URLs are not read"),
    ],
)
def test_bad_usage(run, arguments, message):
    result = run("usage", *arguments)
    assert result.code == 2
    assert message in result.err


# --- a cluster ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (401, "log in anew, or name another kubeconfig with --kubeconfig FILE"),
        (403, "ask an administrator for this right"),
    ],
)
@pytest.mark.parametrize("path", [PODS, NODES, ".*/configmaps"])
def test_a_user_whom_the_api_server_refuses_is_told_what_to_do(cluster, run, path, code, remedy):
    api, kubeconfig = cluster
    api.fail(path, status(code, message="cannot list it"))
    result = run("usage", "--kubeconfig", kubeconfig)
    assert result.code == 2
    assert f"{path.removeprefix('.*')}: {code} cannot list it; {remedy}" in result.err


class Watched(StringIO):
    """Standard output: acts when the first report is printed, and presses Ctrl-C when one says something else."""

    def __init__(self, act):
        super().__init__()
        self.act = act
        self.found = []

    def write(self, text):
        reported = json.loads(text)["totals"]
        self.found.append((sum(each["assigned"]["slices"] for each in reported), reported[0]["capacity"]["memory"]))
        if len(self.found) == 1:
            self.act()
        elif self.found[-1] != self.found[0]:
            raise KeyboardInterrupt
        return len(text)


@pytest.mark.parametrize("what", ["a pod is deleted", "the device config counts in 10 MiB"])
def test_watch_prints_changes(cluster, run, monkeypatch, tmp_path, what):
    api, kubeconfig = cluster
    config = tmp_path / "device-config.yaml"
    config.write_text(CONFIG.read_text())

    def act():
        if what == "a pod is deleted":
            api.delete(PODS, "p0000")
        else:
            config.write_text(CONFIG.read_text().replace("gpuMemoryFactor: 1\n", "gpuMemoryFactor: 10\n"))

    out = Watched(act)
    monkeypatch.setattr(sys, "stdout", out)
    result = run("usage", "--kubeconfig", kubeconfig, "--device-config", config, "--watch", "-o", "json")
    assert result.code == 130
    (slices, memory), (slices_after, memory_after) = out.found[0], out.found[-1]
    expected = (1099, memory) if what == "a pod is deleted" else (1100, 10 * memory)
    assert (slices, (slices_after, memory_after)) == (1100, expected)
