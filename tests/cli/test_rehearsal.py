"""`vgpu-webhook replay --target`: which decisions, nodes and waiting pods another release changes."""

from dataclasses import astuple

import pytest

from tests.cli.conftest import CONFIG, pod, vgpus
from tests.kube.apiserver import NODES, ApiServer
from tests.strategies import node_json, register
from webhook import names
from webhook.cli import replay
from webhook.settings.files import SAMPLES
from webhook.settings.table import PODS
from webhook.why.waiting import ALL_PODGROUPS

LOG = SAMPLES / "audit.jsonl"
SMALL, LARGE = ("NVIDIA-Tesla T4", 15360), ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
HANDSHAKE, CORES = names.NODE_VGPU_HANDSHAKE, names.VGPU_CORES


def node(name, card, *, handshake=True, offers=None):
    """A node with one card, and the handshake of its device plugin."""
    made = node_json(name, register([card]), offers=offers or {})
    if not handshake:
        del made["metadata"]["annotations"][HANDSHAKE]
    return made


FLEET = [
    node("plain", SMALL),
    node("unheard", LARGE, handshake=False),
    node("nameless", SMALL, offers={CORES: None}),
]
WAITING = [
    pod(name, limits=vgpus(1, memory, 0), metadata={"namespace": "team", "uid": name})
    | {"status": {"phase": "Pending"}}
    for name, memory in (("large", 40000), ("small", 1000))
]
LOSE, GAIN = False, True


@pytest.fixture
def rehearse(run, write):
    """Replay the sample log on the nodes and pods, with a policy for these versions of Volcano and the device plugin."""

    def rehearse(before, *options, pods=True, fleet=True):
        volcano, plugin = before
        policy = write("policy.yaml", {"target": {"volcano": volcano, "devicePlugin": plugin}})
        files = {"--fleet": FLEET} if fleet else {}
        files |= {"--pods": WAITING} if pods else {}
        read = [word for option, items in files.items() for word in (option, _list(write, option, items))]
        return run("replay", *read, "--policy", policy, "--device-config", CONFIG, *options, LOG)

    return rehearse


def _list(write, option, items):
    return write(f"{option[2:]}.json", {"apiVersion": "v1", "kind": "List", "items": items})


@pytest.mark.parametrize(
    "before, target, nodes, waiting",
    [
        (
            ("1.15.0", "1.12.0"),
            "volcano=1.16.0,devicePlugin=1.13.0",
            {(GAIN, HANDSHAKE, "unheard"), (LOSE, CORES, "nameless")},
            {("large", "never", "fits-now")},
        ),
        (
            ("1.15.0", "1.12.0"),
            "devicePlugin=1.13.0",
            {(LOSE, HANDSHAKE, "plain nameless")},
            {("small", "fits-now", "never")},
        ),
        (
            ("1.15.1", "1.13.0"),
            "volcano=v1.14.2,devicePlugin=1.12",
            {(GAIN, CORES, "nameless")},  # the older device plugin writes the handshake on each of them
            set(),
        ),
        (
            ("1.15.1", "1.13.0"),
            "volcano=1.15.0",
            {(GAIN, CORES, "nameless"), (LOSE, HANDSHAKE, "unheard")},
            {("large", "fits-now", "never")},
        ),
        (("1.15.1", "1.12.0"), "volcano=1.16.0,devicePlugin=1.13.0,kubernetes=1.30", set(), set()),
    ],
)
def test_nodes_and_waiting_pods_change(rehearse, before, target, nodes, waiting):
    result = rehearse(before, "--target", target, "-o", "json")
    changes = [line["nodes"] for line in result.lines if "nodes" in line]
    assert {(each["gained"], each["lacks"], " ".join(each["nodes"])) for each in changes} == nodes
    changed = [line["waiting"] for line in result.lines if "waiting" in line]
    assert {(each["name"], each["before"]["verdict"], each["after"]["verdict"]) for each in changed} == waiting
    assert result.code == (1 if nodes or waiting or result.lines[-1]["summary"]["directions"] else 0)
    shown = rehearse(before, "--target", target).out
    for gained, words in ((GAIN, "nodes that gain"), (LOSE, "nodes that lose")):
        assert (words in shown) is any(change[0] is gained for change in nodes)
    assert all(f"waiting pods {was} -> {now}  1\n  team/{name}: " in shown for name, was, now in waiting)


def test_what_a_node_lacks_is_said(rehearse):
    target = "volcano=1.16.0,devicePlugin=1.13.0"
    code, shown, _ = astuple(rehearse(("1.15.0", "1.12.0"), "--target", target, "-n", "nobody", pods=False))
    assert code == 1  # though no decision changes
    assert "gain their vgpu devices  1\n  unheard\n  so far: its annotation volcano.sh/node-vgpu-handshake is" in shown
    assert "lose their vgpu devices  1\n  nameless\n  its allocatable volcano.sh/vgpu-cores is missing\n" in shown


def test_a_cluster_gives_what_files_give(rehearse, tmp_path):
    before, options = ("1.15.0", "1.12.0"), ("--target", "volcano=1.16.0", "-o", "json")
    with ApiServer() as api:
        api.put(NODES, *FLEET)
        api.put(PODS, *WAITING)
        api.put(ALL_PODGROUPS)
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig", "team")
        live = rehearse(before, *options, "--kubeconfig", kubeconfig, pods=False, fleet=False)

    def found(result):  # the digests differ, as the cluster has queues and quotas
        return [line for line in result.lines if "nodes" in line or "waiting" in line]

    files = found(rehearse(before, *options))
    assert len(files) == 3
    assert found(live) == files


def test_pods_beyond_the_limit_are_named(rehearse, monkeypatch):
    monkeypatch.setattr(replay, "MAX_WAITING", 1)
    result = rehearse(("1.15.0", "1.12.0"), "--target", "devicePlugin=1.13.0")
    assert "only the first 1 of 2 waiting pods are rehearsed" in result.err
    assert "team/small" not in result.out


@pytest.mark.parametrize(
    "options, message",
    [
        (("--target", "volcano=1.12.9"), "1.13"),
        (("--target", "volcano=latest"), "'latest' is not a version; write it like 1.15.1"),
        (("--target", "volcano"), "'' is not a version"),
        (
            ("--target", "plugin=1.12.0"),
            "'plugin=1.12.0' is not NAME=VERSION; the names are volcano, devicePlugin, kubernetes",
        ),
        (("--pods", SAMPLES / "pods.yaml"), "add what to try, such as --target volcano=1.16.0"),
    ],
)
def test_bad_usage(run, options, message):
    result = run("replay", *options, LOG)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
