"""`review --explain`: the nodes of each family, as text and as JSON."""

import json

import pytest

from tests.cli.conftest import CONFIG, FLEETS, Result, pod, vgpus
from tests.timing import within
from webhook import names
from webhook.pod.size import MAX_CONTAINERS


def explain(run, write, *options, fleet="every-family.yaml", **fields) -> Result:
    """Explain a pod of one container."""
    path = write("pod.yaml", pod(**fields))
    return run("review", "--explain", "--fleet", FLEETS / fleet, "--device-config", CONFIG, *options, path)


# --- vGPUs ----------------------------------------------------------------------------------------------------------


def test_the_placement_of_slices(run, write):
    out = explain(run, write, fleet="rtx4090.yaml", limits=vgpus(2, 1000)).out
    assert "fits    gpu-a: hami-core, 8 × NVIDIA GeForce RTX 4090, 24564 MiB, 10 slices\n" in out
    assert 'container "main" on cards 6, 7\n' in out


@pytest.mark.parametrize(
    "number,annotations,expected",
    [
        (
            9,
            {},
            """            number of cards: container "main" needs 9 different cards, the node has 8
            → with volcano.sh/vgpu-number 8 or less it fits
""",
        ),
        (
            1,
            {"volcano.sh/vgpu-mode": "mig"},
            """            mode: the node is in mode hami-core, the pod requests "mig"
            → without volcano.sh/vgpu-mode it fits
""",
        ),
        (
            2,
            {"nvidia.com/use-gputype": "H100"},
            """card 7 (NVIDIA GeForce RTX 4090): not one that the pod requests; 8 of 8 cards refuse, 2 needed
            → without nvidia.com/use-gputype it fits
""",
        ),
    ],
)
def test_refusals_and_changes_that_help(number, annotations, expected, run, write):
    fields = {"limits": vgpus(number, 1000), "metadata": {"annotations": annotations}}
    assert expected in explain(run, write, fleet="rtx4090.yaml", **fields).out


def test_the_explanation_of_vgpus_as_json(run, write):
    path = write("pod.yaml", pod(limits=vgpus(9, 1000)))
    (line,) = run("review", "-o", "json", "--explain", "--fleet", FLEETS / "rtx4090.yaml", path).lines
    (explanation,) = line["explain"]
    assert (explanation["pod"], explanation["placeable"]) == ("", True)
    (shape,) = explanation["shapes"]
    assert shape["refusal"]["reason"] == "number of cards"
    assert shape["change"] == {"container": "main", "resource": "volcano.sh/vgpu-number", "most": 8}


def test_the_time_for_vgpu_explanations_is_bounded(run, write):
    containers = [{"name": f"c{n}", "resources": {"limits": vgpus(3, 3000 + n, 1 + n % 40)}} for n in range(60)]
    within(20, lambda: explain(run, write, containers=containers))


def test_without_the_selector_it_fits(run, write):
    out = explain(run, write, limits=vgpus(1, 10), nodeSelector={"kubernetes.io/hostname": "gpu-mig"}).out
    expected = """10 slices
            node labels: not what the pod's nodeSelector demands
            → without nodeSelector it fits
    fits    gpu-mig: mig,"""
    assert expected in out


# --- nodes that a selector matches ---------------------------------------------------------------------------------


def gpushare_fleet(write, *zones):
    """Write a fleet of equal gpushare nodes, one in each zone."""
    resources = {"volcano.sh/gpu-number": "4", "volcano.sh/gpu-memory": "400"}
    nodes = [
        {"kind": "Node", "metadata": {"name": f"n-{zone}", "labels": {"zone": zone}}}
        | {"status": {"capacity": resources, "allocatable": resources}}
        for zone in zones
    ]
    return write("twins.yaml", {"apiVersion": "v1", "kind": "List", "items": nodes})


def explain_on_gpushare(run, write, *options, **fields) -> Result:
    path = write("pod.yaml", pod(limits={"volcano.sh/gpu-memory": "100"}, **fields))
    return run("review", "--explain", "--fleet", gpushare_fleet(write, "a", "b", "c", "d", "e"), *options, path)


def affinity(*zones, operator="In"):
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": list(zones)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_the_nodes_that_a_selector_matches_are_named(run, write):
    lines = ["    fits    n-a, n-b, n-c and 2 more: 4 healthy cards with 100 of memory"]
    lines.append("            your node affinity leaves n-b, n-c, n-d and 1 more")
    assert "\n".join(lines) in explain_on_gpushare(run, write, affinity=affinity("a", operator="NotIn")).out
    assert "leaves" not in explain_on_gpushare(run, write).out
    assert "leaves" not in explain_on_gpushare(run, write, affinity=affinity("z", operator="NotIn")).out


def test_the_nodes_that_a_selector_matches_as_json(run, write):
    def selected(**fields):
        (line,) = explain_on_gpushare(run, write, "-o", "json", **fields).lines
        return line["explain"][0]["shapes"][0]["selected"]

    assert selected() is None
    assert selected(nodeSelector={"zone": "b"}) == {"names": ["n-b"], "nodes": 1}
    assert selected(affinity=affinity("a", operator="NotIn")) == {"names": ["n-b", "n-c", "n-d"], "nodes": 4}


def test_a_selector_that_matches_no_node_is_ignored(run, write):
    out = explain_on_gpushare(run, write, nodeSelector={"zone": "z"}).out
    assert (
        """
    your nodeSelector leaves none of them, so it is ignored here
    fits    n-a,"""
        in out
    )


# --- the other families ---------------------------------------------------------------------------------------------

NPU, MEMORY = "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory"
SHARED = {"annotations": {"huawei.com/vnpu-mode": "hami-core"}}


@pytest.mark.parametrize(
    "limits,metadata,expected",
    [
        (
            {"volcano.sh/gpu-memory": "8000"},
            {},
            """  gpushare nodes
    fits    share-a: 3 healthy cards with 16000 of memory
            one card (the first of 3 healthy) takes 8000 of 16000
""",
        ),
        ({"volcano.sh/gpu-number": "1"}, {}, "            1 whole card (the first of 3 healthy)\n"),
        ({"volcano.sh/gpu-number": "3"}, {}, "            3 whole cards (the first of 3 healthy)\n"),
        (
            {"volcano.sh/gpu-memory": "18000"},
            {},
            """            memory: the pod needs 18000 on one card, a card has 16000
            → with volcano.sh/gpu-memory 16000 or less it fits
""",
        ),
        (
            {"volcano.sh/gpu-number": "4"},
            {},
            """            number of cards: the pod needs 4 whole cards, 3 are healthy
            → with volcano.sh/gpu-number 3 or less it fits
""",
        ),
        (
            {NPU: "2"},
            {},
            """  ascend nodes with Ascend910B3
    fits    npu-a: 8 × Ascend910B3, 65536 MiB, 20 AI cores
            container "main" gets 2 whole NPUs (hard split, 65536 MiB each)
""",
        ),
        ({NPU: "1", MEMORY: "9000"}, {}, 'container "main" gets 1 NPU (hard split, by a template of 16384 MiB)\n'),
        (
            {NPU: "9"},
            {},
            """            number of NPUs: container "main" needs 9 different NPUs, the node has 8
            → with huawei.com/Ascend910B3 8 or less it fits
""",
        ),
        (
            {NPU: "2", MEMORY: "20000"},
            {},
            """parts of several NPUs: container "main" needs 20000 MiB of each, but several NPUs are given whole only, 65536 MiB
            → with huawei.com/Ascend910B3 1 it fits
""",
        ),
        (
            {NPU: "1", MEMORY: "70000"},
            {},
            """: container "main" needs 70000 MiB of an NPU that has 65536; the scheduler would book nothing
            → with huawei.com/Ascend910B3-memory 65536 or less it fits
""",
        ),
        (
            {NPU: "1", f"{NPU}-core": "21"},
            {},
            """            cores: container "main" needs 21 AI cores of an NPU, which has 20
            → with huawei.com/Ascend910B3-core 20 or less it fits
""",
        ),
        (
            {NPU: "1", MEMORY: "20000"},
            SHARED,
            """            mode: the pod requests hami-core, but the node does not share its NPUs in software
            → without huawei.com/vnpu-mode it fits
""",
        ),
        (
            {"huawei.com/Ascend910A": "1"},
            {},
            """  ascend nodes with Ascend910A
    no node of the fleet registers Ascend910A NPUs; the fleet has Ascend910B3, Ascend310P
""",
        ),
    ],
)
def test_other_families_are_explained(limits, metadata, expected, run, write):
    out = explain(run, write, limits=limits, metadata=metadata).out
    assert expected in out
    others = {"gpu-a", "gpu-mig", "npu-a", "npu-b", "share-a"} - {"share-a" if "gpu-" in min(limits) else "npu-a"}
    assert not [name for name in others if name in out]


@pytest.mark.parametrize(
    "cores,labels,expected",
    [
        (
            "4",
            {"vnpu-level": "high"},
            """  mindcluster nodes
    fits    npu-c: 32 AI cores, 4 chips of 8
            container "main" gets 4 AI cores of a chip's 8, by template vir04
    fits    npu-d: 20 AI cores, 2 chips of 10
            container "main" gets 4 AI cores of a chip's 10, by template vir04
""",
        ),
        (
            "16",
            {},
            """            container "main" gets 2 whole chips (16 AI cores)
    never   npu-d: 20 AI cores, 2 chips of 10
            template: container "main" requests 16 AI cores, no template (1, 2, 4) and no whole chips of 10
            → with huawei.com/npu-core 10 it fits
""",
        ),
        (
            "40",
            {},
            """            node totals: the pod requests 40 AI cores in total, the node offers 32
            → with huawei.com/npu-core 32 it fits
""",
        ),
        (
            "2",
            {"vnpu-dvpp": "no\x1b"},
            """            label: vnpu-dvpp is "no\\u001b", not yes, no or null
            → without vnpu-dvpp it fits
""",
        ),
    ],
)
def test_mindcluster_is_explained(cores, labels, expected, run, write):
    metadata = {"labels": {"ring-controller.atlas": "ascend-310P", **labels}}
    fields = {"limits": {"huawei.com/npu-core": cores}, "metadata": metadata}
    assert expected in explain(run, write, fleet="npu-core.yaml", **fields).out
    no_node = "  mindcluster nodes\n    no node of the fleet offers huawei.com/npu-core\n"
    assert no_node in explain(run, write, fleet="rtx4090.yaml", **fields).out


@pytest.mark.parametrize(
    "limits,line",
    [
        (vgpus(1, 10), "vgpu nodes\n    no node of the fleet registers vGPU cards"),
        ({"volcano.sh/gpu-number": "1"}, "gpushare nodes\n    no node of the fleet offers volcano.sh/gpu-…"),
        ({NPU: "1"}, "ascend nodes with Ascend910B3\n    no node of the fleet registers Ascend910B3 NPUs"),
    ],
)
def test_a_family_without_nodes_takes_one_line(limits, line, run, write):
    assert f"  {line}\n  next" in explain(run, write, fleet="cpu-only.yaml", limits=limits).out


def test_a_pod_of_two_families_gets_both(run, write):
    result = explain(run, write, limits=vgpus(1, 10) | {NPU: "1", "huawei.com/Ascend310P": "1"})
    lines = [line for line in result.out.splitlines() if " nodes" in line and ":" not in line]
    assert lines == ["  vgpu nodes", "  ascend nodes with Ascend910B3", "  ascend nodes with Ascend310P"]


@pytest.mark.parametrize(
    "resource,amounts,expected",
    [
        ("volcano.sh/gpu-memory", (10000, 9000), "volcano.sh/gpu-memory 7000 or less in"),
        (NPU, (6, 3), "huawei.com/Ascend910B3 5 or less in"),
    ],
)
def test_a_change_names_its_container_if_several_request_devices(resource, amounts, expected, run, write):
    containers = [
        {"name": name, "resources": {"limits": {resource: str(n)}}} for name, n in zip("ab", amounts, strict=True)
    ]
    assert f'→ with {expected} container "a" it fits' in explain(run, write, containers=containers).out


def test_a_selector_is_not_mentioned_if_no_node_has_the_device(run, write):
    out = explain(run, write, limits={"huawei.com/Ascend910A": "1"}, nodeSelector={"zone": "z"}).out
    assert "    no node of the fleet registers Ascend910A NPUs" in out
    assert "so it is ignored" not in out


def test_an_unknown_verdict_has_a_reason(run, write):
    npus = [{"id": str(n), "count": 1, "devmem": 60000 + n, "devcore": 20} for n in range(9)]
    fleet = write("fleet.yaml", {"apiVersion": "v1", "kind": "List", "items": [ascend_node(npus, {NPU: "9"})]})
    out = explain(run, write, fleet=fleet, limits={NPU: "1"}).out
    assert "    unknown  n:" in out
    assert "\n            a node registers too many kinds of NPUs\n" in out


def ascend_node(npus, allocatable, chip="Ascend910B3", name="n"):
    """A node that registers NPUs."""
    annotations = {f"hami.io/node-register-{chip}": json.dumps(npus)}
    metadata = {"name": name, "annotations": annotations}
    return {"kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


def test_pods_of_a_workload_are_named_by_their_path(run, write):
    spec = pod(limits={"volcano.sh/gpu-number": "1"})["spec"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}}
    result = run("review", "--explain", "--fleet", FLEETS / "every-family.yaml", write("job.yaml", job))
    assert "  gpushare nodes for spec.template\n" in result.out


@pytest.mark.parametrize(
    "resource,amount", [("volcano.sh/vgpu-number", 1), ("volcano.sh/gpu-memory", 99999), (NPU, 1), (NPU, 9)]
)
def test_escape_sequences_never_reach_the_terminal(resource, amount, run, write):
    containers = [
        {"name": f"{n}\x1b]0;x\x07\u202e\n", "resources": {"limits": {resource: str(n)}}} for n in (amount, 1)
    ]
    out = explain(run, write, containers=containers).out
    assert "\\u202e" in out
    assert all(line.isprintable() for line in out.split("\n"))


@pytest.mark.parametrize(
    "limits,metadata",
    [
        ({"volcano.sh/vgpu-number": "0"}, {}),
        ({"volcano.sh/gpu-number": "0"}, {}),
        ({"volcano.sh/gpu-memory": "0"}, {}),
        ({"volcano.sh/gpu-memory": "8Ei"}, {}),
        ({NPU: "0"}, {}),
        ({f"{NPU}-core": "3"}, {}),
        ({NPU: "1", MEMORY: "1500m"}, {}),
        ({"huawei.com/npu-core": "0"}, {"labels": {"ring-controller.atlas": "ascend-310P"}}),
    ],
)
def test_nothing_to_place(limits, metadata, run, write):
    fields = {"limits": limits, "metadata": metadata}
    assert "nothing to place: correct the quantities first" in explain(run, write, **fields).out
    (line,) = explain(run, write, "-o", "json", **fields).lines
    assert [(each["placeable"], each["shapes"]) for each in line["explain"]] == [(False, [])]


# --- JSON -----------------------------------------------------------------------------------------------------------

SHAPE_KEYS = ["names", "nodes", "selected"]
RESULT_KEYS = ["placement", "slices", "refusal", "change"]


def explain_json(run, write, **fields):
    (line,) = explain(run, write, "-o", "json", **fields).lines
    (explanation,) = line["explain"]
    return explanation


def test_every_family_has_the_same_json_keys(run, write):
    vgpu = explain_json(run, write, limits=vgpus(1, 10))
    assert list(vgpu) == ["pod", "family", "placeable", "shapes", "skipped"]
    assert list(vgpu["shapes"][0]) == [*SHAPE_KEYS, "mode", "cards", *RESULT_KEYS]
    share = explain_json(run, write, limits={"volcano.sh/gpu-number": "1"})
    assert list(share) == list(vgpu)
    assert list(share["shapes"][0]) == [*SHAPE_KEYS, "cards", *RESULT_KEYS]
    npu = explain_json(run, write, limits={NPU: "1"})
    assert list(npu) == ["pod", "family", "chip", "placeable", "shapes", "skipped"]
    assert list(npu["shapes"][0]) == [*SHAPE_KEYS, "npus", "hamiCore", *RESULT_KEYS]
    metadata = {"labels": {"ring-controller.atlas": "ascend-310P"}}
    cores = explain_json(run, write, fleet="npu-core.yaml", limits={"huawei.com/npu-core": "2"}, metadata=metadata)
    assert list(cores["shapes"][0]) == [*SHAPE_KEYS, "cores", "chips", *RESULT_KEYS]
    assert [each["family"] for each in (vgpu, share, npu, cores)] == ["vgpu", "gpushare", "ascend", "mindcluster"]
    slices = [each["shapes"][0]["slices"] for each in (share, npu, cores)]
    assert slices == [
        {"cards": 1, "memory": None},
        {
            "mode": "hard split",
            "containers": [{"container": "main", "npus": 1, "memory": 65536, "whole": True}],
        },
        {"containers": [{"container": "main", "cores": 2, "chips": 0, "template": "vir02_1c"}]},
    ]


def test_refusals_and_changes_have_the_same_json_keys(run, write):
    (shape,) = explain_json(run, write, limits={NPU: "9"})["shapes"]
    message = 'number of NPUs: container "main" needs 9 different NPUs, the node has 8'
    assert shape["refusal"] == {"reason": "number of NPUs", "container": "main", "message": message}
    assert shape["change"] == {"container": "main", "resource": NPU, "most": 8}
    (shape,) = explain_json(run, write, limits={NPU: "1"}, metadata=SHARED)["shapes"]
    assert shape["change"] == {"remove": "huawei.com/vnpu-mode"}


def test_npus_that_the_scheduler_skips_are_named(run, write):
    npus = [{"id": "a", "count": 1, "devmem": 65536, "devcore": 20}]
    nodes = [ascend_node(npus, {}, name="gated"), ascend_node(npus, {}, "Ascend310P", "elsewhere")]
    fleet = write("fleet.yaml", {"apiVersion": "v1", "kind": "List", "items": nodes})
    _, _, out = explain(run, write, fleet=fleet, limits={NPU: "1"}).out.partition("ascend nodes")
    assert "never   gated: the scheduler skips it, its allocatable huawei.com/Ascend910B3 is missing\n" in out
    assert "registers" not in out
    assert explain_json(run, write, fleet=fleet, limits={NPU: "1"})["skipped"] == [{"node": "gated", "missing": NPU}]


def test_the_labels_of_declared_nodes_are_unknown(run, write):
    entry = {"name": "big", "nodes": 2, "family": "gpushare", "cards": [{"type": "T4", "memory": 32000, "count": 2}]}
    policy = write("policy.yaml", {"fleet": {"declared": [entry]}})
    path = write("pod.yaml", pod(limits={"volcano.sh/gpu-number": "2"}, nodeSelector={"zone": "b"}))
    result = run("review", "-o", "json", "--explain", "--fleet", gpushare_fleet(write, "a"), "--policy", policy, path)
    real, declared = result.lines[0]["explain"][0]["shapes"]
    assert (real["placement"], real["selected"]) == ("never", {"names": [], "nodes": 0})
    assert (declared["placement"], declared["selected"]) == ("fits", None)


def test_the_ai_cores_of_declared_npus_are_unknown(run, write):
    entry = {"name": "big", "family": "ascend", "cards": [{"type": "Ascend910A", "memory": 32768, "count": 2}]}
    options = ("--policy", write("policy.yaml", {"fleet": {"declared": [entry]}}))
    limits = {"huawei.com/Ascend910A": "1"}
    assert "big (declared): 2 × Ascend910A, 32768 MiB\n" in explain(run, write, *options, limits=limits).out
    (line,) = explain(run, write, *options, "-o", "json", limits=limits).lines
    assert [npu["cores"] for npu in line["explain"][0]["shapes"][0]["npus"]] == [None]


@pytest.mark.parametrize(
    "limits", [{"volcano.sh/gpu-memory": "30000"}, {NPU: "9", MEMORY: "65536"}, {"huawei.com/npu-core": "1024"}]
)
def test_the_time_for_explanations_of_other_families_is_bounded(limits, run, write):
    containers = [{"name": f"c{n}", "resources": {"limits": limits}} for n in range(MAX_CONTAINERS)]
    metadata = {"labels": {"ring-controller.atlas": "ascend-310P"}}
    for fleet in ("every-family.yaml", "npu-core.yaml"):
        within(10, lambda fleet=fleet: explain(run, write, fleet=fleet, containers=containers, metadata=metadata))


# --- gangs ----------------------------------------------------------------------------------------------------------


def job(*tasks, minimum):
    """A Volcano Job: name, pods and limits of each task."""
    described = [
        {"name": name, "replicas": pods, "template": {"spec": pod(limits=limits)["spec"]}}
        for name, pods, limits in tasks
    ]
    spec = {"schedulerName": "volcano", "minAvailable": minimum, "tasks": described}
    return {"apiVersion": names.VCJOB_API, "kind": "Job", "metadata": {"name": "train"}, "spec": spec}


SERVER, WORKER = ("server", 2, vgpus(1, 1000)), ("worker", 3, vgpus(8, 20000))


def test_the_placement_of_a_gang(run, write):
    path = write("job.yaml", job(SERVER, WORKER, minimum=3))
    out = run("review", "--explain", "--fleet", FLEETS / "rtx4090.yaml", path).out
    assert "  gang of 3 pods that start together (spec.minAvailable)\n    fits    " in out
    assert "            gpu-a: 2 × server, 1 × worker\n            left over: 2 × worker\n" in out


@pytest.mark.parametrize("minimum,placement,left", [(5, "never", [0, 2]), (3, "fits", [0, 2])])
def test_a_gang_as_json(minimum, placement, left, run, write):
    path = write("job.yaml", job(SERVER, WORKER, minimum=minimum))
    (line,) = run("review", "-o", "json", "--explain", "--fleet", FLEETS / "rtx4090.yaml", path).lines
    gang = line["gang"]
    assert (gang["placement"], [task["left"] for task in gang["tasks"]]) == (placement, left)
    assert gang["nodes"] == [{"names": ["gpu-a"], "nodes": 1, "pods": [2, 1]}]


@pytest.mark.parametrize("pods", [100, 2**31 - 1])
def test_a_gang_of_any_size_is_explained(pods, run, write):
    path = write("job.yaml", job(("worker", pods, vgpus(1, 1000)), minimum=1))
    (line,) = run("review", "-o", "json", "--explain", "--fleet", FLEETS / "rtx4090.yaml", path).lines
    (task,) = line["gang"]["tasks"]
    assert (task["pods"], task["placed"], line["gang"]["placement"]) == (pods, 80, "fits")
    assert task["left"] <= pods - 80
