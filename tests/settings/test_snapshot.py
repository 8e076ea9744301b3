"""A snapshot keeps its parts, and its digests are the same in every process."""

import os
import subprocess
import sys
from dataclasses import fields, make_dataclass, replace
from pathlib import Path

import pytest

from webhook.devices.config import VgpuConfig
from webhook.devices.config_file import parse_device_config
from webhook.policy.policy import default_policy, parse_policy
from webhook.rules.context import Collections
from webhook.settings.snapshot import SnapshotInputs, default_device_config, read_nodes
from webhook.settings.table import DEVICE_CONFIG, FLEET
from webhook.volcano.queues import Queues
from webhook.volcano.quotas import Quotas
from webhook.volcano.scheduler import SchedulerConf

DATA = Path(__file__).parent.parent / "data"
DECLARED = {"fleet": {"declared": [{"name": "h100", "cards": [{"type": "H100", "memory": 95000}]}]}}


def mixed():
    config = DEVICE_CONFIG.load(DATA / "config" / "device-config.yaml")
    return config, read_nodes(FLEET.load(DATA / "fleets" / "mixed.yaml"), config)


def test_a_snapshot_keeps_its_parts():
    config, nodes = mixed()
    policy = parse_policy({"workloads": "deny", "rules": {"card-count": "warn"}}, "test")
    snapshot = SnapshotInputs(config, policy, nodes).snapshot()
    assert snapshot.config is config
    assert snapshot.policy is policy
    assert (snapshot.fleet.complete, snapshot.fleet.nodes) == (True, 4)


def test_an_empty_fleet_differs_from_an_unknown_fleet():
    config, policy = default_device_config(), default_policy()
    unknown, empty = (SnapshotInputs(config, policy, nodes).snapshot() for nodes in (None, []))
    assert (unknown.fleet, unknown.digests["fleet"]) == (None, "unknown")
    assert empty.fleet.complete
    assert set(empty.fleet.by_family.values()) == {()}
    assert empty.digests["fleet"] == empty.fleet.digest != "unknown"


@pytest.mark.parametrize("known", [True, False])
def test_declared_shapes_join_the_real_ones(known):
    config, nodes = mixed()
    fleet = SnapshotInputs(config, parse_policy(DECLARED, "test"), nodes if known else None).snapshot().fleet
    real = ["gpu-a", "gpu-b", "gpu-c", "gpu-mig"] if known else []
    assert fleet.complete is known
    assert [shape.names[0] for shape in fleet.vgpu.shapes] == [*real, "h100"]


def test_a_digest_changes_only_with_its_part():
    """That of the fleet changes with the device config, too: it says how nodes are read."""
    config, nodes = mixed()
    inputs = SnapshotInputs(config, default_policy(), nodes)
    base = inputs.snapshot().digests
    assert set(base) == {"config", "policy", "fleet"}
    for parts, changes in (
        ({"config", "fleet"}, {"config": parse_device_config({"nvidia": {"defaultCores": 5}}, "test")}),
        ({"policy"}, {"policy": parse_policy({"rules": {"card-count": "warn"}}, "test")}),
        ({"fleet"}, {"nodes": nodes[:2]}),
        ({"scheduler"}, {"scheduler": SchedulerConf()}),
        ({"queues"}, {"collections": Collections(queues=Queues([]))}),
        ({"quotas"}, {"collections": Collections(quotas=Quotas([]))}),
    ):
        found = replace(inputs, **changes).snapshot().digests
        assert {key for key in found if found[key] != base.get(key)} == parts


def test_the_digest_of_a_device_config_stays_when_the_program_learns_a_key():
    config, nodes = mixed()
    learned = make_dataclass("Learned", [("new_key", int, 7)], bases=(VgpuConfig,), frozen=True)
    known = {each.name: getattr(config.vgpu, each.name) for each in fields(config.vgpu)}
    for new, stays in ({}, True), ({"new_key": 8}, False):
        changed = SnapshotInputs(replace(config, vgpu=learned(**known, **new)), default_policy(), nodes).snapshot()
        unchanged = SnapshotInputs(config, default_policy(), nodes).snapshot()
        assert (changed.digests["config"] == unchanged.digests["config"]) is stays


@pytest.mark.parametrize(
    "document",
    [
        {"fleet": {"staleAfterSeconds": 1}},
        {"namespaces": [{"match": ["a"], "exempt": True}]},
        {"trustedUsers": []},
        {"toleration": None},
        DECLARED,
    ],
)
def test_every_setting_changes_the_digest_of_the_policy(document):
    config = default_device_config()
    changed = SnapshotInputs(config, parse_policy(document, "test"), []).snapshot().digests
    assert changed["policy"] != SnapshotInputs(config, default_policy(), []).snapshot().digests["policy"]


def test_digests_are_the_same_in_every_process():
    """Replicas must report the same digests for the same inputs; the order of a set differs between processes."""
    program = (
        "from webhook.settings.snapshot import SnapshotInputs, default_device_config, read_nodes\n"
        "from webhook.policy.policy import default_policy\n"
        "print(dict(SnapshotInputs(default_device_config(), default_policy(), []).snapshot().digests))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}  # that of this process is another
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{dict(SnapshotInputs(default_device_config(), default_policy(), []).snapshot().digests)}\n"
