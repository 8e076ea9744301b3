"""`vgpu-webhook convert`: manifests of every kind in this cluster's names, and what could not be converted."""

import yaml

from tests.cli.rows import rows
from tests.workloads import KINDS, workload
from webhook.pod.templates import read_templates

test_command = rows(__file__)

LIMITS = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
CONVERTED = {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "30"}


def template(limits=LIMITS, **annotations):
    containers = [{"name": "log", "image": "i"}, {"name": "main", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def requested(raw):
    return [c["resources"]["limits"] for c in raw["spec"]["containers"] if c.get("resources")]


def test_the_pods_of_every_kind_are_converted_in_place(run):
    documents = [workload(kind, [template()]) for kind in KINDS]
    result = run("convert", "--from", "hami", "-", stdin=yaml.safe_dump_all(documents).encode())
    assert (result.code, result.err) == (0, "")
    converted = list(yaml.safe_load_all(result.out))
    assert len(converted) == len(KINDS)
    for kind, before, after in zip(KINDS, documents, converted, strict=True):
        assert [requested(each.pod) for each in read_templates(kind, after)] == [[CONVERTED]] * len(
            list(read_templates(kind, before))
        ), kind
    again = run("convert", "--from", "hami", "-o", "diff", "-", stdin=result.out.encode())
    assert (again.code, again.out, again.err) == (0, "", "")
