"""A snapshot has the shapes that a policy declares, and its digests are the same in every process."""

from dataclasses import fields, make_dataclass, replace

import pytest

from tests.cli.conftest import python
from tests.reviewing import CONFIG, nodes_in, snapshot
from webhook.devices.config import VgpuConfig
from webhook.devices.config_file import parse_device_config
from webhook.policy.policy import default_policy, parse_policy
from webhook.rules.context import Collections
from webhook.settings.snapshot import SnapshotInputs
from webhook.volcano.queues import Queues
from webhook.volcano.quotas import Quotas
from webhook.volcano.scheduler import SchedulerConf

DECLARED = {"fleet": {"declared": [{"name": "h100", "cards": [{"type": "H100", "memory": 95000}]}]}}


def test_an_empty_fleet_differs_from_an_unknown_fleet():
    unknown, empty = (SnapshotInputs(CONFIG, default_policy(), nodes).snapshot() for nodes in (None, []))
    assert (unknown.fleet, unknown.digests["fleet"]) == (None, "unknown")
    assert empty.fleet.complete
    assert set(empty.fleet.by_family.values()) == {()}
    assert empty.digests["fleet"] == empty.fleet.digest != "unknown"


@pytest.mark.parametrize("known", [True, False])
def test_declared_shapes_join_the_real_ones(known):
    fleet = snapshot(*["mixed"] * known, **DECLARED).fleet
    real = ["gpu-a", "gpu-b", "gpu-c", "gpu-mig"] if known else []
    assert fleet.complete is known
    assert [shape.names[0] for shape in fleet.vgpu.shapes] == [*real, "h100"]


def test_a_digest_changes_only_with_its_part():
    """That of the fleet changes with the device config, too: it says how nodes are read."""
    nodes = nodes_in("mixed")
    inputs = SnapshotInputs(CONFIG, default_policy(), nodes)
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
    learned = make_dataclass("Learned", [("new_key", int, 7)], bases=(VgpuConfig,), frozen=True)
    known = {each.name: getattr(CONFIG.vgpu, each.name) for each in fields(CONFIG.vgpu)}
    for new, stays in ({}, True), ({"new_key": 8}, False):
        changed = snapshot(config=replace(CONFIG, vgpu=learned(**known, **new)))
        assert (changed.digests["config"] == snapshot().digests["config"]) is stays


def test_digests_are_the_same_in_every_process():
    """Replicas must report the same digests for the same inputs; the order of a set differs between processes."""
    program = "from tests.reviewing import snapshot; print(dict(snapshot('mixed').digests))"
    ran = python(program, env={"PYTHONHASHSEED": "1"})  # that of this process is another
    assert ran.stdout == f"{dict(snapshot('mixed').digests)}\n"
