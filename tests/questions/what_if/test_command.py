"""`vgpu-webhook what-if --target`: which nodes and waiting pods another release changes."""

import pytest

from tests.cli.conftest import CONFIG, pod, vgpus
from tests.cluster.apiserver import NODES, ApiServer
from tests.strategies import node_json, register
from webhook import names
from webhook.live.cluster_reader import ALL_PODGROUPS
from webhook.settings.table import PODS

SMALL, LARGE = ("NVIDIA-Tesla T4", 15360), ("NVIDIA-NVIDIA A100-SXM4-80GB", 81920)
HANDSHAKE, CORES = names.NODE_VGPU_HANDSHAKE, names.VGPU_CORES


def node(name, card, *, handshake=True, offers=None):
    """A node with one card, and the handshake of its device plugin."""
    made = node_json(name, register([card]), offers=offers or {})
    if not handshake:
        del made["metadata"]["annotations"][HANDSHAKE]
    return made


FLEET = [node("plain", SMALL), node("unheard", LARGE, handshake=False), node("nameless", SMALL, offers={CORES: None})]
WAITING = [
    pod(name, limits=vgpus(1, memory, 0), metadata={"namespace": "team", "uid": name})
    | {"status": {"phase": "Pending"}}
    for name, memory in (("large", 40000), ("small", 1000))
]
LOSE, GAIN = False, True


@pytest.fixture
def rehearse(run, write):
    """Look ahead on the nodes and pods, with a policy for these versions of Volcano and the device plugin."""

    def rehearse(before, *options, files=True):
        volcano, plugin = before
        policy = write("policy.yaml", {"target": {"volcano": volcano, "devicePlugin": plugin}})
        read = ["--fleet", _list(write, "fleet", FLEET), "--pods", _list(write, "pods", WAITING)] if files else []
        return run("what-if", *read, "--policy", policy, "--device-config", CONFIG, *options)

    return rehearse


def _list(write, name, items):
    return write(f"{name}.json", {"apiVersion": "v1", "kind": "List", "items": items})


def _waiting(found):
    """What changes; a pod depends where a node without cards may take it."""
    return {
        (each["name"], each["before"], each["after"]) for each in found["waiting"] if each["before"] != each["after"]
    }


@pytest.mark.parametrize(
    "before, target, nodes, waiting",
    [
        (
            ("1.15.0", "1.12.0"),
            "volcano=1.16.0,devicePlugin=1.13.0",
            {(GAIN, HANDSHAKE, "unheard"), (LOSE, CORES, "nameless")},
            {("large", "never", "depends")},
        ),
        (
            ("1.15.0", "1.12.0"),
            "devicePlugin=1.13.0",
            {(LOSE, HANDSHAKE, "plain nameless")},
            {("small", "depends", "never")},
        ),
        (
            ("1.15.1", "1.13.0"),
            "volcano=v1.14.2,devicePlugin=1.12",
            {(GAIN, CORES, "nameless")},  # the older device plugin writes the handshake on each of them
            {("large", "depends", "starts"), ("small", "depends", "starts")},
        ),
        (
            ("1.15.1", "1.13.0"),
            "volcano=1.15.0",
            {(GAIN, CORES, "nameless"), (LOSE, HANDSHAKE, "unheard")},
            {("large", "depends", "never")},
        ),
        (("1.15.1", "1.12.0"), "volcano=1.16.0,devicePlugin=1.13.0,kubernetes=1.30", set(), set()),
    ],
)
def test_nodes_and_waiting_pods_change(rehearse, before, target, nodes, waiting):
    (found,) = rehearse(before, "--target", target, "-o", "json").lines
    assert {(each["gained"], each["lacks"], " ".join(each["nodes"])) for each in found["nodeChanges"]} == nodes
    assert _waiting(found) == waiting


def test_what_a_node_lacks_is_said(rehearse):
    shown = rehearse(("1.15.0", "1.12.0"), "--target", "volcano=1.16.0,devicePlugin=1.13.0").out
    assert (
        "nodes that gain their vgpu devices: unheard\n  so far: its annotation volcano.sh/node-vgpu-handshake is"
        in shown
    )
    assert "nodes that lose their vgpu devices: nameless\n  its allocatable volcano.sh/vgpu-cores is missing\n" in shown


def test_nodes_that_come_or_go_neither_gain_nor_lose_devices(rehearse):
    change = ("--add", "plain x 2", "--drain", "nameless", "--target", "devicePlugin=1.13.0")
    (found,) = rehearse(("1.15.0", "1.12.0"), *change, "-o", "json").lines
    assert [(each["gained"], each["nodes"]) for each in found["nodeChanges"]] == [(LOSE, ["plain"])]


def test_a_cluster_gives_what_files_give(rehearse, tmp_path):
    before, options = ("1.15.0", "1.12.0"), ("--target", "volcano=1.16.0", "-o", "json")
    with ApiServer() as api:
        api.put(NODES, *FLEET)
        api.put(PODS, *WAITING)
        api.put(ALL_PODGROUPS)
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig", "team")
        (live,) = rehearse(before, *options, "--kubeconfig", kubeconfig, files=False).lines
    (files,) = rehearse(before, *options).lines
    assert files["nodeChanges"]
    assert (live["nodeChanges"], live["waiting"]) == (files["nodeChanges"], files["waiting"])


@pytest.mark.parametrize(
    "target, message",
    [
        ("volcano=1.12.9", "1.13"),
        ("volcano=latest", "'latest' is not a version; write it like 1.15.1"),
        ("volcano", "'' is not a version"),
        ("plugin=1.12.0", "'plugin=1.12.0' is not NAME=VERSION; the names are volcano, devicePlugin, kubernetes"),
    ],
)
def test_bad_usage(run, target, message):
    result = run("what-if", "--sample", "--target", target)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
