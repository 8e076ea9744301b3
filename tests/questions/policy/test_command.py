"""`vgpu-webhook policy check` finds mistakes in a policy; `policy effective` prints what holds in a namespace."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import shell
from tests.cli.rows import rows
from webhook.policy.policy import default_policy, parse_policy
from webhook.questions.policy.effective import effective_policy
from webhook.questions.policy.text import effective_yaml
from webhook.rules.choices import Level
from webhook.rules.policy_keys import PolicyKeys
from webhook.rules.registry import DEFAULT_LEVELS

test_command = rows(__file__)


@pytest.fixture
def effective(run, write):
    return lambda policy, *options: run("policy", "effective", write("policy.yaml", policy), *options).out.splitlines()


def everywhere(policy):
    return {key: getattr(policy, key) for key in PolicyKeys.model_fields if key != "dialects"}


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


def test_arguments_that_are_not_utf_8(write):
    printed = shell("policy", "effective", write("\udcfe.yaml", {}), "--namespace", "\udcff")
    assert (printed.returncode, printed.stderr) == (0, b"")
    assert b"\\udcff" in printed.stdout
