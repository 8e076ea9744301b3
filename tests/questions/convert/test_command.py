"""`vgpu-webhook convert`: manifests of every kind in this cluster's names, and what could not be converted."""

import json

import pytest
import yaml

from tests.workloads import KINDS, workload
from webhook.pod.templates import read_templates

LIMITS = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}
CONVERTED = {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "30"}


def template(limits=LIMITS, **annotations):
    containers = [{"name": "log", "image": "i"}, {"name": "main", "image": "i", "resources": {"limits": limits}}]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": containers}}


def limited(name, limits):
    return {"name": name, "image": "i", "resources": {"limits": limits}}


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
    assert (first["metadata"], requested(first), second) == ({}, [CONVERTED], documents[1])
    assert result.code == 1
    dropped, kept = result.err.splitlines()
    place = "warning: standard input: document {}: metadata.annotations[{}]: Volcano does not read HAMi's annotation {}, and "
    key = "hami.io/gpu-scheduler-policy"
    assert dropped.startswith(place.format(1, key, key) + "nothing says the same: the order in which")
    key = "nvidia.com/vgpu-mode"
    why = 'it cannot be translated: volcano.sh/vgpu-mode may only be hami-core or mig, not "mps"'
    assert kept == place.format(2, key, key) + why


def test_what_says_nothing_leaves_nothing_behind_but_what_selects_the_pods(run):
    kai = {"kai.scheduler/queue": "a"}
    metadata = {"labels": {"app": "d", "aliyun.com/gpu-count": "1"} | kai, "annotations": {"gpu-fraction": "0.5"}}
    spec = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "i"}]}
    raw = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "labels": kai},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": metadata, "spec": spec}},
    }
    share = {"aliyun.com/gpu-mem": 8}
    aliyun = pod(metadata={"labels": {"aliyun.com/gpu-count": "2"}}, spec={"containers": [limited("c", share)]})
    selector = {"aliyun.com/gpu-count": "2"}
    shares = {"metadata": {"labels": selector}, "spec": {"containers": [limited("c", share)]}}
    selecting = raw | {"spec": {"selector": {"matchLabels": selector}, "template": shares}}
    result = run("convert", "-", stdin=yaml.safe_dump_all([raw, aliyun, selecting]).encode())
    first, second, third = yaml.safe_load_all(result.out)
    assert (first["metadata"], second["metadata"]) == ({"name": "d"}, {})
    assert first["spec"]["template"]["metadata"] == {"labels": {"app": "d", "aliyun.com/gpu-count": "1"}}
    assert third["spec"]["template"]["metadata"] == {"labels": {"aliyun.com/gpu-count": "2"}}
    assert "metadata.labels[kai.scheduler/queue]: removed, as nothing says the same" in result.err


def test_whole_cards_of_nvidias_own_plugin_and_what_the_policy_turns_off_are_left(run, write):
    whole, share = pod(**template({"nvidia.com/gpu": 1})), pod(**template())
    manifests = yaml.safe_dump_all([whole, share]).encode()
    for uses, converted in (
        ("", [whole, CONVERTED]),
        ("hami: off", [whole, share]),
        ("hami: translate", [CONVERTED] * 2),
    ):
        policy = write("policy.yaml", f"dialects: {{{uses}}}\n")
        result = run("convert", "--policy", policy, "-", stdin=manifests)
        for after, before, expected in zip(yaml.safe_load_all(result.out), (whole, share), converted, strict=True):
            assert (after == before) == (expected is before), uses
        assert result.code == 0


AMOUNTS = [  # kind, what it has, what becomes of it, and a part of what is said
    (
        ("v1", "ResourceQuota"),
        {"hard": {"requests.nvidia.com/gpu": "4", "requests.nvidia.com/gpumem": "20000", "requests.cpu": "3"}},
        {
            "hard": {
                "requests.cpu": "3",
                "requests.volcano.sh/vgpu-number": "4",
                "requests.volcano.sh/vgpu-memory": "20000",
            }
        },
        "",
    ),
    (("v1", "ResourceQuota"), {"hard": {"requests.nvidia.com/gpu": "4"}}, None, ""),
    (
        ("v1", "ResourceQuota"),
        {"hard": {"limits.nvidia.com/gpucores": "100"}},
        {"hard": {"requests.volcano.sh/vgpu-cores": "100"}},
        "as Kubernetes counts nothing else; HAMi counts it times the number of cards",
    ),
    (
        ("v1", "ResourceQuota"),
        {"hard": {"requests.nvidia.com/priority": "1"}},
        {"hard": {}},
        "counts nothing here, and was removed",
    ),
    (
        ("v1", "LimitRange"),
        {"limits": [{"type": "Container", "max": {"nvidia.com/gpumem": 8000}}]},
        {"limits": [{"type": "Container", "max": {"volcano.sh/vgpu-memory": "8000"}}]},
        "",
    ),
    (
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        {"capability": {"nvidia.com/vgpu-memory": 80000}},
        {"capability": {"volcano.sh/vgpu-memory": "80000"}},
        "",
    ),
    (
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        {"capability": {"nvidia.com/gpumem-percentage": 300}},
        None,
        "write volcano.sh/vgpu-memory: percentages become memory",
    ),
    (
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        {"capability": {"aliyun.com/gpu-mem": 80}},
        None,
        "write volcano.sh/vgpu-memory, of which a pod writes the amount of each card",
    ),
    (("scheduling.run.ai/v2", "Queue"), {}, None, "Volcano does not read KAI's Queue; create a Queue"),
    (
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
        {"resourceGroups": [{"coveredResources": ["cpu", "nvidia.com/gpumem"]}]},
        None,
        "spec.resourceGroups[0].coveredResources[1]: nvidia.com/gpumem is HAMi's, and no converted pod requests it",
    ),
    (  # Kueue's own example for HAMi, site/static/examples/serving-workloads/sample-hami.yaml
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
        {"resourceGroups": [{"coveredResources": ["nvidia.com/gpu", "nvidia.com/total-gpumem"]}]},
        None,
        "spec.resourceGroups[0].coveredResources[0]: nvidia.com/gpu is HAMi's, and no converted pod requests it",
    ),
    (
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),  # NVIDIA's own plugin has the name, too
        {"resourceGroups": [{"coveredResources": ["cpu", "nvidia.com/gpu"]}]},
        None,
        "",
    ),
    (
        ("config.kueue.x-k8s.io/v1beta1", "Configuration"),
        {"resources": {"transformations": [{"outputs": {"nvidia.com/total-gpumem": 1}}]}},
        None,
        "nvidia.com/total-gpumem is made of HAMi's names; make it of volcano.sh/vgpu-memory",
    ),
]


@pytest.mark.parametrize(("kind", "before", "after", "says"), AMOUNTS)
def test_what_counts_or_admits_pods_is_converted_or_named(run, kind, before, after, says):
    raw = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "a"}, "spec": before}
    result = run("convert", "-", stdin=json.dumps(raw).encode())
    assert (result.code, yaml.safe_load(result.out)["spec"]) == (int(bool(says)), before if after is None else after)
    assert says in result.err


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


def test_the_names_of_another_system_than_the_named_one(run, write):
    file = write("hami.yaml", yaml.safe_dump(pod(**template())))
    result = run("convert", "--from", "kai", file)
    assert (result.code, result.err) == (
        1,
        f"warning: {file}: the pod: it has names of HAMi; convert it with --from hami\n",
    )


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


@pytest.mark.parametrize(
    ("scheduler", "arguments", "says"),
    [("hami-scheduler", (), 1), ("volcano", ("--from", "hami"), 1), ("volcano", (), 0)],
)
def test_cards_that_only_hami_shares(scheduler, arguments, says, run):
    amd = pod(**template({"amd.com/gpu": 1, "amd.com/gpumem": 49152, "amd.com/gpucores": 25}))
    amd["spec"]["schedulerName"] = scheduler
    result = run("convert", *arguments, "-", stdin=json.dumps(amd).encode())
    sentence = "amd.com/gpumem is of AMD, whose cards Volcano does not share; leave these pods to HAMi"
    assert (result.code, result.err.count(sentence)) == (says, says)
