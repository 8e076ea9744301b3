"""Changed inputs of a replay: keys of the policy, another split count."""

from typing import Any

import pytest
import yaml

from tests import strategies
from tests.reviewing import ALL_FAMILIES, CONFIG, DATA, nodes_in
from webhook import names
from webhook.devices.nodes import HANDSHAKE, NO_HANDSHAKE, Node, read_node
from webhook.errors import ConfigError
from webhook.policy.policy import default_policy, parse_policy
from webhook.rules.choices import Level
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import load
from webhook.settings.trial import registered, try_out, with_setting

FLEET = DATA / "fleets" / "every-family.yaml"
NODES = nodes_in(*ALL_FAMILIES)


# A policy, a setting, and what it becomes.
TRIED = """
- [{}, rules.card-count=off, {rules: {card-count: false}}]
- [{rules: {a: deny}}, rules.b=warn, {rules: {a: deny, b: warn}}]
- [{rules: {a: deny}}, rules.a=warn, {rules: {a: warn}}]
- [{}, fleet.autoscaled=true, {fleet: {autoscaled: true}}]
- [{}, "schedulerNames=[a, b]", {schedulerNames: [a, b]}]
- [{}, toleration=null, {toleration: null}]
- [{}, enforcement=audit, {enforcement: audit}]
- [{}, repairs.toleration=off, {repairs: {toleration: false}}]
- [{}, namespaces.a.b.enforcement=warn, {namespaces: [{match: [a.b], enforcement: warn}]}]
- [{}, namespaces.a.repairs.b=on, {namespaces: [{match: [a], repairs: {b: true}}]}]
- [{}, namespaces.team-*.rules.a=deny, {namespaces: [{match: [team-*], rules: {a: deny}}]}]
- - {namespaces: [{match: [a, x*], rules: {a: deny}}, {match: ["y"]}]}
  - namespaces.x1.exempt=true
  - {namespaces: [{match: [a, x*], rules: {a: deny}}, {match: ["y"]}, {match: [x1], rules: {a: deny}, exempt: true}]}
- - {namespaces: [{match: [x], rules: {a: deny}}]}
  - namespaces.x.rules.b=warn
  - {namespaces: [{match: [x], rules: {a: deny}}, {match: [x], rules: {a: deny, b: warn}}]}
"""


@pytest.mark.parametrize("document, setting, found", yaml.safe_load(TRIED))
def test_a_setting_changes_a_key_of_the_policy(document: Any, setting: str, found: Any):
    before = repr(document)
    assert with_setting(document, setting) == found
    assert repr(document) == before


@pytest.mark.parametrize(
    "settings, message",
    [
        (["rules"], "write KEY=VALUE"),
        (["=x"], "write KEY=VALUE"),
        (["rules.card-count=[", "x=1"], "setting rules.card-count=["),
        (["rules.card-cuont=deny"], "did you mean 'card-count'"),
        (["schedulerName.x=1", "schedulerName.x.y=1"], "setting schedulerName.x.y=1: x has no keys of its own"),
        (["rulse.a=deny"], "did you mean 'rules'"),
        (["namespaces.a.b.c=1"], "namespaces"),
    ],
)
def test_an_invalid_setting_is_refused(settings: list[str], message: str):
    with pytest.raises(ConfigError) as raised:
        try_out(SnapshotInputs.of({}), settings, None)
    assert message in str(raised.value)


def test_a_setting_changes_nothing_else():
    inputs = SnapshotInputs.of(load({"fleet": FLEET}))
    base, changed = inputs.snapshot(), try_out(inputs, ["rules.card-count=warn"], None).snapshot()
    assert base.policy.of("a").levels["card-count"] is Level.DENY
    assert changed.policy.of("a").levels["card-count"] is Level.WARN
    assert base.fleet is not None
    assert changed.fleet is not None
    assert base.fleet.digest == changed.fleet.digest


def test_a_split_count_needs_a_fleet():
    with pytest.raises(ConfigError, match="with --fleet FILE"):
        try_out(SnapshotInputs.of({}), [], 4)


def test_a_node_with_a_split_count_equals_what_the_device_plugin_registers():
    offers = {names.VGPU_NUMBER: "20", names.VGPU_MEMORY: "30k", names.VGPU_CORES: "200"}
    cards = [("NVIDIA-Tesla T4", 15360)] * 2
    before = read_node(strategies.node_json("n", strategies.register(cards, split=10), offers=offers), CONFIG)
    after = read_node(
        strategies.node_json("n", strategies.register(cards, split=4), offers={**offers, names.VGPU_NUMBER: "8"}),
        CONFIG,
    )
    assert before is not None
    assert registered(before, CONFIG.vgpu, split=4) == after
    assert registered(before, CONFIG.vgpu, split=10) == before


def test_a_split_count_changes_no_other_family():
    split = [registered(node, CONFIG.vgpu, split=3) for node in NODES]
    before, after = (SnapshotInputs(CONFIG, default_policy(), nodes).snapshot().fleet for nodes in (NODES, split))
    assert before is not None
    assert after is not None
    assert {card.split for shape in after.vgpu.shapes for card in shape.devices} == {3}
    for family in ("gpushare", "ascend"):
        assert repr([s.state for s in before.by_family[family]]) == repr([s.state for s in after.by_family[family]])


@pytest.mark.parametrize(
    "before, after, kept",
    [
        ("1.12.0", "1.13.0", {"registers": None, "not": None}),
        ("1.13.0", "1.12.0", {"registers": HANDSHAKE, "not": None}),
        ("1.12.0", "1.11.0", {"registers": NO_HANDSHAKE, "not": None}),  # what the nodes have is what counts
    ],
)
def test_nodes_have_the_handshake_that_the_device_plugin_writes(before: str, after: str, kept: Any):
    registers = Node(
        "registers",
        annotations={names.NODE_VGPU_REGISTER: "GPU-a,1,1,T4,true,:", names.NODE_VGPU_HANDSHAKE: NO_HANDSHAKE},
    )
    policy = parse_policy({"target": {"devicePlugin": before}}, "test")
    inputs = SnapshotInputs(CONFIG, policy, [registers, Node("not")])
    changed = try_out(inputs, [f"target.devicePlugin='{after}'"], None)
    assert {node.name: node.annotations.get(names.NODE_VGPU_HANDSHAKE) for node in changed.nodes or ()} == kept
    assert registers.annotations[names.NODE_VGPU_HANDSHAKE] == NO_HANDSHAKE
