"""`review --explain` as JSON, and its bounds. tests/golden/explanations.txt has its text."""

import pytest
import yaml

from tests.cli.conftest import CONFIG, FLEETS, Result, pod, vgpus
from tests.golden.explanations import NPU, NPU_MEMORY, ONE_NPU, gpushare_nodes, job, selecting
from tests.strategies import ascend_node
from tests.timing import within
from webhook import names
from webhook.pod.size import MAX_CONTAINERS

LABELLED = {"labels": {"ring-controller.atlas": "ascend-310P"}}


def explain(run, write, *options, fleet="every-family.yaml", **fields) -> Result:
    return explain_manifest(run, write, pod(**fields), FLEETS / fleet, *options)


def explain_manifest(run, write, manifest, fleet, *options) -> Result:
    path = write("it.yaml", manifest)
    return run("review", "--explain", "--fleet", fleet, "--device-config", CONFIG, *options, path)


def fleet_of(write, nodes):
    return write("fleet.yaml", {"apiVersion": "v1", "kind": "List", "items": nodes})


def test_the_time_for_vgpu_explanations_is_bounded(run, write):
    containers = [{"name": f"c{n}", "resources": {"limits": vgpus(3, 3000 + n, 1 + n % 40)}} for n in range(60)]
    within(20, lambda: explain(run, write, containers=containers))


def test_the_nodes_that_a_selector_matches_as_json(run, write):
    limits, fleet = {names.GPUSHARE_MEMORY: "100"}, fleet_of(write, gpushare_nodes(*"abcde"))

    def selected(manifest):
        (line,) = explain_manifest(run, write, manifest, fleet, "-o", "json").lines
        return line["explain"][0]["shapes"][0]["selected"]

    assert selected(pod(limits=limits)) is None
    assert selected(pod(limits=limits, nodeSelector={"zone": "b"})) == {"names": ["n-b"], "nodes": 1}
    assert selected(selecting(limits, "NotIn", "a")) == {"names": ["n-b", "n-c", "n-d"], "nodes": 4}


SHAPE_KEYS = ["names", "nodes", "selected", "mode", "kinds", "placement", "slices", "refusal", "change"]


def explain_json(run, write, **fields):
    (line,) = explain(run, write, "-o", "json", **fields).lines
    (explanation,) = line["explain"]
    return explanation


def test_every_family_has_the_same_json_keys(run, write):
    limits = (vgpus(1, 10), {"volcano.sh/gpu-number": "1"}, {NPU: "1"})
    families = [explain_json(run, write, limits=each) for each in limits]
    cores = {"limits": {"huawei.com/npu-core": "2"}, "metadata": LABELLED}
    families.append(explain_json(run, write, fleet="npu-core.yaml", **cores))
    keys = ["pod", "family", "placeable", "shapes", "skipped"]
    chip = ["pod", "family", "chip", "placeable", "shapes", "skipped"]
    assert [list(family) for family in families] == [keys, keys, chip, keys]
    assert [list(family["shapes"][0]) for family in families] == [SHAPE_KEYS] * 4
    assert [family["family"] for family in families] == ["vgpu", "gpushare", "ascend", "mindcluster"]
    assert [family["shapes"][0]["slices"] for family in families] == [
        [{"container": "main", "device": 7, "memory": 10, "cores": 0, "label": ""}],
        [{"container": "main", "device": 0, "memory": 16000, "cores": 0, "label": "whole card"}],
        [{"container": "main", "device": 0, "memory": 65536, "cores": 0, "label": "whole NPU"}],
        [{"container": "main", "device": 0, "memory": 0, "cores": 2, "label": "vir02_1c"}],
    ]


def test_each_node_of_a_gang_has_a_name_of_its_own(run, write):
    (node,) = yaml.safe_load((FLEETS / "rtx4090.yaml").read_text())["items"]
    fleet = fleet_of(write, [{**node, "metadata": {**node["metadata"], "name": f"gpu-{n}"}} for n in "abc"])
    manifest = job(("server", 1, vgpus(8, 24000)), ("worker", 2, vgpus(8, 12000)), minimum=3)
    (line,) = explain_manifest(run, write, manifest, fleet, "-o", "json").lines
    nodes = {tuple(nodes["pods"]): (nodes["names"], nodes["nodes"]) for nodes in line["gang"]["nodes"]}
    assert nodes == {(1, 0): (["gpu-a"], 1), (0, 2): (["gpu-b"], 1)}


def test_npus_that_the_scheduler_skips_are_named_and_beyond_the_first_50_counted(run, write):
    gated = [ascend_node(f"gated-{number}", ONE_NPU, allocatable={}) for number in range(60)]
    fleet = fleet_of(write, [gated[0], ascend_node("elsewhere", ONE_NPU, "Ascend310P", allocatable={})])
    found = explain_json(run, write, fleet=fleet, limits={NPU: "1"})
    assert found["skipped"] == [{"node": "gated-0", "missing": NPU}]
    fleet = fleet_of(write, gated)
    found = explain_json(run, write, fleet=fleet, limits={NPU: "1"})
    assert (len(found["skipped"]), found["moreSkipped"]) == (50, 10)
    assert "and 57 more nodes that the scheduler skips" in explain(run, write, fleet=fleet, limits={NPU: "1"}).out


def test_the_labels_of_declared_nodes_are_unknown(run, write):
    entry = {"name": "big", "nodes": 2, "family": "gpushare", "cards": [{"type": "T4", "memory": 32000, "count": 2}]}
    policy = write("policy.yaml", {"fleet": {"declared": [entry]}})
    manifest = pod(limits={"volcano.sh/gpu-number": "2"}, nodeSelector={"zone": "b"})
    fleet = fleet_of(write, gpushare_nodes("a"))
    result = explain_manifest(run, write, manifest, fleet, "-o", "json", "--policy", policy)
    real, declared = result.lines[0]["explain"][0]["shapes"]
    assert (real["placement"], real["selected"]) == ("never", {"names": [], "nodes": 0})
    assert (declared["placement"], declared["selected"]) == ("fits", None)


@pytest.mark.parametrize(
    "limits", [{"volcano.sh/gpu-memory": "30000"}, {NPU: "9", NPU_MEMORY: "65536"}, {"huawei.com/npu-core": "1024"}]
)
def test_the_time_for_explanations_of_other_families_is_bounded(limits, run, write):
    containers = [{"name": f"c{n}", "resources": {"limits": limits}} for n in range(MAX_CONTAINERS)]
    for fleet in ("every-family.yaml", "npu-core.yaml"):
        within(10, lambda fleet=fleet: explain(run, write, fleet=fleet, containers=containers, metadata=LABELLED))
