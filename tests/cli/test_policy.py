"""`vgpu-webhook policy check` prints the levels and settings that the webhook uses."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import shell
from webhook.policy.effective import FACTS, effective_policy
from webhook.policy.policy import parse_policy
from webhook.rules.registry import DEFAULT_LEVELS, VALIDATIONS
from webhook.rules.settings import Level
from webhook.volcano.target import Target

WIDTH = max(len(rule.id) for rule in VALIDATIONS)
POLICY = {
    "workloads": "off",
    "target": {"volcano": "1.16.0"},
    "rules": {"number-zero": "audit", "card-count": "deny", "several-device-containers": "warn"},
    "namespaces": [
        {"match": ["team-*"], "rules": {"host-access": "deny", "card-count": "off"}},
        {"match": ["kube-*", "x"], "exempt": True},
        {"match": ["team-a"]},
    ],
    "fleet": {"autoscaled": True, "declared": [{"name": "big", "cards": [{"type": "A100", "memory": 81920}]}]},
}


@pytest.fixture
def check(run, write):
    """Run `policy check` on a policy."""

    def check(policy, *options):
        return run("policy", "check", write("policy.yaml", policy), *options)

    return check


def levels(result):
    return {row["id"]: row for row in json.loads(result.out)["levels"]}


# --- levels ---------------------------------------------------------------------------------------------------------


def test_each_level_has_its_source(check):
    rows = levels(check(POLICY, "--namespace", "team-b", "-o", "json"))
    assert list(rows) == [rule.id for rule in VALIDATIONS]

    def row(rule):
        return [rows[rule][key] for key in ("level", "default", "source", "softened")]

    assert row("mode-invalid") == ["deny", "deny", "default", False]
    assert row("number-zero") == ["audit", "deny", "rules", False]
    assert row("host-access") == ["deny", "warn", "namespaces", False]
    assert row("card-count") == ["off", "deny", "namespaces", False]
    assert row("fits-no-node") == ["warn", "deny", "default", True]


def test_levels_as_text(check):
    lines = check(POLICY, "--namespace", "team-b").out.splitlines()
    assert "levels in team-b, as namespaces.0 (team-*) decides" in lines
    rows = {line[4:].split()[0]: line for line in lines if line.startswith(("    ", "  * "))}
    assert rows["mode-invalid"] == f"    {'mode-invalid':{WIDTH}}  deny   default"
    assert rows["number-zero"] == f"  * {'number-zero':{WIDTH}}  audit  rules  (default deny)"
    assert rows["host-access"] == f"  * {'host-access':{WIDTH}}  deny   namespaces.0  (default warn)"
    assert rows["fits-no-node"] == f"  * {'fits-no-node':{WIDTH}}  warn   default deny, softened by fleet.autoscaled"
    assert rows["several-device-containers"] == f"    {'several-device-containers':{WIDTH}}  warn   rules"


AUDITING = {
    "enforcement": "audit",
    "repairs": {"toleration": "off"},
    "namespaces": [
        {"match": ["team-*"], "enforcement": "enforce", "repairs": {"toleration": "on", "scheduler-name": False}},
        {"match": ["lab"], "enforcement": "warn"},
    ],
}


def test_enforcement_and_repairs(check):
    text = check(AUDITING).out
    assert (
        "enforcement in every other namespace: audit: pods are admitted unchanged, and findings are only recorded\n"
        in text
    )
    assert "repairs in every other namespace\n" in text
    assert "  * toleration  off  repairs\n" in text
    entry = "enforcement enforce, repair scheduler-name off, repair toleration on"
    assert f"    namespaces.0 (team-*): {entry}\n    namespaces.1 (lab): enforcement warn\n" in text
    text = check(AUDITING, "--namespace", "team-a").out
    assert "enforcement in team-a: enforce\n" in text
    assert "  * scheduler-name  off  namespaces.0\n" in text
    assert "    toleration  on  namespaces.0\n" in text
    assert "and their author is warned\n" in check(AUDITING, "--namespace", "lab").out


def test_enforcement_and_repairs_as_json(check):
    report = json.loads(check(AUDITING, "--namespace", "team-a", "-o", "json").out)
    assert report["enforcement"] == {"value": "enforce", "source": "namespaces"}
    assert report["repairs"][-2:] == [
        {"id": "toleration", "on": True, "source": "namespaces"},
        {"id": "hide-devices", "on": True, "source": "default"},
    ]
    assert report["namespaces"][0]["repairs"] == {"scheduler-name": False, "toleration": True}
    report = json.loads(check(AUDITING, "--namespace", "other", "-o", "json").out)
    assert report["enforcement"] == {"value": "audit", "source": "enforcement"}
    report = json.loads(check({}, "-o", "json").out)
    assert report["enforcement"] == {"value": "enforce", "source": "default"}


levels_of_rules = st.dictionaries(st.sampled_from(sorted(DEFAULT_LEVELS)), st.sampled_from([*Level]), max_size=6)
entries = st.fixed_dictionaries(
    {"match": st.lists(st.sampled_from(["*", "a", "a*", "?", "b"]), min_size=1), "rules": levels_of_rules},
    optional={"exempt": st.booleans()},
)
policies = st.fixed_dictionaries(
    {"rules": levels_of_rules, "namespaces": st.lists(entries, max_size=4)},
    optional={"fleet": st.fixed_dictionaries({"autoscaled": st.booleans()})},
).map(lambda document: parse_policy(document, "drawn"))


@given(policies, st.sampled_from(["a", "ab", "b", "c", "cd"]))
def test_the_effective_policy_has_the_levels_of_the_webhook(policy, namespace):
    effective, levels_in_use = effective_policy(policy, "file", namespace), policy.levels.of(namespace)
    assert effective.exempt is levels_in_use.exempt
    assert effective.exempt or {row.id: row.level for row in effective.levels} == levels_in_use.levels


@given(policies)
def test_every_other_namespace_matches_no_specific_entry(policy):
    effective, levels_in_use = effective_policy(policy, "file", None), policy.levels.of("none-of-them")
    assert effective.exempt is levels_in_use.exempt
    assert effective.exempt or {row.id: row.level for row in effective.levels} == levels_in_use.levels
    for entry in effective.namespaces:
        assert entry.exempt or {**levels_in_use.levels, **entry.changes} == policy.levels.at(entry.index).levels


def test_what_each_entry_changes(check):
    result = check(POLICY)
    assert "levels in every other namespace\n" in result.out
    assert result.out.endswith(
        "namespaces, of which the last one that matches decides\n"
        "    namespaces.0 (team-*): host-access deny, card-count off\n"
        "    namespaces.1 (kube-*, x): exempt\n"
        "    namespaces.2 (team-a): as in every other namespace\n\n"
        "warnings\n"
        "  rules.card-count: it warns instead of denying, because fleet.autoscaled is true and a larger node may come; write "
        "warn, or set fleet.autoscaled: false\n"
    )
    assert "namespaces, of" not in check(POLICY, "--namespace", "x").out
    assert [entry["changes"] for entry in json.loads(check(POLICY, "-o", "json").out)["namespaces"]] == [
        {"host-access": "deny", "card-count": "off"}, {}, {},
    ]  # fmt: skip


def test_an_entry_for_all_namespaces_applies_to_every_other_namespace(check):
    policy = {"namespaces": [{"match": ["*"], "rules": {"card-count": "warn"}}, {"match": ["a"]}]}
    out = check(policy).out
    assert "levels in every other namespace, as namespaces.0 (*) decides\n" in out
    assert f"{'card-count':{WIDTH}}  warn   namespaces.0  (default deny)" in out
    assert "namespaces.0 (*): as in every other namespace\n    namespaces.1 (a): card-count deny\n" in out


def test_rules_of_an_exempt_entry_change_nothing(check):
    policy = {"namespaces": [{"match": ["a"], "exempt": True, "rules": {"card-count": "off"}}]}
    (entry,) = json.loads(check(policy, "-o", "json").out)["namespaces"]
    assert entry == {"index": 0, "match": ["a"], "exempt": True, "changes": {}, "enforcement": None, "repairs": {}}


def test_many_globs_are_truncated(check):
    policy = {"namespaces": [{"match": [f"team-{index}" for index in range(20)], "exempt": True}]}
    globs = "team-0, team-1, team-2, team-3, team-4, team-5, team-6, tea…"
    assert f"    namespaces.0 ({globs}): exempt\n" in check(policy).out


def test_an_exempt_namespace_has_no_levels(check):
    result = check(POLICY, "--namespace", "kube-system")
    assert "kube-system is exempt by namespaces.1 (kube-*, x): pods pass untouched\n" in result.out
    assert "mode-invalid" not in result.out
    value = json.loads(check(POLICY, "--namespace", "kube-system", "-o", "json").out)
    assert (value["exempt"], value["decider"], value["levels"]) == (True, 1, [])


# --- settings -------------------------------------------------------------------------------------------------------


def test_every_setting_with_its_default(check):
    value = json.loads(check(POLICY, "-o", "json").out)
    settings = {row["key"]: row for row in value["settings"]}
    assert settings["schedulerName"] == {"key": "schedulerName", "value": "volcano", "default": "volcano"}
    assert settings["workloads"]["value"] == "off"
    assert settings["workloads"]["default"] == "warn"
    assert settings["fleet.declared"]["value"][0]["cards"][0]["memory"] == 81920
    assert settings["toleration"]["value"]["key"] == "volcano.sh/vgpu"
    assert value["digest"] == parse_policy(POLICY, "").digest
    sections = {"target", "percentage", "fleet"}
    assert {key.split(".")[0] for key in settings} | {"rules", "namespaces"} >= sections | {"trustedUsers"}


def test_changed_settings_are_marked(check):
    lines = check(POLICY, "--namespace", "a").out.splitlines()
    assert "  * workloads                off  (default warn)" in lines
    assert "    memoryAboveCard          clamp" in lines
    assert "    toleration               {key: volcano.sh/vgpu, operator: Exists, effect: NoSchedule}" in lines
    marked = [line[4:].split()[0] for line in lines[: lines.index("levels in a")] if line.startswith("  * ")]
    assert marked == ["target.volcano", "GPU", "an", "workloads", "fleet.autoscaled", "fleet.declared"]


@pytest.mark.parametrize(
    "target, fact",
    [
        ({"volcano": "1.15.1"}, "a node counts only if it offers all three vGPU names"),
        ({"volcano": "1.15.0"}, "a node counts whatever vGPU names it lacks"),
        ({"volcano": "1.16.0"}, "GPU UUID annotations are read"),
        ({"volcano": "1.15.1"}, "GPU UUID annotations are ignored"),
        ({"volcano": "1.15.0"}, "cards are tried in the order of deviceshare.SchedulePolicy"),
        ({"volcano": "1.14.0"}, "cards are tried from the last one on"),
        ({"volcano": "1.15.0"}, "the annotation that spreads a group's pods over cards is read"),
        ({"volcano": "1.14.0"}, "the annotation that spreads a group's pods over cards is ignored"),
        ({"volcano": "1.14.0"}, "a pod that is being deleted occupies its devices"),
        ({"volcano": "1.15.0"}, "a pod that is being deleted occupies no device"),
        ({"volcano": "1.14.0"}, "each entry of a pod for the same card counts"),
        ({"volcano": "1.15.0"}, "the first entry of a pod for a card counts, others do not"),
        ({"volcano": "1.16.0"}, "an assignment that cannot be read is skipped"),
        ({"volcano": "1.15.0"}, "an assignment with too few fields stops the scheduler"),
        ({"devicePlugin": "1.12.0"}, "one vGPU container a pod is served"),
        ({"devicePlugin": "1.11.0"}, "several vGPU containers a pod are served"),
    ],
)
def test_facts_of_a_version(target, fact):
    settings = effective_policy(parse_policy({"target": target}, "the file"), "file", None).settings
    assert fact in [each.text for row in settings for each in row.facts]


def test_facts_are_shown_below_their_setting(check):
    fact = "GPU UUID annotations are read"
    assert f" {fact}\n" in check(POLICY).out
    assert fact in [
        each for row in json.loads(check(POLICY, "-o", "json").out)["settings"] for each in row.get("facts", ())
    ]


def test_every_derived_field_has_a_fact():
    derived = {field.name for field in dataclasses.fields(Target) if not field.init and field.type is bool}
    assert {name for facts in FACTS.values() for name in facts} == derived


def test_changed_prints_only_the_differences(check):
    assert check({}, "--changed").out.splitlines()[1:] == [
        "", "settings: default", "", "levels in every namespace: default",
    ]  # fmt: skip
    out = check({"workloads": "deny", "rules": {"card-count": "warn"}}, "--changed").out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("  ")] == ["workloads", "card-count"]


# --- warnings and hostile input -------------------------------------------------------------------------------------


def test_warnings_are_errors_only_on_request(check):
    with_warning, without_warning = {"namespaces": [{"match": ["default"]}]}, {"rules": {"card-count": "warn"}}
    assert check(with_warning).code == 0
    assert check(with_warning, "--warnings-as-errors").code == 3
    assert check(without_warning, "--warnings-as-errors").code == 0
    assert "policy.yaml: valid, with 1 warning\n" in check(with_warning).out
    assert json.loads(check(with_warning, "-o", "json").out)["warnings"][0]["path"] == "namespaces.0"


def test_control_characters_are_escaped(check, run, write):
    policy = {
        "namespaces": [{"match": ["a\x1b[31m"]}],
        "trustedUsers": ["\x1b[31m"],
        "schedulerNames": ["volcano", "\x1b"],
    }
    for options in ((), ("-o", "json"), ("--namespace", "\x1b[31m")):
        assert "\x1b" not in check(policy, *options).out
    assert "\x1b" not in check({"\x1b[31m": 1}).err
    path = write("\x1b[31m.yaml", {})
    assert "\x1b" not in run("policy", "check", path).out + run("policy", "check", f"{path}x").err


def test_arguments_that_are_not_utf_8(write):
    for output in ("text", "json"):
        result = shell("policy", "check", write("\udcfe.yaml", {}), "--namespace", "\udcff", "-o", output)
        assert (result.returncode, result.stderr) == (0, b"")
        assert b"\\udcfe.yaml" in result.stdout
        assert b"\\udcff" in result.stdout
