"""`vgpu-webhook policy check` finds mistakes in a policy; `policy effective` prints what holds in a namespace."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import shell
from webhook.policy.policy import default_policy, parse_policy
from webhook.questions.policy.effective import effective_policy
from webhook.questions.policy.text import effective_yaml
from webhook.rules.choices import Level
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.rules.settings import Settings

POLICY = {
    "workloads": "off",
    "target": {"volcano": "1.16.0"},
    "rules": {"number-zero": "audit", "card-count": "deny", "gputype-unknown": "warn"},
    "namespaces": [
        {"match": ["team-*"], "rules": {"host-access": "deny", "card-count": "off"}},
        {"match": ["kube-*", "x"], "exempt": True},
        {"match": ["team-a"]},
    ],
    "fleet": {"autoscaled": True, "declared": [{"name": "big", "cards": [{"type": "A100", "memory": 81920}]}]},
}
AUDITING = {
    "enforcement": "audit",
    "repairs": {"toleration": "off"},
    "namespaces": [
        {"match": ["*"], "enforcement": "warn"},
        {"match": ["team-*"], "enforcement": "enforce", "repairs": {"toleration": "on", "scheduler-name": False}},
        {"match": [f"team-{number}" for number in range(20)]},
    ],
}


@pytest.fixture
def check(run, write):
    """Run `policy check` on a policy."""
    return lambda policy, *options: run("policy", "check", write("policy.yaml", policy), *options)


@pytest.fixture
def effective(run, write):
    """The lines of `policy effective` of a policy."""
    return lambda policy, *options: run("policy", "effective", write("policy.yaml", policy), *options).out.splitlines()


def test_what_is_not_the_default_has_a_comment(effective):
    lines = effective(POLICY, "--namespace", "team-b")
    assert lines[0] == "# in team-b, as namespaces.0 (team-*) decides"
    assert [line.strip() for line in lines if "  #" in line and ":" in line and not line.strip().startswith("#")] == [
        "volcano: '1.16.0'  # default 1.15.1",
        "workloads: 'off'  # default warn",
        "autoscaled: true  # default false",
        "declared:  # default []",
        "number-zero: audit  # rules, default deny",
        "host-access: deny  # namespaces.0, default warn",
        "unknown-resource: warn  # softened by fleet.autoscaled",
        "card-count: 'off'  # namespaces.0, default deny",
        "no-eligible-card: warn  # softened by fleet.autoscaled",
        "memory-above-card: warn  # softened by fleet.autoscaled",
        "split-count: warn  # softened by fleet.autoscaled",
        "fits-no-node: warn  # softened by fleet.autoscaled",
        "gputype-unknown: warn  # rules",
        "gang-too-large: warn  # softened by fleet.autoscaled",
    ]
    assert "namespaces:" not in lines


def test_enforcement_and_repairs(effective):
    lines = effective(AUDITING, "--namespace", "team-x")
    assert "enforcement: enforce  # namespaces.1" in lines
    assert "  scheduler-name: false  # namespaces.1, default true" in lines
    assert "  toleration: true  # namespaces.1" in lines
    assert "enforcement: warn  # namespaces.0, default enforce" in effective(AUDITING)
    assert "  toleration: false  # repairs, default true" in effective(AUDITING)


def test_other_namespaces_follow_from_the_entries(effective):
    assert effective({})[0] == "# in every namespace"
    assert effective(AUDITING)[0] == "# in every other namespace, as namespaces.0 (*) decides"
    lines = effective(POLICY)
    assert lines[0] == "# in every other namespace"
    assert yaml.safe_load("\n".join(lines))["namespaces"] == POLICY["namespaces"]
    globs = "team-0, team-1, team-2, team-3, team-4, team-5, team-6, tea…"
    assert effective(AUDITING, "-n", "team-1")[0] == f"# in team-1, as namespaces.2 ({globs}) decides"


def test_an_exempt_namespace_has_no_levels(effective):
    first, *lines = effective(POLICY, "--namespace", "kube-system")
    assert first == ("# in kube-system, as namespaces.1 (kube-*, x) decides: it is exempt, and pods are not reviewed")
    assert {"rules:", "repairs:", "enforcement: enforce"}.isdisjoint(lines)


def everywhere(policy):
    """The keys that hold in every namespace."""
    return {key: getattr(policy, key) for key in Settings.model_fields if key != "dialects"}


def test_the_effective_default_is_the_default_policy(effective):
    printed, usual = parse_policy(yaml.safe_load("\n".join(effective({}))), "printed"), default_policy()
    assert everywhere(printed) == everywhere(usual)
    assert printed.of("a") == usual.of("a")


levels_of_rules = st.dictionaries(st.sampled_from(sorted(DEFAULT_LEVELS)), st.sampled_from([*Level]), max_size=6)
entries = st.fixed_dictionaries(
    {"match": st.lists(st.sampled_from(["*", "a", "a*", "?", "b"]), min_size=1), "rules": levels_of_rules},
    optional={
        "exempt": st.booleans(),
        "enforcement": st.sampled_from(["enforce", "warn", "audit"]),
        "limits": st.sampled_from([None, {}, {"memory": {"max": 9}, "cores": {"min": 1, "max": 2}, "number": None}]),
    },
)
policies = st.fixed_dictionaries(
    {"rules": levels_of_rules, "namespaces": st.lists(entries, max_size=4)},
    optional={"fleet": st.fixed_dictionaries({"autoscaled": st.booleans()})},
).map(lambda document: parse_policy(document, "drawn"))


@given(policies, st.sampled_from(["a", "ab", "b", "c", "cd", None]))
def test_what_is_printed_is_a_policy_that_says_the_same(policy, namespace):
    found = effective_policy(policy, namespace)
    printed = parse_policy(yaml.safe_load("\n".join(effective_yaml(found))), "printed")
    here = policy.of("none-of-them" if namespace is None else namespace)
    there = printed.of("none-of-them" if namespace is None else namespace)
    assert ("exempt" in found.where) is there.exempt is here.exempt
    if not here.exempt:
        for what in ("levels", "enforcement", "repairs_off", "dialects", "limits"):
            assert getattr(there, what) == getattr(here, what)
    assert everywhere(printed) == everywhere(policy)


FACTS = {
    ("volcano", "1.14.0"): [
        "cards are tried from the last one on",
        "the annotation that spreads a group's pods over cards is ignored",
        "a pod that is being deleted occupies its devices",
        "each entry of a pod for the same card counts",
    ],
    ("volcano", "1.15.0"): [
        "a node counts whatever device names it lacks",
        "cards are tried in the order of deviceshare.SchedulePolicy",
        "the annotation that spreads a group's pods over cards is read",
        "a pod that is being deleted occupies no device",
        "the first entry of a pod for a card counts, others do not",
        "an assignment with too few fields stops the scheduler",
    ],
    ("volcano", "1.15.1"): [
        "a node counts only if it offers all three vGPU names, or the name of its NPUs",
        "GPU UUID annotations are ignored",
    ],
    ("volcano", "1.16.0"): ["GPU UUID annotations are read", "an assignment that cannot be read is skipped"],
    ("devicePlugin", "1.12.0"): ["one vGPU container a pod is served"],
    ("devicePlugin", "1.11.0"): ["several vGPU containers a pod are served"],
}


@pytest.mark.parametrize("target, facts", FACTS.items())
def test_facts_of_a_version(effective, target, facts):
    lines = effective({"target": dict([target])})
    assert [fact for fact in facts if f"  # {fact}" not in lines] == []


def test_warnings_are_errors_only_on_request(check):
    with_warning, without_warning = {"namespaces": [{"match": ["default"]}]}, {"rules": {"card-count": "warn"}}
    assert check(with_warning).code == 0
    assert check(with_warning, "--warnings-as-errors").code == 3
    assert check(without_warning, "--warnings-as-errors").code == 0
    assert check(without_warning).out.endswith("policy.yaml: valid\n")
    assert check(POLICY).out.endswith(
        "policy.yaml: valid, with 1 warning\n"
        "  rules.card-count: it warns instead of denying, because fleet.autoscaled is true and a larger node may come; write "
        "warn, or set fleet.autoscaled: false\n"
    )


def test_control_characters_are_escaped(check, effective, run, write):
    policy = {
        "namespaces": [{"match": ["a\x1b[31m"]}],
        "trustedUsers": ["\x1b[31m"],
        "schedulerNames": ["volcano", "\x1b"],
    }
    assert "\x1b" not in check(policy).out
    for options in ((), ("--namespace", "\x1b[31m"), ("--namespace", "a\x1b[31m")):
        lines = effective(policy, *options)
        assert len(lines) > 20
        assert "\x1b" not in "".join(lines)
    assert "\x1b" not in check({"\x1b[31m": 1}).err
    path = write("\x1b[31m.yaml", {})
    assert "\x1b" not in run("policy", "check", path).out + run("policy", "check", f"{path}x").err


def test_arguments_that_are_not_utf_8(write):
    printed = shell("policy", "effective", write("\udcfe.yaml", {}), "--namespace", "\udcff")
    assert (printed.returncode, printed.stderr) == (0, b"")
    assert b"\\udcff" in printed.stdout
