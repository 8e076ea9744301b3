"""A device family of another vendor, added as webhook/devices/family.py tells: reviews, pages and commands work with it."""

import json
from dataclasses import dataclass

import pytest

from tests.console.conftest import Fixed
from webhook.cli.main import main
from webhook.console.app import create_app
from webhook.console.state import State
from webhook.devices import registry
from webhook.devices.drawing import DrawnCard, DrawnPart, draw_node, drawn
from webhook.devices.explanation import ChangeWords, ShapeAnswer, ShapeExplanation, outcome
from webhook.devices.families import Role
from webhook.devices.family import DeviceFamily, Devices
from webhook.devices.shapes import Grouping, Shape
from webhook.devices.verdict import Fits, Never, Reason
from webhook.policy.policy import default_policy
from webhook.render.yaml import to_json
from webhook.settings.files import load_device_config, load_nodes
from webhook.settings.snapshot import SnapshotInputs

BOARDS = "example.com/boards"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BoardShape(Shape):
    """Nodes with equally many boards."""

    boards: int

    @property
    def devices(self):
        return self.boards

    @property
    def content(self):
        return (self.boards,)


@dataclass(frozen=True, slots=True)
class BoardFleet:
    """The nodes with boards."""

    every_shape: tuple[BoardShape, ...]
    gated: tuple[tuple[str, str], ...] = ()
    identities: str = ""


def build(nodes, _index, _config, _target, _declared):
    found = Grouping()
    for number, node in enumerate(nodes):
        if node.allocatable.get(BOARDS, 0):
            found.add(node.allocatable[BOARDS], number, node.name)
    return BoardFleet(tuple(BoardShape(**group.nodes(), boards=boards) for boards, group in found.groups.items()))


def requested(pod):
    return sum(amount.value or 0 for amount in pod.amounts if amount.family == FAMILY.id)


def judge(request, fleet):
    most, node = max(((shape.boards, shape.names[0]) for shape in fleet.every_shape), default=(0, ""))
    wanted = requested(request.pod)
    yield Fits() if wanted <= most else Never(Reason.CARDS, None, BOARDS, wanted, most, node)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardExplanation(ShapeExplanation):
    """What nodes with boards give."""

    boards: int


def explain(request, fleet):
    yield request.explanation(
        [explain_shape(shape, request) for shape in fleet.every_shape], fleet.every_shape, "no node has boards"
    )


def explain_shape(shape, request):
    wanted = requested(request.pod)
    refusal = Never(Reason.CARDS, None, BOARDS, wanted, shape.boards)
    answer = ShapeAnswer(shape, wanted) if wanted <= shape.boards else ShapeAnswer(shape, refusal=refusal)
    words = ChangeWords({Role.NUMBER: BOARDS}, several=False)
    found = outcome(answer, [f"the pod gets {wanted} boards"], lambda short: f"the node has {short.most}", words)
    return BoardExplanation(
        shape=shape,
        selected=request.selected(shape),
        boards=shape.boards,
        placement=found.placement,
        refusal=found.refusal,
        change=found.change,
        devices=f"{shape.boards} boards",
        sentences=found.sentences,
        drawing=draw(shape, wanted if answer.given else 0),
    )


def draw(shape, given=0):
    parts = {index: (DrawnPart("", 0, label="board"),) for index in range(given)}
    cards = [DrawnCard(f"board {at}", "X1", 0, parts=parts.get(at, ())) for at in drawn(shape.boards)]
    return draw_node(cards, ("", ""), shape.boards, "", parts)


FAMILY = DeviceFamily(
    id="boards",
    title="Boards of another vendor",
    nodes="Nodes with boards",
    device="board",
    devices="boards",
    roles=lambda _vgpu, _ascend: {BOARDS: Role.NUMBER},
    build=build,
    judge=judge,
    explain=explain,
    draw=lambda shape, _config: draw(shape),
    kinds=lambda shape, _config: [Devices(type="X1", count=shape.boards)],
    offered=lambda shape, _config: {BOARDS: shape.boards},
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, FAMILY))


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
    config, fleet, wish = (tmp_path / name for name in ("config.yaml", "fleet.json", "pod.json"))
    config.write_text("nvidia: {}")
    fleet.write_text(to_json({"kind": "List", "items": [node("small", 2), node("large", 4), node("large-2", 4)]}))

    def write(boards):
        wish.write_text(to_json(pod(boards)))
        return ["--device-config", str(config), "--fleet", str(fleet), str(wish)]

    return write


def run(capsys, *arguments):
    return main(arguments), capsys.readouterr().out


def test_a_review_repairs_and_admits_what_fits(files, capsys):
    code, out = run(capsys, "review", *files(3))
    assert (code, "scheduler-name" in out) == (0, True)


def test_a_review_refuses_what_no_node_has(files, capsys):
    code, out = run(capsys, "review", *files(5))
    assert code == 1
    assert (
        'card-count: container "main" asks for example.com/boards 5, but the largest node (large) has 4 boards' in out
    )


def test_it_is_explained(files, capsys):
    _, out = run(capsys, "review", "--explain", *files(3))
    assert "boards nodes\n    never   small: 2 boards\n            number of cards: the node has 2\n" in out
    assert "    fits    large, large-2: 4 boards\n            the pod gets 3 boards\n" in out
    _, out = run(capsys, "review", "--explain", "-o", "json", *files(3))
    shape = json.loads(out)["explain"][0]["shapes"][0]
    assert (shape["names"], shape["boards"], shape["placement"]) == (["small"], 2, "never")


@pytest.fixture
def client(files):
    _, config, _, fleet, _ = files(1)
    loaded = load_device_config(config)
    inputs = SnapshotInputs(loaded, default_policy(), load_nodes(fleet, loaded))
    return create_app(State(Fixed(inputs))).test_client()


def test_the_fleet_page_shows_it(client):
    (found,) = client.get("/api/v1/fleet?family=boards").json["families"]
    assert (found["family"], found["nodes"], found["devices"]) == ("boards", 3, 10)
    assert found["shapes"][0]["offered"] == {BOARDS: 4}
    page = client.get("/fleet").text
    assert "Boards of another vendor" in page
    assert "board 3" in page


def test_the_playground_explains_it(client):
    found = client.post("/api/v1/explain", json={"manifest": to_json(pod(3))}).json
    (explained,) = found["documents"][0]["families"]
    assert [shape["placement"] for shape in explained["shapes"]] == ["never", "fits"]
    page = client.post("/", data={"manifest": to_json(pod(3))}).text
    assert "Nodes with boards" in page
    assert "board 3" in page


def test_the_doctor_works_with_it(capsys):
    code, out = run(capsys, "doctor", "--from", "tests/data/cluster-healthy")
    assert (code, "broken" in out) == (0, False)
