"""The operator's policy: its defaults are a contract, and an error has a path."""

from dataclasses import replace

import pytest
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

# The contract: `{}` means these values.
CONTRACT = {
    "schedulerName": "volcano",
    "schedulerNames": ["volcano"],
    "toleration": {"key": "volcano.sh/vgpu", "operator": "Exists", "effect": "NoSchedule"},
    "target": {"volcano": "1.15.1", "devicePlugin": "1.12.0", "kubernetes": "1.30.0"},
    "percentage": {"mixedCards": "smallest"},
    "memoryAboveCard": "clamp",
    "enforcement": "enforce",
    "helpURL": None,
    "repairs": {},
    "dialects": {},
    "workloads": "warn",
    "workloadKinds": [],
    "rules": {},
    "namespaces": [],
    "exceptions": [],
    "trustedUsers": list(DEFAULT_TRUSTED_USERS),
    "isolationEnv": {"wholeCards": "warn", "allocators": "warn"},
    "fleet": {"autoscaled": False, "staleAfterSeconds": 600, "declared": []},
}

KIND = {"group": "example.org", "version": "v1", "kind": "Policy"}
EXCEPTION = {"namespace": "a", "names": ["x-*"], "rules": ["host-access"], "until": "2026-12-31"}
EXCEPTION |= {"reason": "r", "owner": "o"}

# Every setting, with a value that is not the default.
NOT_DEFAULT = {
    "schedulerName": "b",
    "schedulerNames": ["a", "b"],
    "toleration": {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"},
    "target": {"volcano": "v1.16", "devicePlugin": "1.11.0", "kubernetes": "1.37"},
    "percentage": {"mixedCards": "deny"},
    "memoryAboveCard": "deny",
    "enforcement": "audit",
    "helpURL": "https://[::1]:8443/help?rule={rule}#gpu",
    "repairs": {"toleration": "off", "scheduler-name": "on"},
    "dialects": {"hami": "translate", "kai": "off"},
    "workloads": "deny",
    "workloadKinds": [KIND | {"templates": ["spec.template", "spec.groups[*].workers.*.template"]}],
    "exceptions": [EXCEPTION],
    "trustedUsers": ["me"],
    "isolationEnv": {"wholeCards": "deny", "allocators": "off"},
    "fleet": {"autoscaled": True, "staleAfterSeconds": 60},
}


def kinds(path: object = "spec.template", **fields: object) -> dict[str, object]:
    return {"workloadKinds": [KIND | {"templates": [path]} | fields]}


def excepted(**fields: object) -> dict[str, object]:
    return {"exceptions": [EXCEPTION | fields]}


# An unknown key, its path, and the suggested key.
MISSPELT = [
    ({"schedulrName": 1}, "schedulrName", "schedulerName"),
    ({"scheduler_name": 1}, "scheduler_name", "schedulerName"),
    ({"toleration": {"effct": 1}}, "toleration.effct", "effect"),
    ({"target": {"volcan": 1}}, "target.volcan", "volcano"),
    ({"target": {"device_plugin": 1}}, "target.device_plugin", "devicePlugin"),
    ({"percentage": {"mixedcards": 1}}, "percentage.mixedcards", "mixedCards"),
    ({"namespaces": [{"match": ["a"], "exemt": True}]}, "namespaces.0.exemt", "exempt"),
    ({"namespaces": [{"match": ["a"]}, {"match": ["a"], "rule": {}}]}, "namespaces.1.rule", "rules"),
    ({"namespaces": [{"match": ["a"], "limits": {"memroy": {}}}]}, "namespaces.0.limits.memroy", "memory"),
    ({"namespaces": [{"match": ["a"], "limits": {"memory": {"maxx": 1}}}]}, "namespaces.0.limits.memory.maxx", "max"),
    (excepted(name="x"), "exceptions.0.name", "names"),
    (kinds(template="spec"), "workloadKinds.0.template", "templates"),
    ({"fleet": {"autoScaled": True}}, "fleet.autoScaled", "autoscaled"),
    ({"fleet": {"declared": [{"name": "a", "cards": [{"type": "A", "memory": 1}], "node": 1}]}},
     "fleet.declared.0.node", "nodes"),
    ({"fleet": {"declared": [{"name": "a", "cards": [{"type": "A", "memory": 1, "splits": 1}]}]}},
     "fleet.declared.0.cards.0.splits", "split"),
]  # fmt: skip

# A wrong value, and the start of the message.
WRONG = [
    (None, "it is empty; write {} for the default policy"),
    ({"namespaces": [{"match": ["a" * 254]}]}, "namespaces.0.match.0: it must be at most 253 characters long"),
    ({"namespaces": [{"match": ["a"]}] * 1001}, "namespaces: it must be a list of at most 1000 values"),
    ({"namespaces": [{"match": ["a"] * 1001}]}, "namespaces.0.match: it must be a list of at most 1000 values"),
    ({"rules": {f"{n}": "off" for n in range(3000)}}, "it has 3,000 mistakes, too many to list"),
    ({"rules": {"card-cuont": "deny"}}, "rules: no rule is called 'card-cuont'; did you mean 'card-count'?"),
    ({"rules": {"zzz": "deny"}}, "rules: no rule is called 'zzz'; `vgpu-webhook rules` lists them"),
    ({"namespaces": [{"match": ["a"], "limits": {"cards": {"allow": [{"count": 1}]}}}]},
     "namespaces.0.limits.cards.allow.0: it names no cards; write a type or a family"),
    ({"namespaces": [{"match": ["a"], "limits": {"number": {"min": 1, "max": 0}}}]},
     "namespaces.0.limits.number: min 1 is above max 0, so every container would be refused; swap them"),
    ({"namespaces": [{"match": ["a"], "limits": {"memory": {"min": 2, "max": 1}}}]},
     "namespaces.0.limits.memory: min 2 is above max 1, so every container would be refused; swap them"),
    ({"namespaces": [{"match": ["a"], "limits": {"cores": {"max": 0}}}]}, "namespaces.0.limits.cores.max: it must be 1 or"),
    ({"namespaces": [{"match": ["a"], "limits": {"number": 2}}]}, "namespaces.0.limits.number: it must be an object"),
    ({"namespaces": [{"match": ["a"], "rules": {"card-cuont": "off"}}]}, "namespaces.0.rules: no rule is called"),
    ({"rules": {"toleration": "off"}}, "rules: 'toleration' is a repair, which has no level; switch it on or off under `rep"),
    ({"repairs": {"tolerations": "off"}}, "repairs: no repair is called 'tolerations'; did you mean 'toleration'?"),
    ({"repairs": {"zzz": "off"}}, "repairs: no repair is called 'zzz'; `vgpu-webhook rules` lists them"),
    ({"repairs": {"card-count": "off"}}, "repairs: 'card-count' is a check, not a repair; set its level under `rules`"),
    ({"repairs": {"toleration": "warn"}}, "repairs.toleration: "),
    ({"namespaces": [{"match": ["a"], "repairs": {"tolerations": "off"}}]}, "namespaces.0.repairs: no repair is called"),
    ({"dialects": {"runai": "warn"}}, "dialects: 'runai' is no dialect; write hami, aliyun, cce, tencent, kai"),
    ({"dialects": {"hami": "on"}}, "dialects.hami: "),
    ({"namespaces": [{"match": ["a"], "dialects": {"kai": None}}]}, "namespaces.0.dialects.kai: "),
    ({"enforcement": "deny"}, "enforcement: "),
    *[({"helpURL": url}, f"helpURL: {url[:9]!r}"[:18]) for url in
      ("ftp://gpu.example.org", "https://", "gpu.example.org/help", "https://gpu.example.org/a b", "https://a/{rules}",
       "https://{rule}.example.org", "https://a\nb", "https://a/\x1b[31m", f"https://a/{'a' * 200}")],
    ({"helpURL": "wiki"}, "helpURL: 'wiki' is no link; write http:// or https://, a host and a path, at most 200 characters"),
    ({"rules": {"card-count": "block"}}, "rules.card-count: "),
    ({"rules": {"card-count": True}}, "rules.card-count: "),
    ({"rules": {"card-count": None}}, "rules.card-count: "),
    (excepted(rules=["host-acces"]), "exceptions.0.rules.0: no rule is called 'host-acces'; did you mean 'host-access'?"),
    (excepted(rules=["toleration"]), "exceptions.0.rules.0: 'toleration' is a repair, which has no level"),
    (excepted(rules=[]), "exceptions.0.rules: "),
    (excepted(namespace="team-*"), "exceptions.0.namespace: it must be a name of lower-case letters, digits and -, not"),
    (excepted(names=["a[b]"]), "exceptions.0.names.0: it must be a name of lower-case letters, digits, - and ., in which"),
    (excepted(names=["a"] * 21), "exceptions.0.names: "),
    *[(excepted(until=day), f"exceptions.0.until: '{day}' is no day; write the last one as 2026-12-31")
      for day in ("2026-02-30", 20261231, "1798675200", "2026-12-31T00:00:00Z")],
    (excepted(reason=""), "exceptions.0.reason: "),
    (excepted(owner="a" * 101), "exceptions.0.owner: it must be at most 100 characters long"),
    ({"exceptions": [{"namespace": "a"}]}, "exceptions.0.names: it is missing; add it"),
    ({"target": {"volcano": "latest"}}, "target.volcano: 'latest' is not a version; write it like 1.15.1"),
    ({"target": {"volcano": "1.12.4"}}, "target.volcano: 1.12.4 is not supported; the oldest supported version is 1.13.0"),
    ({"target": {"devicePlugin": "1.10"}}, "target.devicePlugin: 1.10 is not supported; the oldest supported"),
    ({"target": {"kubernetes": "1.29"}}, "target.kubernetes: 1.29 is not supported; the oldest supported"),
    ({"target": {"devicePlugin": ""}}, "target.devicePlugin: '' is not a version"),
    ({"schedulerName": ""}, "schedulerName: "),
    ({"schedulerNames": []}, "schedulerNames: "),
    ({"schedulerName": "other"}, "the policy: schedulerName 'other' is not among schedulerNames ['volcano']"),
    ({"schedulerNames": ["a", "b"]}, "the policy: schedulerName 'volcano' is not among schedulerNames ['a', 'b']"),
    ({"toleration": {"operator": "In"}}, "toleration.operator: "),
    ({"toleration": {"key": ""}}, "toleration.key: "),
    ({"toleration": {"value": "v"}}, "toleration: a toleration with operator Exists has no value"),
    ({"percentage": {"mixedCards": "median"}}, "percentage.mixedCards: "),
    ({"memoryAboveCard": "warn"}, "memoryAboveCard: "),
    ({"workloads": "audit"}, "workloads: "),
    (kinds(group=""), "workloadKinds.0.group: "),
    (kinds(kind="a/b"), "workloadKinds.0.kind: "),
    (kinds(templates=[]), "workloadKinds.0.templates: "),
    (kinds("template"), "workloadKinds.0.templates.0: 'template' is no path of a pod template; write spec and the field names"),
    (kinds("spec.a-b"), "workloadKinds.0.templates.0: 'spec.a-b' is no path of a pod template"),
    (kinds("spec.a[0].template"), "workloadKinds.0.templates.0: 'spec.a[0].template' is no path of a pod template"),
    (kinds(f"spec.{'a' * 200}"), "workloadKinds.0.templates.0: 'spec.aaa"),
    (kinds("spec.in.template"), "workloadKinds.0.templates.0: 'spec.in.template' is no path of a pod template"),
    (kinds("spec.a[*].b[*].*.c"), "workloadKinds.0.templates.0: 'spec.a[*].b[*].*.c' leads through more than 2 lists and maps"),
    ({"namespaces": [{"match": []}]}, "namespaces.0.match: "),
    ({"namespaces": [{"match": ["a"], "exempt": "no"}]}, "namespaces.0.exempt: "),
    ({"fleet": {"autoscaled": "false"}}, "fleet.autoscaled: "),
    ({"fleet": {"autoscaled": 0}}, "fleet.autoscaled: "),
    ({"fleet": {"staleAfterSeconds": 0}}, "fleet.staleAfterSeconds: "),
    ({"fleet": {"staleAfterSeconds": True}}, "fleet.staleAfterSeconds: "),
    ({"fleet": {"staleAfterSeconds": "600"}}, "fleet.staleAfterSeconds: "),
    ({"fleet": {"declared": [{"name": "a", "cards": []}]}}, "fleet.declared.0.cards: "),
    ({"fleet": {"declared": [{"name": "a", "cards": [{"type": "A", "memory": 1}]}] * 101}},
     "fleet.declared: it must be a list of at most 100 values"),
    ({"fleet": {"declared": [{"name": "a", "cards": [{"type": "A", "memory": 1, "count": 1024}] * 2}]}},
     "fleet.declared.0: 2048 cards on one node; declare at most 1024"),
    ([], "the policy: "),
]  # fmt: skip


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
    assert policy.digest != default_policy().digest


# The namespace and account of the workload that writes assignments, in the manifests of each project.
WRITERS = [
    "volcano-system:volcano-scheduler",  # Volcano's Helm chart and installer
    "kube-system:volcano-device-plugin",  # volcano-vgpu-device-plugin
    "kube-system:hami-ascend",  # HAMi's ascend-device-plugin; the DaemonSet is called hami-ascend-device-plugin
    "kube-system:ascend-device-plugin-sa-310p",  # MindCluster's Ascend Device Plugin
    "kube-system:ascend-device-plugin-sa-910",
]


@pytest.mark.parametrize("account", WRITERS)
def test_the_accounts_of_schedulers_and_device_plugins_are_trusted(account):
    assert f"system:serviceaccount:{account}" in DEFAULT_TRUSTED_USERS


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
