"""The operator's policy: its defaults are a contract, and an error has a path."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.strategies import json_values
from webhook.devices.config import Geometry, Instance, MigModels, VgpuConfig
from webhook.errors import ConfigError
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.policy import default_policy, parse_policy
from webhook.rules.choices import DialectUse, Level, WorkloadUse
from webhook.rules.policy_keys import DEFAULT_TRUSTED_USERS
from webhook.settings.snapshot import default_device_config

ROWS = yaml.safe_load(Path(__file__).with_name("policies.yaml").read_text())
CONTRACT = ROWS["default"] | {"trustedUsers": list(DEFAULT_TRUSTED_USERS)}
KIND, EXCEPTION = ROWS["kind"], ROWS["exception"]
NOT_DEFAULT, MISSPELT = ROWS["other"], ROWS["misspelt"]


# Those of policies.yaml, and what would be too long there.
WRONG = [
    *ROWS["wrong"],
    ({"namespaces": [{"match": ["a" * 254]}]}, "namespaces.0.match.0: it must be at most 253 characters long"),
    ({"namespaces": [{"match": ["a"]}] * 1001}, "namespaces: it must be a list of at most 1000 values"),
    ({"namespaces": [{"match": ["a"] * 1001}]}, "namespaces.0.match: it must be a list of at most 1000 values"),
    ({"rules": {f"{n}": "off" for n in range(3000)}}, "it has 3,000 mistakes, too many to list"),
    ({"helpURL": f"https://a/{'a' * 200}"}, "helpURL: 'https://"),
    ({"exceptions": [EXCEPTION | {"owner": "a" * 101}]}, "exceptions.0.owner: it must be at most 100 characters long"),
    ({"workloadKinds": [KIND | {"templates": [f"spec.{'a' * 200}"]}]}, "workloadKinds.0.templates.0: 'spec.aaa"),
    (
        {"fleet": {"declared": [{"name": "a", "cards": [{"type": "A", "memory": 1}]}] * 101}},
        "fleet.declared: it must be a list of at most 100 values",
    ),
]


def parse(document):
    return parse_policy(document, "the file")


def refusal(document):
    with pytest.raises(ConfigError) as raised:
        parse(document)
    return str(raised.value)


@each_case("document", [{}, CONTRACT, *({key: value} for key, value in CONTRACT.items())])
def test_the_defaults_are_the_contract(document):
    policy = parse(document)
    assert policy == default_policy()
    assert policy.digest == default_policy().digest


def test_every_setting_is_read():
    policy = parse(NOT_DEFAULT)
    assert policy.model_dump(mode="json", by_alias=True, exclude_unset=True) == NOT_DEFAULT
    target = policy.target.facts()
    assert (target.reads_uuids, target.one_container, target.lists_units) == (True, False, True)
    added = policy.workload_kinds["example.org", "Policy"]
    assert (added.versions, added.plural, added.is_whole) == (("v1",), "policies", True)
    assert [template.path for template in added.templates] == ["spec.template", "spec.groups[*].workers.*.template"]
    assert len(policy.workload_kinds) == len(WORKLOAD_KINDS) + 1


def test_every_setting_changes_the_digest():
    alone = [{key: NOT_DEFAULT[key]} for key in NOT_DEFAULT if not key.startswith("schedulerName")]
    alone += [{}, {"schedulerNames": ["volcano", "a"]}, {"toleration": None}, {"trustedUsers": []}]
    alone += [{"rules": {"card-count": "off"}}, {"namespaces": [{"match": ["a"], "exempt": True}]}]
    assert len({parse(document).digest for document in alone}) == len(alone)


def test_the_toleration_can_be_null():
    assert parse({"toleration": None}).toleration is None


@pytest.mark.parametrize("word", ["off", False])
def test_a_bare_off_that_yaml_reads_as_false_is_off(word):
    document = {
        "workloads": word,
        "rules": {"card-count": word},
        "repairs": {"toleration": word},
        "dialects": {"kai": word},
    }
    policy = parse(document | {"isolationEnv": {"allocators": word}})
    assert policy.workloads is WorkloadUse.OFF
    assert policy.of("x").levels["card-count"] is policy.isolation_env.allocators is Level.OFF
    assert policy.of("x").repairs_off == {"toleration"}
    assert policy.of("x").dialects["kai"] is DialectUse.OFF


@each_case("document, path, hint", MISSPELT)
def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_key(document, path, hint):
    assert refusal(document) == f"the file: {path}: no such key; did you mean {hint!r}?"


def test_an_unknown_key_without_a_similar_one_lists_all_keys():
    keys = "devicePlugin, kubernetes, volcano"
    assert refusal({"target": {"zzz": 1}}) == f"the file: target.zzz: no such key; there are {keys}"


@each_case("document, start", WRONG)
def test_a_wrong_value_is_refused_with_its_path(document, start):
    assert refusal(document).startswith(f"the file: {start}")


def test_declared_shapes_are_read():
    geometries = (Geometry("g", (Instance("1g", 9728, 7),)),)
    vgpu = VgpuConfig(mig_models=(MigModels(("A100",), geometries),), memory_factor=2)
    config = replace(default_device_config(), vgpu=vgpu)
    cards = [{"count": 2, "type": "A100", "memory": 100, "split": 7}, {"type": "NVIDIA-T4", "memory": 50}]
    declared = [{"name": "core", "nodes": 5, "cards": cards}, {"name": "mig", "mode": "mig", "cards": cards}]
    core, mig = parse({"fleet": {"declared": declared}}).declared(config)["vgpu"]
    assert (core.mode, core.names, core.nodes, core.declared) == ("hami-core", ("core",), 5, True)
    assert [(c.type, c.memory, c.split, c.geometries) for c in core.devices] == [
        ("NVIDIA-A100", 100, 7, None), ("NVIDIA-A100", 100, 7, None), ("NVIDIA-T4", 50, 10, None),
    ]  # fmt: skip
    assert list(core.offered.values()) == [24, 250, 300]
    scaled = (Geometry("g", (Instance("1g", 4864, 7),)),)
    assert [card.geometries for card in mig.devices] == [scaled, scaled, ()]
    assert {card.factor for card in mig.devices} == {2}
    assert mig.nodes == 1


@given(st.dictionaries(st.sampled_from(sorted(CONTRACT)), json_values))
def test_any_json_is_a_policy_or_refused(document):
    try:
        policy = parse(document)
    except ConfigError as error:
        message = str(error)
        assert message.startswith("the file: ")
    else:
        assert policy.scheduler_name in policy.scheduler_names
