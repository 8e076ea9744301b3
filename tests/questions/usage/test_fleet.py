"""The fleet page and its operation."""

from functools import partial
from html import unescape

from tests.console.conftest import READ, Fixed, client_of
from tests.console.nodes import GATES, vgpu_node
from tests.console.pages import get_json
from tests.timing import within
from webhook import names
from webhook.console.texts import ago
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLES, SettingStatus, SourceStatus
from webhook.settings.table import DEVICE_CONFIG

HOSTILE = "<script>alert(1)</script>\u202e"
CARD = (10, 16_000, "A10")


def console(nodes, policy=None, settings=Fixed):
    inputs = SnapshotInputs(DEVICE_CONFIG.load(SAMPLES / "device-config.yaml"), policy or default_policy(), nodes)
    return client_of(settings(inputs))


fleet = partial(get_json, path="/fleet")


def family(client, family_name, **query):
    found = fleet(client, **query)
    return next((each for each in found["families"] if each["family"] == family_name), None)


def test_the_sample_fleet_has_all_families_and_shapes(client):
    found = fleet(client)
    assert (found["known"], found["complete"], found["nodes"]) == (True, True, 8)
    assert found["source"]["source"]["origin"] == "fleet.yaml"
    assert found["digest"] == found["source"]["digest"]
    assert [each["family"] for each in found["families"]] == ["vgpu", "gpushare", "ascend", "mindcluster"]
    vgpu, gpushare, ascend, mindcluster = found["families"]
    assert (vgpu["nodes"], vgpu["devices"], vgpu["slices"]) == (4, 18, 154)
    assert vgpu["memory"] == 8 * 24_564 + 4 * 81_920 + 2 * 15_360 + 2 * 16_160 + 2 * 81_920
    first = vgpu["shapes"][0]
    assert (first["names"], first["nodes"], first["mode"], first["count"]) == (["gpu-a"], 1, "hami-core", 8)
    cards = {"type": "NVIDIA GeForce RTX 4090", "memory": 24_564, "split": 10, "cores": None, "count": 8}
    assert (first["devices"], first["offered"][names.VGPU_NUMBER]) == ([cards], 80)
    assert {shape["mode"] for shape in vgpu["shapes"]} == {"hami-core", "mig"}
    assert (gpushare["unit"], gpushare["devices"]) == ("", 3)
    assert ascend["unit"] == "MiB"
    assert all(each["cores"] for shape in ascend["shapes"] for each in shape["devices"])
    assert mindcluster["memory"] is None
    assert mindcluster["shapes"][0]["offered"] == {names.NPU_CORE: 32}


def test_a_search_counts_the_nodes_that_it_finds():
    client = console([vgpu_node(f"Node-{at}", CARD) for at in range(100)])
    found = family(client, "vgpu", name="node-1*")
    assert (found["nodes"], found["devices"], found["slices"]) == (11, 11, 110)
    assert found["shapes"][0]["names"][:2] == ["Node-1", "Node-10"]
    assert len(found["shapes"][0]["names"]) == 10


def test_a_search_does_not_take_long():
    """With a hostile pattern, and in a large fleet."""
    client = console([vgpu_node("a" * 253 + str(at), CARD) for at in range(200)])
    for pattern in ("*a" * 120 + "b", "?*" * 120):
        within(1, lambda name=pattern: fleet(client, name=name, search=name))
    client = console([vgpu_node(f"node-{at}", *[CARD] * (at % 50 + 1)) for at in range(5_000)])
    client.get("/fleet")
    assert within(1, lambda: client.get("/fleet?name=node-1*7")).status_code == 200


def test_skipped_nodes_are_listed_with_the_missing_resource():
    incomplete = {name: amount for name, amount in GATES.items() if name != names.VGPU_MEMORY}
    lacking = [vgpu_node(f"lacks-{at}", CARD, offered=incomplete) for at in range(12)]
    client = console([vgpu_node("fine", CARD), *lacking])
    (skipped,) = family(client, "vgpu")["skipped"]
    assert (skipped["resource"], skipped["nodes"], len(skipped["names"])) == (names.VGPU_MEMORY, 12, 10)
    page = client.get("/fleet").text
    assert "The scheduler skips 12 nodes" in page
    assert "and 2 more" in page
    assert family(client, "vgpu", name="lacks-3")["skipped"][0]["nodes"] == 1
    assert not family(client, "vgpu", name="fine")["skipped"]


def test_the_number_of_shapes_is_limited():
    nodes = [vgpu_node(f"node-{at}", *[(10, 10_000 + at, f"card {at}")] * 8) for at in range(300)]
    client = console(nodes)
    found = family(client, "vgpu")
    assert (len(found["shapes"]), found["moreShapes"]) == (100, 200)
    assert (len(found["types"]), found["moreTypes"]) == (50, 250)
    assert family(client, "vgpu", limit=300)["moreShapes"] == 0
    page = client.get("/fleet")
    assert "100 of 300 kinds are in the table" in page.text
    assert len(page.data) < 1_500_000


def test_hostile_text_is_escaped_and_hostile_numbers_do_not_make_the_page_large():
    card = (999_999_999_999_999_999, 999_999_999_999_999_999, HOSTILE.replace(",", "").replace(":", "") * 1_000)
    offered = dict.fromkeys(GATES, 10**30)
    client = console([vgpu_node(HOSTILE * 100, *[card] * 2_000, offered=offered)])
    found = family(client, "vgpu")
    assert found["slices"] == 2_000 * card[0]
    page = client.get("/fleet")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text
    assert len(page.data) < 300_000
    assert r"\u202e" in unescape(page.text)


def test_a_lone_surrogate_in_a_name_is_escaped():
    client = console([vgpu_node("half\ud800", (10, 16_000, "A\udfff10"))])
    assert family(client, "vgpu")["shapes"][0]["names"] == ["half\ud800"]
    assert r"half\ud800" in client.get("/fleet").text


def test_the_page_shows_the_age_and_the_problem_of_the_fleet():
    class Stale(Fixed):
        def statuses(self):
            return (SettingStatus("fleet", SourceStatus(HOSTILE, f"too old {HOSTILE}", 7_300.0), READ, "abc"),)

    page = console([vgpu_node("a", CARD)], settings=Stale).get("/fleet").text
    assert "up to date 2 h ago" in page
    assert "too old" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "too old" in console(None, settings=Stale).get("/fleet").text


def test_ages_have_units():
    ages = {0: "0 s", 119: "119 s", 120: "2 min", 7199: "119 min", 7200: "2 h", 172_799: "47 h", 172_800: "2 days"}
    assert {seconds: ago(seconds) for seconds in ages} == ages
