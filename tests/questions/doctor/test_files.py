"""Facts from files in any layout, and what an absent object means."""

import json
import os
import shutil
import tracemalloc

import pytest
import yaml

from tests.questions.doctor.cluster import HEALTHY, NOW, check_results, healthy, secret
from webhook.errors import ConfigError
from webhook.inputs.documents import manifest_files
from webhook.inputs.files import MAX_CHECKED
from webhook.questions.doctor.facts import Facts, ObjectKind, Unread
from webhook.questions.doctor.gather import facts_from_files
from webhook.questions.doctor.registry import examine
from webhook.results import Status


@pytest.fixture
def read(tmp_path):
    def read():
        facts = facts_from_files([tmp_path], Facts(now=NOW))
        assert facts.complaints == ()
        return facts

    return read


def results(facts):
    return {result.check: result for result in examine(facts) if result.check not in ("webhook-ready", "failed-open")}


def dump(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value) if path.suffix == ".json" else yaml.safe_dump(value))


def test_a_list_as_kubectl_prints_it_is_read(read, tmp_path):
    dump(tmp_path / "all.json", {"kind": "List", "items": list(healthy().values())})
    assert {result.status for result in results(read()).values()} == {Status.OK}


def test_files_with_one_object_are_read_from_folders(read, tmp_path):
    for number, raw in enumerate(healthy().values()):
        dump(tmp_path / raw["kind"] / f"{number}.yml", raw)
    by_check = results(read())
    alone = "queues queue-limits quota-limits device-classes other-webhooks volcano-admission configuration-writers"
    for check in [*alone.split(), "secret-readers", "pod-creators"]:
        assert by_check.pop(check).status is Status.UNCHECKED  # single objects do not show that there are no others
    assert {result.status for result in by_check.values()} == {Status.OK}


def test_the_items_of_a_node_list_are_nodes(read, tmp_path):
    dump(tmp_path / "nodes.yaml", {"kind": "NodeList", "items": [{"metadata": {"name": "a"}}, "junk"]})
    facts = read()
    assert len(facts.all(ObjectKind.NODE)) == 1
    assert facts.gap(ObjectKind.NODE) is None


def test_nested_lists_and_streams_are_read(read, tmp_path):
    nodes = {"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a"}}]}
    (tmp_path / "a.yaml").write_text(f"{json.dumps({'kind': 'List', 'items': [nodes]})}\n---\n{{}}")
    assert len(read().all(ObjectKind.NODE)) == 1


def test_an_object_is_absent_only_if_a_list_of_its_namespace_is_read(read, tmp_path):
    shutil.copy(HEALTHY / "workloads.yaml", tmp_path)
    dump(tmp_path / "one.yaml", healthy()["ConfigMap/volcano-system/volcano-scheduler-configmap"])
    assert check_results("device-config", read())[0].status is Status.UNCHECKED
    other = {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": "kube-system"}}
    dump(tmp_path / "list.yaml", {"kind": "List", "items": [other]})
    assert check_results("device-config", read())[0].status is Status.BROKEN
    assert isinstance(read().find(ObjectKind.CONFIG_MAP, "vgpu-webhook", "vgpu-webhook-policy"), Unread)
    more = {**other, "metadata": {"name": "x", "namespace": "y"}}
    dump(tmp_path / "list.yaml", {"kind": "List", "items": [other, more]})
    assert read().find(ObjectKind.CONFIG_MAP, "vgpu-webhook", "vgpu-webhook-policy") is None


def test_a_missing_file_is_reported_with_the_command_that_prints_it(read, tmp_path):
    dump(tmp_path / "nodes.yaml", {"kind": "Node", "metadata": {"name": "a"}})
    assert "kubectl get configmaps -A -o yaml" in check_results("policy", read())[0].remedy
    assert 'del(.data["tls.key"])' in check_results("serving-certificate", read())[0].remedy


def test_large_files_are_read_item_by_item(tmp_path, read):
    """What kubectl prints of 5,000 nodes and 50,000 pods was refused: more than 256 MiB."""
    images = [{"names": ["x" * 4_000]}] * 12
    pods = [
        {"kind": "Pod", "metadata": {"name": f"{at}", "namespace": "a"}, "spec": {"volumes": images}, "status": {}}
        for at in range(250)
    ]
    objects = {**healthy(), "Node/big": {"kind": "Node", "metadata": {"name": "big"}, "status": {"images": images}}}
    dump(tmp_path / "all.json", {"kind": "List", "items": [*pods, {"kind": "Lease"}, *objects.values()]})
    assert (tmp_path / "all.json").stat().st_size > MAX_CHECKED
    tracemalloc.start()
    facts = read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * MAX_CHECKED  # of the first piece: the bytes, the text, and the text with what is left of it
    assert {result.status for result in results(facts).values()} == {Status.OK}
    assert len(facts.all(ObjectKind.POD)) == len(pods) + sum(raw["kind"] == "Pod" for raw in objects.values())


def test_private_keys_are_not_kept(read, tmp_path):
    raw = secret()
    raw["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(raw)}
    raw["stringData"] = {"tls.key": "secret"}
    dump(tmp_path / "secret.yaml", raw)
    (kept,) = read().all(ObjectKind.SECRET)
    assert raw["data"]["tls.key"] not in json.dumps(kept)
    assert kept["data"].keys() == {"tls.crt"}
    assert kept.keys() == {"metadata", "data"}


def test_a_directory_without_readable_files_is_an_error(tmp_path):
    """Neither other files nor pipes are read."""
    (tmp_path / "notes.txt").write_text("a: [")
    os.mkfifo(tmp_path / "pipe.yaml")
    for place, message in ((tmp_path, "no file in this directory"), (tmp_path / "absent", "No such file")):
        with pytest.raises(ConfigError, match=message):
            facts_from_files([place], Facts())


def test_the_number_and_the_total_size_of_the_files_are_bounded(tmp_path):
    dump(tmp_path / "a.yaml", {"kind": "Node", "metadata": {"name": "a"}})
    dump(tmp_path / "b.yaml", {"kind": "Node", "metadata": {"name": "b" * 60}})
    with pytest.raises(ConfigError, match="more than 1 files"):
        manifest_files(tmp_path, recursive=True, most=1)
    facts = facts_from_files([tmp_path], Facts(), most=100)
    assert len(facts.all(ObjectKind.NODE)) == 1
    assert "larger than" in facts.complaints[0]
