"""Device config, policy, fleet and queues from files."""

import json
import tracemalloc

import pytest
import yaml

from tests.reviewing import CONFIG, DATA
from webhook.devices.config_file import parse_device_config
from webhook.errors import ConfigError
from webhook.inputs.files import MAX_CHECKED, read_bytes
from webhook.output.yaml import to_yaml
from webhook.settings.snapshot import read_nodes
from webhook.settings.sources import SAMPLES
from webhook.settings.table import DEVICE_CONFIG, FLEET, MAX_SETTINGS_BYTES, POLICY, QUEUES


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="file.yaml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def error_of(load, path):
    with pytest.raises(ConfigError) as raised:
        load(path)
    message = str(raised.value)
    assert str(path) in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("name", ["device-config.yaml", "device-config.minimal.yaml"])
def test_a_device_config_as_text_or_configmap(write, name):
    path = DATA / "config" / name
    text = path.read_text()
    config = DEVICE_CONFIG.load(path)
    assert config == parse_device_config(yaml.safe_load(text), "test")
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"device-config.yaml": text},
    }
    assert DEVICE_CONFIG.load(write(yaml.safe_dump(config_map))) == config
    assert DEVICE_CONFIG.load(write(json.dumps(config_map))) == config


@pytest.mark.parametrize(
    "content, message",
    [
        ("kind: ConfigMap", "the ConfigMap has no key device-config.yaml"),
        ("kind: ConfigMap\ndata: {other: x}", "the ConfigMap has no key device-config.yaml"),
        ("kind: ConfigMap\ndata: {device-config.yaml: {nvidia: {}}}", "the ConfigMap has no key device-config.yaml"),
        ("kind: ConfigMap\ndata: []", "the ConfigMap has no key device-config.yaml"),
        ("kind: ConfigMap\ndata: {device-config.yaml: 'a: ['}", "device-config.yaml: not YAML or JSON"),
        ("kind: ConfigMap\ndata: {device-config.yaml: ''}", "a device config is a mapping"),
        ("", "a device config is a mapping"),
        ("- nvidia", "a device config is a mapping"),
        ("a: 1\n---\nb: 1", "2 documents where one is expected"),
        ("nvidia: {}\nnvidia: {}", "not YAML or JSON that can be read: the key 'nvidia' appears twice"),
        ("nvidia: {defaultCores: many}", "nvidia.defaultCores: "),
    ],
)
def test_a_device_config_that_cannot_be_used(write, content, message):
    assert error_of(DEVICE_CONFIG.load, write(content)).startswith(message)


@pytest.mark.parametrize("name", ["mixed", "compatible", "every-family", "rtx4090"])
def test_fleets_as_yaml_and_json_are_equal(write, name):
    path = DATA / "fleets" / f"{name}.yaml"
    nodes = read_nodes(FLEET.load(path), CONFIG)
    assert nodes
    document = yaml.safe_load(path.read_text())
    assert read_nodes(FLEET.load(write(json.dumps(document), "fleet.json")), CONFIG) == nodes
    one_by_one = yaml.safe_dump_all(document["items"])
    assert read_nodes(FLEET.load(write(one_by_one)), CONFIG) == nodes
    assert read_nodes(FLEET.load(write(json.dumps({**document, "kind": "NodeList"}))), CONFIG) == nodes


def test_nodes_without_cards_are_left_out():
    assert [node.name for node in read_nodes(FLEET.load(DATA / "fleets" / "mixed.yaml"), CONFIG)] == [
        "gpu-a", "gpu-b", "gpu-c", "gpu-mig",
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["", "\n---\n", "kind: List\nitems: []", '{"kind": "NodeList", "items": []}'])
def test_a_fleet_without_nodes_is_refused(write, content):
    message = "there is no node in it; write all that `kubectl get nodes -o yaml` prints"
    assert error_of(FLEET.load, write(content)) == message


@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps])
def test_a_truncated_fleet_is_refused(write, dump):
    text = dump(yaml.safe_load((DATA / "fleets" / "mixed.yaml").read_text()), sort_keys=True)  # as kubectl sorts them
    for end in range(0, text.index("List"), 61):
        assert error_of(FLEET.load, write(text[:end]))


@pytest.mark.parametrize(
    "content, message",
    [
        ("kind: Pod", "a fleet file holds nodes"),
        ("- kind: Node", "a fleet file holds nodes"),
        ("just text", "a fleet file holds nodes"),
        ("kind: Node\n---\nkind: Pod", "a fleet file holds nodes"),
        ("kind: List\nitems: [{kind: Pod}]", "a fleet file holds nodes, but items[0] is a Pod"),
        ("apiVersion: v1\nitems: [{kind: Node}]", "ends before `kind: List`, so it seems to be cut off"),
        ("kind: NodeList\nmetadata: {continue: x}\nitems: [{}]", "holds a part of all nodes; write all that `kubectl"),
        ("kind: Node\nmetadata: {name: a}", "its last node has no status.allocatable, so the file seems to be cut off"),
        ("kind: List\nitems: [{kind: Node}]", "its last node has no metadata.name, so the file seems to be cut off"),
        ("kind: List", "items is not a list of nodes"),
        ("kind: List\nitems: {}", "items is not a list of nodes"),
        ("kind: List\nitems: [x]", "items is not a list of nodes"),
        ("kind: List\nkind: List", "not YAML or JSON that can be read: the key 'kind' appears twice"),
    ],
)
def test_a_file_that_is_not_a_fleet(write, content, message):
    assert error_of(FLEET.load, write(content)).startswith(message)


LOADS = [DEVICE_CONFIG.load, POLICY.load, FLEET.load]


@pytest.mark.parametrize("load", LOADS)
def test_files_that_cannot_be_read(tmp_path, load):
    assert error_of(load, tmp_path / "absent") == "No such file or directory"
    assert error_of(load, tmp_path) == "Is a directory; name a file in it"


@pytest.mark.parametrize("load", [DEVICE_CONFIG.load, POLICY.load])
def test_a_settings_file_that_is_too_large(write, load):
    exact = b"#" * MAX_SETTINGS_BYTES
    assert error_of(load, write(exact + b"#")) == "larger than 1 MiB"
    assert read_bytes(write(exact), MAX_SETTINGS_BYTES) == exact


def test_what_nobody_reads_of_a_node_takes_no_memory(write):
    """The images of nodes are most of the text, and nobody reads them."""
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}},
        "spec": {"podCIDRs": ["10.0.0.0/24"], "taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "1"}, "images": [{"names": ["i", "j"], "sizeBytes": 1}] * 100},
    }
    path = write(to_yaml({"kind": "List", "items": [node] * 300}))
    tracemalloc.start()
    found = FLEET.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = {"spec": {"taints": node["spec"]["taints"]}, "status": {"allocatable": node["status"]["allocatable"]}}
    assert found == [node | kept] * 300
    assert peak < 2 * MAX_CHECKED  # half of it for the first read


def test_queues_are_loaded(write):
    names = ["root", "default", "research", "research-vision", "archive"]
    assert list(QUEUES.load(SAMPLES / "queues.yaml").by_name) == sorted(names)
    one = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "a"}}
    assert list(QUEUES.load(write(json.dumps(one))).by_name) == ["a"]


@pytest.mark.parametrize(
    "content, message",
    [
        ("kind: List\nitems: []", "there is no queue in it; write all that `kubectl get queues -o yaml` prints"),
        ("kind: List\nitems: [{kind: Node}]", "a file of queues holds queues, but items[0] is a Node"),
        ("kind: Node", "a file of queues holds queues, as `kubectl get queues -o yaml` prints them"),
        ("kind: QueueList\nitems: [{metadata: {}}]", "there is no queue in it; write all that"),
    ],
)
def test_a_file_without_queues(write, content, message):
    assert error_of(QUEUES.load, write(content)).startswith(message)
