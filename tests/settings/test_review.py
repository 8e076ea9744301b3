"""What the webhook and Volcano read as settings is reviewed when it is written, with the words of `policy check` and doctor."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.clusters import DATA, request
from webhook.devices.config_file import parse_device_config
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.rules.context import Collections
from webhook.settings.review import review_setting
from webhook.settings.snapshot import SnapshotInputs, read_nodes
from webhook.settings.table import FLEET, QUEUES, SCHEDULER
from webhook.snapshot import Snapshot
from webhook.wire.codec import to_request

FIELD = DATA / "field" / "fleets"
NAMES = {
    "resourceCountName": "volcano.sh/vgpu-number",
    "resourceMemoryName": "volcano.sh/vgpu-memory",
    "resourceCoreName": "volcano.sh/vgpu-cores",
    "resourceMemoryPercentageName": "volcano.sh/vgpu-memory-percentage",
}
NESTED = """
tiers:
- plugins:
  - {name: priority}
  - {name: capacity, enableHierarchy: true}
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}
"""
PARENTS = """
kind: List
items:
- {kind: Queue, metadata: {name: root}}
- {kind: Queue, metadata: {name: lab}, spec: {parent: root, capability: {volcano.sh/vgpu-number: 4}}}
"""


def snapshot(policy: str = "{}", conf: str | None = NESTED, fleet: Path = DATA / "fleets" / "mixed.yaml") -> Snapshot:
    config = parse_device_config({"nvidia": dict(NAMES)}, "device-config.yaml")
    scheduler = None if conf is None else SCHEDULER.read(conf.encode(), "volcano-scheduler.conf")
    queues = QUEUES.index(QUEUES.kept(yaml.safe_load(PARENTS)["items"]))
    nodes = read_nodes(FLEET.load(fleet), config)
    read = parse_policy(yaml.safe_load(policy), "policy")
    return SnapshotInputs(config, read, nodes, scheduler, Collections(queues)).snapshot()


def written(
    obj: dict[str, Any], before: dict[str, Any] | None = None, where: Snapshot | None = None, **more: Any
) -> Outcome:
    metadata = obj["metadata"]
    sent = request(obj, "UPDATE" if before else "CREATE", oldObject=before, name=metadata["name"], **more)
    sent["namespace"] = metadata.get("namespace", "")
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": sent}
    return review_setting(to_request(review), where or snapshot())


def config_map(place: str, key: str, text: str) -> dict[str, Any]:
    namespace, name = place.split("/")
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def policy(text: str) -> dict[str, Any]:
    return config_map("vgpu-webhook/vgpu-webhook-policy", "policy.yaml", text)


def device_config(*, place: str = "kube-system/volcano-vgpu-device-config", **nvidia: Any) -> dict[str, Any]:
    return config_map(place, "device-config.yaml", yaml.safe_dump({"nvidia": NAMES | nvidia}))


def scheduler(text: str) -> dict[str, Any]:
    return config_map("volcano-system/volcano-scheduler-configmap", "volcano-scheduler.conf", text)


def queue(capability: dict[str, Any], **spec: Any) -> dict[str, Any]:
    spec |= {"capability": capability}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}, "spec": spec}


def quota(amounts: dict[str, Any], namespace: str = "team-a") -> dict[str, Any]:
    metadata = {"name": "quota", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": amounts}}


# --- the policy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("enforcemnt: warn", "enforcemnt: no such key; did you mean 'enforcement'?"),
        ("rules: {card-cuont: deny}", "no rule is called 'card-cuont'; did you mean 'card-count'?"),
        ("a: [", "not YAML"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_with_the_words_of_policy_check(text: str, says: str):
    outcome = written(policy(text))
    assert not outcome.allowed
    assert says in outcome.message()
    assert {violation.rule for violation in outcome.violations} == {"policy"}


def test_all_mistakes_of_a_policy_are_listed():
    assert len(written(policy("enforcemnt: warn\nrules: {card-cuont: deny}")).denials) == 2


def test_a_policy_without_its_key_is_refused():
    assert "has no key policy.yaml" in written(config_map("a/vgpu-webhook-policy", "other", "{}")).message()


PLACES = {"policy": [("gpu-system", "team-vgpu-webhook-policy")], "config": [("infra", "gpus")]}
BY_PLACE = [
    # place, whether it is reviewed without options, and with those of PLACES
    ("vgpu-webhook/vgpu-webhook-policy", True, False),
    ("gpu-system/team-vgpu-webhook-policy", False, True),
    ("gpu-system/vgpu-webhook-policy", True, False),  # without a cluster, the namespace of the webhook is not known
    ("gpu-system/team-vgpu-webhook-policy-backup", False, False),
    ("vgpu-webhook/docs-for-vgpu-webhook-policy", False, False),
    ("kube-system/volcano-vgpu-device-config", True, False),
    ("volcano-system/volcano-vgpu-device-config", True, False),
    ("users/volcano-vgpu-device-config", False, False),
    ("infra/gpus", False, True),
    ("volcano-system/volcano-scheduler-configmap", True, True),
    ("users/volcano-scheduler-configmap", False, False),
    ("kube-system/volcano-scheduler-configmap", False, False),
    ("users/kube-root-ca.crt", False, False),
    ("volcano-system/volcano-vgpu-device-config-2", False, False),
]


@pytest.mark.parametrize(("place", "usually", "named"), BY_PLACE)
def test_config_maps_are_reviewed_where_they_are_read(place: str, usually: bool, named: bool):
    broken = config_map(place, "other", "a: [")
    where = snapshot()
    for reviewed, known in ((usually, where), (named, replace(where, places=PLACES))):
        outcome = written(broken, where=known)
        assert (outcome.reviewed, outcome.allowed) == (reviewed, not (reviewed and "policy" in place))
        assert bool(outcome.violations) is reviewed


def test_an_entry_that_a_later_one_replaces_is_warned_of():
    outcome = written(policy("namespaces: [{match: [team-a], enforcement: audit}, {match: [team-*]}]"))
    assert outcome.allowed
    assert "policy: namespaces.0: it never decides: a later entry matches the same" in outcome.warnings[0]


def test_a_policy_whose_text_stays_is_not_reviewed():
    before = policy("enforcemnt: warn")
    assert not written(before | {"metadata": before["metadata"] | {"labels": {"a": "b"}}}, before).reviewed


def test_a_policy_is_refused_whatever_the_policy_in_use_enforces():
    assert not written(policy("a: 1"), where=snapshot("enforcement: audit")).allowed


# --- what Volcano reads ---------------------------------------------------------------------------------------------


def messages(outcome: Outcome) -> list[str]:
    assert outcome.allowed
    return [violation.message for violation in outcome.violations]


def test_a_good_device_config_has_no_finding():
    assert messages(written(device_config(gpuMemoryFactor=1), device_config())) == []


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (device_config(resourceCountName="nvidia.com/gpu"), "nvidia.com/gpu never appears"),
        (device_config(resourceCoreName=""), "does not set resourceCoreName"),
        (device_config(deviceMemoryScaling=2), "deviceMemoryScaling 2 has no effect"),
        (device_config(gpuMemFactor=10), "Volcano ignores gpuMemFactor, which it does not have; write gpuMemoryFactor"),
        (device_config(gpuMemoryFactor="ten"), "Volcano runs with its built-in defaults"),
        (
            device_config(place="volcano-system/volcano-vgpu-device-config"),
            "not in volcano-system/volcano-vgpu-device-config",
        ),
    ],
)
def test_a_doubtful_device_config_is_warned_of_in_the_words_of_the_doctor(raw: dict[str, Any], says: str):
    assert says in " ".join(messages(written(raw)))


def test_names_that_an_old_device_plugin_takes_from_flags_are_warned_of_when_they_change():
    old = snapshot('target: {volcano: "1.13.0", devicePlugin: "1.11.0"}')
    renamed = device_config(resourceCountName="nvidia.com/gpu")
    (found,) = messages(written(renamed, device_config(), where=old))[:1]
    assert "without --resource-name it advertises volcano.sh/vgpu-number" in found
    assert messages(written(renamed | {"data": renamed["data"] | {"x": ""}}, renamed, where=old)) == []


def test_a_change_that_gives_numbers_of_running_pods_another_meaning_is_warned_of():
    found = " ".join(
        messages(written(device_config(gpuMemoryFactor=10, deviceSplitCount=4), device_config(deviceSplitCount=10)))
    )
    assert "gpuMemoryFactor changes from 1 to 10" in found
    assert "deviceSplitCount changes from 10 to 4: a card that more than 4 pods share" in found
    assert messages(written(device_config(deviceSplitCount=20), device_config(deviceSplitCount=10))) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tiers: [{plugins: [{name: priority}]}]", "no tier has deviceshare, so no device is ever assigned"),
        ("actions: allocate", "Volcano then runs without deviceshare"),
        (NESTED.replace("VGPUEnable: true", "VGPUEnable: false"), "VGPUEnable is not on, so the devices of"),
        (NESTED.replace("VGPUEnable: true", "VGPUEnable: 'yes'"), "is ignored: only true and false are read"),
        (
            NESTED.replace("{deviceshare.", "{deviceshare.KnownGeometriesCMNamespace: gpu, deviceshare."),
            "in gpu/volcano-vgpu-device-config",
        ),
        (NESTED.replace("  - name: predicates\n", ""), "deviceshare without predicates never assigns a card"),
    ],
)
def test_a_doubtful_scheduler_configuration_is_warned_of_in_the_words_of_the_doctor(text: str, says: str):
    assert says in " ".join(messages(written(scheduler(text), where=snapshot('target: {volcano: "1.15.1"}'))))


def test_a_good_scheduler_configuration_has_no_finding():
    assert messages(written(scheduler(NESTED))) == []


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amounts", "says"),
    [
        ({"requests.volcano.sh/vgpu-mem": 6000}, "did you mean volcano.sh/vgpu-memory?"),
        (
            {"requests.nvidia.com/gpumem": 6000},
            "Volcano does not read HAMi's nvidia.com/gpumem; write requests.volcano.sh/vgpu-memory",
        ),
        ({"requests.nvidia.com/gpu": 8}, "no node offers nvidia.com/gpu"),
        ({"volcano.sh/vgpu-number": 4}, "Kubernetes counts requests. only; write requests.volcano.sh/vgpu-number"),
        (
            {"limits.volcano.sh/vgpu-number": 0},
            "limits nothing: of volcano.sh/vgpu-number, Kubernetes counts requests. only",
        ),
        ({"requests.volcano.sh/vgpu-memory": 40000}, "one that requests no memory counts as 0"),
        (
            {"requests.volcano.sh/vgpu-memory": 16, "requests.volcano.sh/vgpu-number": 4},
            "is 16 MiB for all pods together",
        ),
    ],
)
def test_a_quota_that_limits_nothing_is_warned_of(amounts: dict[str, Any], says: str):
    (found,) = messages(written(quota(amounts)))
    assert says in found


@pytest.mark.parametrize(
    "amounts",
    [
        {"requests.volcano.sh/vgpu-memory": 40000, "requests.volcano.sh/vgpu-number": "4"},
        {"requests.volcano.sh/vgpu-number": 0, "requests.nvidia.com/gpu": 0},
        {"requests.cpu": 4, "count/jobs.batch": 5, "requests.example.org/fpga": 1},
        {"gold.storageclass.storage.k8s.io/requests.storage": "1Ti"},
    ],
)
def test_a_quota_that_is_counted_has_no_finding(amounts: dict[str, Any]):
    assert messages(written(quota(amounts))) == []


def test_a_memory_limit_that_the_webhook_compares_with_pods_has_no_finding():
    amounts = {"limits.volcano.sh/vgpu-memory": 40000}
    assert messages(written(quota(amounts)))
    assert messages(written(quota(amounts), where=snapshot("rules: {quota-memory: warn}"))) == []


def test_nothing_is_said_of_names_that_a_node_may_offer():
    unknown = replace(snapshot(), fleet=None)
    assert messages(written(quota({"requests.nvidia.com/gpu": 8}), where=unknown)) == []
    scaled = snapshot("fleet: {autoscaled: true}")
    assert messages(written(quota({"requests.nvidia.com/gpu": 8}), where=scaled)) == []


def test_a_quota_of_an_exempt_namespace_is_not_reviewed():
    exempt = snapshot("namespaces: [{match: [team-a], exempt: true}]")
    assert not written(quota({"requests.volcano.sh/vgpu-mem": 1}), where=exempt).reviewed


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (queue({"volcano.sh/vgpu-mem": 4000}), "did you mean volcano.sh/vgpu-memory?"),
        (
            queue({"requests.volcano.sh/vgpu-number": 2}),
            "a queue counts resources by their plain names; write volcano.sh/vgpu-number",
        ),
        (
            queue({"volcano.sh/vgpu-memory": "40Gi", "volcano.sh/vgpu-number": 2}),
            "it counts MiB, not bytes; write 40960",
        ),
        (queue({"volcano.sh/vgpu-memory-percentage": 50}), "percentages become memory before they are counted"),
        (queue({"volcano.sh/vgpu-memory": 40000}), "volcano.sh/vgpu-memory does not limit pods that take whole cards"),
        (
            queue({"volcano.sh/vgpu-memory": 1, "volcano.sh/vgpu-number": 2}),
            "is 1 MiB for all pods together, less than one needs",
        ),
        (queue({"volcano.sh/vgpu-number": 8}, parent="lab"), 'is more than its parent "lab" allows, 4'),
        (queue({}, deserved={"nvidia.com/gpumem": 1}), "Volcano does not read HAMi's nvidia.com/gpumem"),
    ],
)
def test_a_queue_that_limits_nothing_is_warned_of(raw: dict[str, Any], says: str):
    (found,) = messages(written(raw))
    assert says in found


def test_a_queue_below_its_parents_has_no_finding():
    assert messages(written(queue({"volcano.sh/vgpu-number": 4}, parent="lab"))) == []


def test_capabilities_that_no_plugin_counts_are_warned_of():
    uncounted = snapshot(conf=NESTED.replace("{name: capacity, enableHierarchy: true}", "name: gang"))
    (found,) = messages(written(queue({"volcano.sh/vgpu-number": 4}), where=uncounted))
    assert "no plugin of the scheduler counts what the pods of a queue request" in found
    assert messages(written(queue({"volcano.sh/vgpu-number": 4}), where=snapshot(conf=None))) == []


def test_the_field_queue_of_one_mebibyte_is_found():
    found = {each["metadata"]["name"]: each for each in yaml.safe_load((FIELD / "queues.yaml").read_text())["items"]}
    assert any("is 1 MiB" in text for text in messages(written(found["test-queue"])))
    assert messages(written(found["gpu-small-queue"])) == []


@pytest.mark.parametrize(
    "raw", [queue({"cpu": 4}), quota({"requests.cpu": 4}), {**quota({}), "spec": None}, {**queue({}), "spec": []}]
)
def test_limits_without_devices_are_not_reviewed(raw: dict[str, Any]):
    assert not written(raw).reviewed


def test_a_long_finding_has_its_remedy_in_a_warning_of_its_own():
    outcome = written(device_config(place="volcano-system/volcano-vgpu-device-config"))
    assert outcome.warnings[1].startswith(
        "device-config: do: set deviceshare.KnownGeometriesCMNamespace: volcano-system"
    )
    assert all(not warning.endswith("…") for warning in outcome.warnings)


@pytest.mark.parametrize("kind", ["ConfigMap", "Queue", "ResourceQuota"])
@pytest.mark.parametrize(
    "junk",
    [
        None,
        [],
        "a",
        {"data": 1, "spec": 1},
        {"data": {"policy.yaml": 1}, "spec": {"hard": [], "capability": {"volcano.sh/vgpu-memory": []}}},
    ],
)
def test_junk_is_answered(kind: str, junk: Any):
    group = {"Queue": "scheduling.volcano.sh/v1beta1"}.get(kind, "v1")
    raw = {"apiVersion": group, "kind": kind, "metadata": {"name": "vgpu-webhook-policy"}}
    written(raw | (junk if isinstance(junk, dict) else {"spec": junk, "data": junk}))
