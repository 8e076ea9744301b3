"""`vgpu-webhook convert`: manifests of every kind in this cluster's names, and what could not be converted."""

import json

import yaml

from tests.workloads import KINDS, workload
from webhook.pod.templates import read_templates

LIMITS = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
CONVERTED = {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "30"}


def template(limits=LIMITS, **annotations):
    containers = [{"name": "log", "image": "i"}, {"name": "main", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def pod(**fields):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}} | fields


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


def test_an_unknown_kind_a_list_and_other_objects(run, write, tmp_path):
    (tmp_path / "manifests" / "below").mkdir(parents=True)
    unknown = {"apiVersion": "example.org/v1", "kind": "Fleet", "metadata": {"name": "f"}, "parts": [template()]}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"nvidia.com/gpumem": "1"}}
    write("manifests/below/all.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [unknown, other]}))
    write("manifests/values.yaml", "replicas: 1\n")
    directory = write("manifests/pod.yaml", yaml.safe_dump(pod(**template()))).parent
    result = run("convert", "--from", "hami", "-R", directory)
    assert (result.code, result.err) == (0, "")
    fleet, config, single = yaml.safe_load_all(result.out)
    assert (requested(fleet["parts"][0]), requested(single), config) == ([CONVERTED], [CONVERTED], other)


def test_what_has_no_counterpart_is_told_and_what_would_change_the_slice_is_left(run):
    documents = [
        pod(**template(**{"hami.io/gpu-scheduler-policy": "spread"})),
        pod(**template(**{"nvidia.com/vgpu-mode": "mps"})),
    ]
    result = run("convert", "--from", "hami", "-", stdin=yaml.safe_dump_all(documents).encode())
    first, second = yaml.safe_load_all(result.out)
    assert (first["metadata"]["annotations"], requested(first), second) == ({}, [CONVERTED], documents[1])
    assert result.code == 1
    dropped, kept = result.err.splitlines()
    place = "warning: standard input: document {}: metadata.annotations[{}]: Volcano does not read HAMi's annotation {}, and "
    key = "hami.io/gpu-scheduler-policy"
    assert dropped.startswith(place.format(1, key, key) + "nothing says the same: the order in which")
    key = "nvidia.com/vgpu-mode"
    why = 'it cannot be translated: volcano.sh/vgpu-mode may only be hami-core or mig, not "mps"'
    assert kept == place.format(2, key, key) + why


def test_a_pod_is_converted_as_a_whole_or_not_at_all(run):
    documents = [
        pod(**template({"nvidia.com/gpu": 1}, **{"nvidia.com/gpumem": "3000"})),
        pod(**template({"nvidia.com/gpu": 1, "nvidia.com/gpumem": "8Gi"})),
        pod(**template({"nvidia.com/gpu": 1, "nvidia.com/gpumen": 3000})),
    ]
    result = run("convert", "--from", "hami", "-", stdin=yaml.safe_dump_all(documents).encode())
    assert (result.code, list(yaml.safe_load_all(result.out))) == (1, documents)
    for said, meant in zip(
        result.err.splitlines(), ("resources.limits", "write 8192", "did you mean nvidia.com/gpumem"), strict=True
    ):
        assert meant in said


def test_a_name_and_its_amount_in_two_fields(run):
    spec = {"driver": {"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}}
    raw = {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "s"},
        "spec": spec,
    }
    result = run("convert", "--from", "hami", "-", stdin=json.dumps(raw).encode())
    assert (result.code, yaml.safe_load(result.out)) == (1, raw)
    assert "spec.driver: its name is written in another field than its amount; convert it by hand" in result.err


def test_the_names_and_units_of_the_device_config(run, write):
    config = write("config.yaml", "nvidia: {resourceMemoryName: example.org/slice, gpuMemoryFactor: 1024}\n")
    raw = pod(spec={"containers": [{"name": "m", "resources": {"limits": {"aliyun.com/gpu-mem": 3}}}]})
    result = run("convert", "--from", "aliyun", "--device-config", config, "-", stdin=json.dumps(raw).encode())
    assert requested(yaml.safe_load(result.out)) == [{"volcano.sh/vgpu-number": "1", "example.org/slice": "3"}]


def test_what_cannot_be_read_is_reported_and_the_rest_is_printed(run, write):
    good, bad = write("good.yaml", yaml.safe_dump(pod(**template()))), write("bad.yaml", "a: [")
    result = run("convert", "--from", "hami", bad, good)
    assert (result.code, requested(yaml.safe_load(result.out))) == (2, [CONVERTED])
    assert result.err.startswith(f"error: {bad}: ")
    assert run("convert", "--from", "slurm", good).code == 2


def test_the_dialect_is_found_and_two_of_one_pod_are_told(run):
    two = template(limits=LIMITS | {"aliyun.com/gpu-mem": 3})
    documents = [pod(**template()), pod(**template({"tencent.com/vcuda-core": 100})), pod(**two)]
    result = run("convert", "-", stdin=yaml.safe_dump_all(documents).encode())
    first, second, third = yaml.safe_load_all(result.out)
    assert (requested(first), requested(second)) == (
        [CONVERTED],
        [{"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-cores": "100"}],
    )
    assert (result.code, third) == (1, documents[2])
    assert "the pod uses names of HAMi and aliyun, so none is translated" in result.err


def test_what_was_converted_is_reviewed(run, write):
    config = write("config.yaml", "nvidia: {deviceSplitCount: 4}\n")
    raw = pod(**template(LIMITS | {"nvidia.com/gpucores": 130}))
    result = run("convert", "--device-config", config, "-", stdin=json.dumps(raw).encode())
    assert result.code == 1
    assert "converted, but cores-range: " in result.err
