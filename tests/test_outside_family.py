"""A device family of another vendor, added as webhook/devices/family.py describes, works in reviews, pages and commands."""

import json

import pytest

from tests.console.conftest import Fixed
from tests.questions import needs
from webhook.cli.main import main
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.devices import registry
from webhook.devices.explainer import Explainer, Taken
from webhook.devices.explanation import EXPLAINERS
from webhook.devices.families import Role
from webhook.devices.family import DeviceFamily
from webhook.devices.ledger import Accountant, Assigned
from webhook.devices.model import MAX_DEVICES, NOTHING, Amounts, Device, NodeState
from webhook.devices.nearest import amounts_of_regular, reducible
from webhook.devices.occupancy import ACCOUNTANTS
from webhook.devices.verdict import Fits, Never, Reason
from webhook.output.json import to_json
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.settings.table import DEVICE_CONFIG, FLEET

BOARDS, ASSIGNED = "example.com/boards", "example.com/assigned-boards"


class BoardFamily(DeviceFamily):
    """Boards, which are given whole. A pod's annotation has the numbers of its boards."""

    id = "boards"
    title = "Boards of another vendor"
    nodes = "Nodes with boards"
    device = "board"
    devices = "boards"
    measures = frozenset()

    @staticmethod
    def roles(_vgpu, _ascend):
        return {BOARDS: Role.NUMBER}

    @staticmethod
    def assignments(_ascend):
        return (ASSIGNED,)

    def read(self, node):
        boards = node.allocatable.get(BOARDS, 0)
        if boards:
            board = self._known.one(Device("X1"))
            yield NodeState.of((board,) * min(boards, MAX_DEVICES), {BOARDS: boards})

    def judge(self, request, part, nodes, _budget=None):
        found = part.selected(nodes)
        most, node = max([(free_boards(shape), name) for shape, name in found], default=(0, ""))
        wanted = requested(request)
        return Fits() if wanted <= most else Never(Reason.CARDS, None, BOARDS, wanted, most, node)


class BoardExplainer(Explainer):
    """Explains boards."""

    def taken(self, request, part):
        free = [at for at, board in enumerate(part.shapes[0].devices) if not any(board.used)]
        return tuple(Taken(None, at, 0, label="whole board") for at in free[: requested(request)]), ""

    def reducible(self, request, _shape):
        amounts = amounts_of_regular(request, self.family.id)
        return [reducible(request, amount, range(1, amount.value)) for amount in amounts]


class BoardAccountant(Accountant):
    """Accounts for boards."""

    @staticmethod
    def served(pod, _config):
        return requested(pod) or None

    def assign(self, pod, ledger, _shape):
        for board in filter(None, pod.annotations.get(ASSIGNED, "").split(",")):
            ledger.assign(pod, board, "board", Assigned(Amounts(1), Amounts(1)))

    def free(self, _shape, device):
        return NOTHING if any(device.used) else Amounts(1)


def requested(pod):
    return sum(amount.value or 0 for amount in pod.amounts if amount.family == BoardFamily.id)


def free_boards(shape):
    return sum(not any(board.used) for board in shape.devices)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, BoardFamily))
    monkeypatch.setitem(EXPLAINERS, BoardFamily, BoardExplainer)
    monkeypatch.setitem(ACCOUNTANTS, BoardFamily, BoardAccountant)


def node(name, boards):
    offers = {BOARDS: str(boards)}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": offers, "allocatable": offers}}


def pod(boards):
    limits = {BOARDS: str(boards)}
    main_container = {"name": "main", "image": "i", "resources": {"limits": limits, "requests": limits}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [main_container]}}


@pytest.fixture
def settings(tmp_path):
    """The files of a device config, and of a fleet of two kinds of nodes."""
    config, fleet = tmp_path / "config.yaml", tmp_path / "fleet.json"
    config.write_text("nvidia: {}")
    fleet.write_text(to_json({"kind": "List", "items": [node("small", 2), node("large", 4), node("large-2", 4)]}))
    return config, fleet


def run_command(capsys, settings, *arguments):
    config, fleet = settings
    return main([*map(str, arguments), f"--device-config={config}", f"--fleet={fleet}"]), capsys.readouterr().out


@needs("review")
def test_pods_are_repaired_refused_and_explained(settings, capsys, tmp_path):
    file = tmp_path / "pod.json"
    file.write_text(to_json(pod(3)))
    code, out = run_command(capsys, settings, "review", "--explain", file)
    assert (code, "scheduler-name" in out) == (0, True)
    for text in (
        "never small: 2 × X1",
        'number of cards: container "main" requests example.com/boards 3, but the node has 2 boards',
        "fits large, large-2: 4 × X1",
        "the pod on boards 0, 1, 2 (whole board)",
        "→ with example.com/boards 2 or less it fits",
    ):
        assert text in " ".join(out.split())
    file.write_text(to_json(pod(5)))
    code, out = run_command(capsys, settings, "review", file)
    assert code == 1
    refusal = 'container "main" requests example.com/boards 5, but the largest node (large) has 4 boards'
    assert f"card-count: {refusal}" in out


@needs("usage")
def test_what_pods_hold_is_shown(settings, capsys, tmp_path):
    held = pod(2)
    held["metadata"] |= {"namespace": "default", "annotations": {ASSIGNED: "0,1"}}
    held["spec"]["nodeName"] = "large"
    pods = tmp_path / "pods.json"
    pods.write_text(to_json({"kind": "List", "items": [held | {"status": {"phase": "Running"}}]}))
    _, out = run_command(capsys, settings, "usage", "-o", "json", "--pods", pods)
    nodes = {node["name"]: node["cards"] for node in json.loads(out)["nodes"]}
    assert [card["accounted"]["slices"] for card in nodes["large"]] == [1, 1, 0, 0]
    assert [holder["name"] for holder in nodes["large"][0]["pods"]] == ["p"]


@pytest.fixture
def client(settings):
    config, fleet = settings
    loaded = DEVICE_CONFIG.load(config)
    inputs = SnapshotInputs(loaded, default_policy(), read_nodes(FLEET.load(fleet), loaded))
    return create_app(ConsoleState(Fixed(inputs))).test_client()


@needs("usage")
def test_the_fleet_page_shows_the_boards(client):
    (family,) = client.get("/api/v1/fleet?family=boards").json["families"]
    assert (family["family"], family["nodes"], family["devices"]) == ("boards", 3, 10)
    assert family["shapes"][0]["offered"] == {BOARDS: 4}
    page = client.get("/fleet").text
    assert "Boards of another vendor" in page
    assert "4 × X1" in page


@needs("review")
def test_the_playground_explains_the_placement(client):
    response = client.post("/api/v1/review", json={"manifest": to_json(pod(3))}).json
    (explained,) = response["explanation"]["documents"][0]["families"]
    assert [shape["placement"] for shape in explained["shapes"]] == ["never", "fits"]
    page = client.post("/review", data={"manifest": to_json(pod(3))}).text
    assert "Nodes with boards" in page
    assert "board 3" in page


@needs("doctor")
def test_the_doctor_works_with_the_family(capsys):
    assert main(["doctor", "--from", "tests/data/cluster-healthy"]) == 0
    assert "broken" not in capsys.readouterr().out
