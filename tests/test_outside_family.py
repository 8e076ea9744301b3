"""A device family of another vendor, added as webhook/devices/family.py describes, works in reviews, pages and commands."""

import json
from dataclasses import dataclass
from functools import partial

import pytest

from tests.console.conftest import Fixed
from webhook.cli.main import main
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.devices import registry
from webhook.devices.drawing import UNUSED, DrawnCard, DrawnPart, Usage, draw_node
from webhook.devices.equal import Devices
from webhook.devices.explanation import ShapeExplainer, ShapeExplanation
from webhook.devices.families import Role
from webhook.devices.family import DeviceFamily
from webhook.devices.nearest import amounts_of_regular, reducible
from webhook.devices.shapes import FleetPart, Grouping, NodeShape
from webhook.devices.verdict import Fits, Never, Reason
from webhook.policy.policy import default_policy
from webhook.render.yaml import to_json
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.settings.table import DEVICE_CONFIG, FLEET

BOARDS = "example.com/boards"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BoardShape(NodeShape):
    """Nodes with the same number of boards."""

    boards: int

    @property
    def devices(self):
        return self.boards

    @property
    def content(self):
        return (self.boards,)


def build(nodes, index):
    grouping = Grouping()
    for number, node in enumerate(nodes):
        if node.allocatable.get(BOARDS, 0):
            grouping.add(number, node.name, boards=node.allocatable[BOARDS])
    return FleetPart(tuple(grouping.shapes(BoardShape)), index)


def requested(pod):
    return sum(amount.value or 0 for amount in pod.amounts if amount.family == "boards")


def judge_pod(pod, fleet):
    most, node = max(((shape.boards, shape.names[0]) for shape in fleet.shapes), default=(0, ""))
    wanted = requested(pod)
    return Fits() if wanted <= most else Never(Reason.CARDS, None, BOARDS, wanted, most, node)


@dataclass(frozen=True, slots=True)
class BoardSlices:
    """The boards of a pod."""

    boards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardExplanation(ShapeExplanation):
    """The explanation for nodes with boards."""

    boards: int


def explain(request, fleet):
    yield request.explanation(partial(BoardExplainer, request, request.pod, fleet), fleet.shapes, "no node has boards")


class BoardExplainer(ShapeExplainer):
    """Explains a pod to the nodes of one shape."""

    made = BoardExplanation

    def judge(self, requested, _nodes):
        return judge_pod(requested, self.alone)

    def slices(self):
        return BoardSlices(requested(self.requested))

    def reducible(self):
        amounts = amounts_of_regular(self.requested, "boards")
        return [reducible(self.requested, amount, range(1, amount.value)) for amount in amounts]

    def fields(self):
        return {"boards": self.shape.boards}

    def devices(self):
        return f"{self.shape.boards} boards"

    def slice_sentences(self, slices):
        return [f"the pod gets {slices.boards} boards"]

    def refusal_sentence(self, never):
        return f"the node has {never.most}"

    def draw(self, slices, note):
        assigned = range(slices.boards) if slices else ()
        return draw(self.shape, Usage(dict.fromkeys(assigned, (DrawnPart("", 0, label="board"),)), note=note))


def draw(shape, usage=UNUSED):
    return draw_node(shape.boards, lambda at: DrawnCard(f"board {at}", "X1", 0), usage=usage)


class BoardFamily(DeviceFamily):
    """Boards, which are given whole."""

    id = "boards"
    title = "Boards of another vendor"
    nodes = "Nodes with boards"
    device = "board"
    devices = "boards"

    @staticmethod
    def roles(_vgpu, _ascend):
        return {BOARDS: Role.NUMBER}

    def build(self, nodes, index, _declared):
        return build(nodes, index)

    def draw(self, shape):
        return draw(shape)

    def kinds(self, shape):
        return [Devices(type="X1", count=shape.boards)]

    def offered(self, shape):
        return {BOARDS: shape.boards}

    def requests(self, pod, _denies):
        return (pod,)

    def judge(self, request, part, _nodes, _budget=None):
        return judge_pod(request, part)

    def explain(self, request, part):
        return explain(request, part)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, BoardFamily))


def node(name, boards):
    offers = {BOARDS: str(boards)}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"capacity": offers, "allocatable": offers}}


def pod(boards):
    limits = {BOARDS: str(boards)}
    main_container = {"name": "main", "image": "i", "resources": {"limits": limits, "requests": limits}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [main_container]}}


@pytest.fixture
def files(tmp_path):
    """A device config, a fleet of two kinds of nodes, and a function that writes a pod."""
    config, fleet, manifest = (tmp_path / name for name in ("config.yaml", "fleet.json", "pod.json"))
    config.write_text("nvidia: {}")
    fleet.write_text(to_json({"kind": "List", "items": [node("small", 2), node("large", 4), node("large-2", 4)]}))

    def write(boards):
        manifest.write_text(to_json(pod(boards)))
        return ["--device-config", str(config), "--fleet", str(fleet), str(manifest)]

    return write


def run_command(capsys, *arguments):
    return main(arguments), capsys.readouterr().out


def test_a_review_repairs_and_admits_a_pod_that_fits(files, capsys):
    code, out = run_command(capsys, "review", *files(3))
    assert (code, "scheduler-name" in out) == (0, True)


def test_a_review_refuses_a_pod_that_fits_on_no_node(files, capsys):
    code, out = run_command(capsys, "review", *files(5))
    assert code == 1
    assert (
        'card-count: container "main" requests example.com/boards 5, but the largest node (large) has 4 boards' in out
    )


def test_the_placement_is_explained(files, capsys):
    _, out = run_command(capsys, "review", "--explain", *files(3))
    assert "boards nodes\n    never   small: 2 boards\n            number of cards: the node has 2\n" in out
    assert "    fits    large, large-2: 4 boards\n            the pod gets 3 boards\n" in out
    assert "→ with example.com/boards 2 or less it fits" in out
    _, out = run_command(capsys, "review", "--explain", "-o", "json", *files(3))
    shape = json.loads(out)["explain"][0]["shapes"][0]
    assert (shape["names"], shape["boards"], shape["placement"]) == (["small"], 2, "never")


@pytest.fixture
def client(files):
    _, config, _, fleet, _ = files(1)
    loaded = DEVICE_CONFIG.load(config)
    inputs = SnapshotInputs(loaded, default_policy(), read_nodes(FLEET.load(fleet), loaded))
    return create_app(ConsoleState(Fixed(inputs))).test_client()


def test_the_fleet_page_shows_the_boards(client):
    (family,) = client.get("/api/v1/fleet?family=boards").json["families"]
    assert (family["family"], family["nodes"], family["devices"]) == ("boards", 3, 10)
    assert family["shapes"][0]["offered"] == {BOARDS: 4}
    page = client.get("/fleet").text
    assert "Boards of another vendor" in page
    assert "board 3" in page


def test_the_playground_explains_the_placement(client):
    response = client.post("/api/v1/explain", json={"manifest": to_json(pod(3))}).json
    (explained,) = response["documents"][0]["families"]
    assert [shape["placement"] for shape in explained["shapes"]] == ["never", "fits"]
    page = client.post("/", data={"manifest": to_json(pod(3))}).text
    assert "Nodes with boards" in page
    assert "board 3" in page


def test_the_doctor_works_with_the_family(capsys):
    code, out = run_command(capsys, "doctor", "--from", "tests/data/cluster-healthy")
    assert (code, "broken" in out) == (0, False)
