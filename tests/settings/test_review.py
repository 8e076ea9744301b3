"""What the webhook and Volcano read as settings is reviewed when it is written, with the words of `policy check` and doctor."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.clusters import DATA, request
from tests.reviewing import nodes_in
from webhook.devices.config_file import parse_device_config
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.rules.context import Collections
from webhook.settings.review import review_setting
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.table import QUEUES, SCHEDULER
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


def snapshot(policy: str = "{}", conf: str | None = NESTED) -> Snapshot:
    config = parse_device_config({"nvidia": dict(NAMES)}, "device-config.yaml")
    scheduler = None if conf is None else SCHEDULER.read(conf.encode(), "volcano-scheduler.conf")
    queues = QUEUES.index(QUEUES.kept(yaml.safe_load(PARENTS)["items"]))
    nodes = nodes_in("mixed", config=config)
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


def edited(text: str, changes: Any) -> str:
    if isinstance(changes, str):
        return changes
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def device_config(nvidia: dict[str, Any], place: str = "kube-system/volcano-vgpu-device-config") -> dict[str, Any]:
    return config_map(place, "device-config.yaml", yaml.safe_dump({"nvidia": NAMES | nvidia}))


QUEUE = "scheduling.volcano.sh/v1beta1"
SCHEDULER_MAP = "volcano-system/volcano-scheduler-configmap"
WRITERS: dict[str, Callable[..., dict[str, Any]]] = {
    "policy": lambda text: config_map("vgpu-webhook/vgpu-webhook-policy", "policy.yaml", text),
    "device-config": device_config,
    "scheduler": lambda changes: config_map(SCHEDULER_MAP, "volcano-scheduler.conf", edited(NESTED, changes)),
    "quota": lambda hard: {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": "team-a"},
        "spec": {"hard": hard},
    },
    "queue": lambda spec: {"apiVersion": QUEUE, "kind": "Queue", "metadata": {"name": "team"}, "spec": spec},
}
TABLE = yaml.safe_load(Path(__file__).with_name("review.yaml").read_text())
ROWS = [(kind, row) for kind, rows in TABLE.items() for row in rows]


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=[f"{kind}: {row['write']}" for kind, row in ROWS])
def test_what_is_said_of_a_setting_that_is_written(kind: str, row: dict[str, Any]):
    """With the words of `policy check` and the doctor."""
    conf = edited(NESTED, row.get("conf", {})) if row.get("conf", {}) is not None else None
    usual = 'target: {volcano: "1.15.1"}' if kind == "scheduler" else "{}"
    write = partial(WRITERS[kind], **({"place": row["place"]} if "place" in row else {}))
    before = write(row["before"]) if "before" in row else None
    after = write(row["write"])
    if row.get("before") == row["write"]:
        after["metadata"] = after["metadata"] | {"labels": {"a": "b"}}
    outcome = written(after, before, snapshot(row.get("under", usual), conf))
    messages = [violation.message for violation in outcome.violations]
    assert outcome.reviewed is ("not reviewed" not in row)
    assert outcome.allowed is ("refuses" not in row)
    if "refuses" in row:
        assert row["refuses"] in outcome.message()
        assert {violation.rule for violation in outcome.violations} == {"policy"}
    texts = row.get("warns", [row["one"]] if "one" in row else [])
    for text in [texts] if isinstance(texts, str) else texts:
        assert text in " ".join(messages)
    assert len(messages) == ("one" in row) or {"warns", "refuses"} & row.keys()


def test_a_policy_without_its_key_is_refused():
    assert "has no key policy.yaml" in written(config_map("a/vgpu-webhook-policy", "other", "{}")).message()


def test_all_mistakes_of_a_policy_are_listed():
    text = "enforcemnt: warn\nrules: {card-cuont: deny}"
    assert len(written(WRITERS["policy"](text)).denials) == 2


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


@pytest.mark.parametrize(("name", "doubts"), [("test-queue", True), ("gpu-small-queue", False)])
def test_the_field_queue_of_one_mebibyte_is_found(name: str, doubts: bool):
    listed = yaml.safe_load((FIELD / "queues.yaml").read_text())["items"]
    (queue,) = [each for each in listed if each["metadata"]["name"] == name]
    found = written(queue).violations
    assert any("is 1 MiB" in violation.message for violation in found) is bool(found) is doubts


def test_nothing_is_said_of_names_while_the_fleet_is_unknown():
    quota = WRITERS["quota"]({"requests.nvidia.com/gpu": 8})
    assert not written(quota, where=replace(snapshot(), fleet=None)).violations


def test_a_long_finding_has_its_remedy_in_a_warning_of_its_own():
    outcome = written(device_config({}, "volcano-system/volcano-vgpu-device-config"))
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
