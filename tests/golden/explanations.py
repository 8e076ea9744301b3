"""What `vgpu-webhook review --explain` prints for pods of each family, as one text."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from tests.cli.conftest import CONFIG, FLEETS, pod, vgpus
from tests.strategies import ascend_node, gpushare_node
from webhook import names
from webhook.cli.main import main

EXPLANATIONS = Path(__file__).parent / "explanations.txt"

Json = dict[str, Any]

SHARES, SHARE_MEMORY = names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY
NPU, NPU_MEMORY, OTHER_NPU = "huawei.com/Ascend910B3", "huawei.com/Ascend910B3-memory", "huawei.com/Ascend310P"
UNKNOWN_NPU = "huawei.com/Ascend910A"


class Case(NamedTuple):
    """A manifest, and the nodes to explain it on: the name of a file, or the nodes."""

    manifest: Json
    fleet: str | list[Json] = "every-family"
    policy: Json | None = None


def cores(number: int, **labels: str) -> Json:
    found = {key.replace("_", "-"): label for key, label in labels.items()}
    found |= {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}
    return pod(limits={names.NPU_CORE: str(number)}, metadata={"labels": found})


def two_containers(resource: str, first: int, second: int) -> Json:
    amounts = {"a": first, "b": second}
    return pod(containers=[{"name": name, "resources": {"limits": {resource: str(n)}}} for name, n in amounts.items()])


def selecting(limits: dict[str, str], operator: str, zone: str) -> Json:
    terms = [{"matchExpressions": [{"key": "zone", "operator": operator, "values": [zone]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return pod(limits=limits, affinity=affinity)


def gpushare_nodes(*zones: str) -> list[Json]:
    """Equal gpushare nodes, one in each zone."""
    return [gpushare_node(f"n-{zone}", 4, 400, labels={"zone": zone}) for zone in zones]


def job(*tasks: tuple[str, int, dict[str, str]], minimum: int) -> Json:
    """A Volcano Job: name, pods and limits of each task."""
    described = [
        {"name": name, "replicas": pods, "template": {"spec": pod(limits=limits)["spec"]}}
        for name, pods, limits in tasks
    ]
    spec = {"schedulerName": "volcano", "minAvailable": minimum, "tasks": described}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}


ONE_NPU = [(1, 65536, 20)]
TOO_MANY_KINDS = [(1, 60000 + n, 20) for n in range(9)]
ZONES = gpushare_nodes("a", "b", "c", "d", "e")
DECLARED = {"name": "big", "family": "ascend", "cards": [{"type": "Ascend910A", "memory": 32768, "count": 2}]}
SHARED = {names.VNPU_MODE: "hami-core"}
SHARING = {"target": {"volcano": "1.16.0"}}  # the first release that shares NPUs in software
SPEC = pod(limits={SHARES: "1"})["spec"]

CASES = {
    "slices on two cards": Case(pod(limits=vgpus(2, 1000)), "rtx4090"),
    "more cards than a node has": Case(pod(limits=vgpus(9, 1000)), "rtx4090"),
    "another mode": Case(pod(limits=vgpus(1, 1000), metadata={"annotations": {names.VGPU_MODE: "mig"}}), "rtx4090"),
    "another type": Case(pod(limits=vgpus(2, 1000), metadata={"annotations": {names.USE_GPUTYPE: "H100"}}), "rtx4090"),
    "a node selector": Case(pod(limits=vgpus(1, 10), nodeSelector={"kubernetes.io/hostname": "gpu-mig"})),
    "no vGPU node": Case(pod(limits=vgpus(1, 10)), "cpu-only"),
    "no vGPU to place": Case(pod(limits={names.VGPU_NUMBER: "0"})),
    "a part of a shared card": Case(pod(limits={SHARE_MEMORY: "8000"})),
    "a shared card": Case(pod(limits={SHARES: "1"})),
    "all shared cards": Case(pod(limits={SHARES: "3"})),
    "more memory than a shared card has": Case(pod(limits={SHARE_MEMORY: "18000"})),
    "more shared cards than are healthy": Case(pod(limits={SHARES: "4"})),
    "memory of shared cards for two containers": Case(two_containers(SHARE_MEMORY, 10000, 9000)),
    "an affinity": Case(selecting({SHARE_MEMORY: "100"}, "NotIn", "a"), ZONES),
    "an affinity that every node matches": Case(selecting({SHARE_MEMORY: "100"}, "NotIn", "z"), ZONES),
    "a selector that no node matches": Case(pod(limits={SHARE_MEMORY: "100"}, nodeSelector={"zone": "z"}), ZONES),
    "no gpushare node": Case(pod(limits={SHARES: "1"}), "cpu-only"),
    "no shared card to place": Case(pod(limits={SHARES: "0"})),
    "no memory of a shared card to place": Case(pod(limits={SHARE_MEMORY: "0"})),
    "more memory of a shared card than a number can be": Case(pod(limits={SHARE_MEMORY: "8Ei"})),
    "a workload": Case(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": SPEC}}}
    ),
    "whole NPUs": Case(pod(limits={NPU: "2"})),
    "a part of an NPU": Case(pod(limits={NPU: "1", NPU_MEMORY: "9000"})),
    "more NPUs than a node has": Case(pod(limits={NPU: "9"})),
    "parts of two NPUs": Case(pod(limits={NPU: "2", NPU_MEMORY: "20000"})),
    "more memory than an NPU has": Case(pod(limits={NPU: "1", NPU_MEMORY: "70000"})),
    "more AI cores than an NPU has": Case(pod(limits={NPU: "1", f"{NPU}-core": "21"}), policy=SHARING),
    "AI cores that Volcano does not read": Case(pod(limits={NPU: "1", f"{NPU}-core": "8"})),
    "NPUs that Volcano does not serve": Case(pod(limits={NPU: "1"}), policy={"target": {"volcano": "1.13.3"}}),
    "NPUs shared in software": Case(
        pod(limits={NPU: "1", NPU_MEMORY: "20000"}, metadata={"annotations": SHARED}), policy=SHARING
    ),
    "NPUs for two containers": Case(two_containers(NPU, 6, 3)),
    "a chip that no node has": Case(pod(limits={UNKNOWN_NPU: "1"}, nodeSelector={"zone": "z"})),
    "a chip of declared nodes": Case(pod(limits={UNKNOWN_NPU: "1"}), policy={"fleet": {"declared": [DECLARED]}}),
    "too many kinds of NPUs": Case(pod(limits={NPU: "1"}), [ascend_node("n", TOO_MANY_KINDS)]),
    "a node whose NPUs are not offered": Case(
        pod(limits={NPU: "1"}),
        [ascend_node("n", ONE_NPU, allocatable={}), ascend_node("elsewhere", ONE_NPU, "Ascend310P", allocatable={})],
    ),
    "no Ascend node": Case(pod(limits={NPU: "1"}), "cpu-only"),
    "no NPU to place": Case(pod(limits={NPU: "0"})),
    "AI cores without an NPU": Case(pod(limits={f"{NPU}-core": "3"})),
    "a fraction of a MiB of an NPU": Case(pod(limits={NPU: "1", NPU_MEMORY: "1500m"})),
    "AI cores of a chip": Case(cores(4, vnpu_level="high"), "npu-core"),
    "AI cores of whole chips": Case(cores(16), "npu-core"),
    "more AI cores than a node has": Case(cores(40), "npu-core"),
    "a label with a wrong value": Case(cores(2, vnpu_dvpp="no\x1b"), "npu-core"),
    "no MindCluster node": Case(cores(4), "rtx4090"),
    "no AI core to place": Case(cores(0)),
    "two families": Case(pod(limits=vgpus(1, 10) | {NPU: "1", OTHER_NPU: "1"})),
    "a gang": Case(job(("server", 2, vgpus(1, 1000)), ("worker", 3, vgpus(8, 20000)), minimum=3), "rtx4090"),
}


def explanations() -> str:
    """All cases with their explanations."""
    return "".join(_texts())


def _texts() -> Iterator[str]:
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as directory, chdir(directory), redirect_stdout(StringIO()) as printed:
            fleet = FLEETS / f"{case.fleet}.yaml" if isinstance(case.fleet, str) else Path("fleet.json")
            if not isinstance(case.fleet, str):
                items = [{"kind": "Node"} | node for node in case.fleet]
                fleet.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
            Path("policy.json").write_text(json.dumps(case.policy or {}))
            Path("it.json").write_text(json.dumps(case.manifest))
            options = ["--fleet", str(fleet), "--device-config", str(CONFIG), "--policy", "policy.json"]
            with patch.dict(os.environ):
                for variable in ("NO_COLOR", "FORCE_COLOR"):
                    os.environ.pop(variable, None)
                main(["review", "--explain", *options, "it.json"])
        yield f"=== {name}\n{printed.getvalue()}\n"
