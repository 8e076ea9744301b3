"""`vgpu-webhook policy default` and `schema`: they are complete and agree with the loader."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.cases import each_case
from tests.policy.test_levels import NAMESPACES
from tests.policy.test_policy import CONTRACT, MISSPELT, NOT_DEFAULT, WRONG
from tests.rules.test_cases import ALL
from tests.strategies import json_values
from webhook.errors import ConfigError
from webhook.policy.json_schema import json_schema
from webhook.policy.policy import Policy, default_policy, parse_policy
from webhook.questions.policy.text import commented_default
from webhook.rules.choices import Level
from webhook.rules.registry import DEFAULT_LEVELS
from webhook.settings.table import POLICY

SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

# Errors that a schema cannot express, because one value depends on another.
NOT_IN_SCHEMA = (
    "fleet.declared.0: 2048 cards on one node",
    "the policy: schedulerName",
    "toleration: a toleration with operator Exists",
    "workloadKinds.0.templates.0: 'spec.in.",
    "workloadKinds.0.templates.0: 'spec.a[*].b[*].*.c'",
    "exceptions.0.until: '2026-02-30'",
    "namespaces.0.limits.memory: min 2 is above max 1",
    "namespaces.0.limits.number: min 1 is above max 0",
    "namespaces.0.limits.cards.allow.0: it names no cards",
)


def is_accepted(document):
    try:
        parse_policy(document, "the file")
    except ConfigError:
        return False
    return True


def objects(node=SCHEMA):
    """Every part of the schema that describes an object."""
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for inner in node.values():
            yield from objects(inner)


# --- the default policy ---------------------------------------------------------------------------------------------


def test_default_prints_the_default_policy(run, write):
    printed = run("policy", "default").out
    assert POLICY.load(write("policy.yaml", printed)) == default_policy()
    assert POLICY.load(write("policy.yaml", printed)).digest == default_policy().digest


def test_the_default_has_every_key_and_every_rule():
    keys = {key for node in objects() for key in node["properties"]}
    assert keys > {field.alias for field in Policy.model_fields.values()} | set(DEFAULT_LEVELS)
    assert set(re.findall(r"([\w-]+):(?: |$)", commented_default(), re.MULTILINE)) >= keys


def test_every_key_has_its_description():
    def flat(text):
        return " ".join(text.replace("#", " ").split())

    text, inner = commented_default(), [each for node in objects() for each in node["properties"].values()]
    descriptions = [flat(each["description"]) for each in inner if "description" in each]
    assert len(descriptions) > 20
    assert [each for each in descriptions if each not in flat(text)] == []
    assert "# The version of Volcano's scheduler, 1.13 or newer.\n  volcano: '1.15.1'\n" in text
    assert "review pods only.\nworkloads: warn\n" in text
    assert "One of: smallest, largest, deny.\n  mixedCards: smallest\n" in text
    assert "\n# warning; deny refuses the pod.\nmemoryAboveCard: clamp\n" in text


@pytest.mark.parametrize("key", ["rules", "repairs", "dialects", "namespaces", "declared"])
def test_commented_out_examples_are_valid(key):
    lines = commented_default().splitlines()
    start = next(number for number, line in enumerate(lines) if line.lstrip() in (f"{key}: {{}}", f"{key}: []"))
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = next((n for n, line in enumerate(lines[start + 1 :], start + 1) if not line.strip()), len(lines))
    uncommented = [" " * indent + line.strip().removeprefix("# ") for line in lines[start + 1 : end]]
    document = yaml.safe_load("\n".join([*lines[:start], lines[start][:-3], *uncommented, *lines[end:]]))
    value = document["fleet"]["declared"] if key == "declared" else document[key]
    assert value
    assert is_accepted(document)
    assert list(VALIDATOR.iter_errors(document)) == []
    if key == "rules":
        assert value == DEFAULT_LEVELS


# --- the schema -----------------------------------------------------------------------------------------------------


def test_schema_prints_a_json_schema(run):
    printed = json.loads(run("policy", "schema").out)
    assert printed == json.loads(json.dumps(SCHEMA))
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert printed["title"] == "vgpu-webhook policy"
    Draft202012Validator.check_schema(printed)


def test_editors_get_descriptions_defaults_and_choices():
    for key, node in SCHEMA["properties"].items():
        assert node["description"], key
        assert node["default"] == CONTRACT.get(key) or key == "toleration", f"{key}: see tests/policy/policies.yaml"
    for rules in (SCHEMA["properties"]["rules"], SCHEMA["$defs"]["NamespaceEntry"]["properties"]["rules"]):
        assert {rule: node["default"] for rule, node in rules["properties"].items()} == DEFAULT_LEVELS
        assert all(node["enum"] == [*Level, False] and node["description"] for node in rules["properties"].values())


def test_definitions_are_named_after_their_class():
    assert {name: node["title"] for name, node in SCHEMA["$defs"].items()} == {name: name for name in SCHEMA["$defs"]}
    assert not any(name.startswith("_") for name in SCHEMA["$defs"])
    assert not any("title" in inner for node in objects() for inner in node["properties"].values())


def test_no_object_accepts_unknown_keys():
    assert len(list(objects())) > 8
    assert all(node["additionalProperties"] is False for node in objects())


def policies_of_tests():
    yield from ({}, CONTRACT, NOT_DEFAULT, {"toleration": None}, {"namespaces": NAMESPACES})
    yield from ({"workloads": word, "rules": {"card-count": word}} for word in ("off", False))
    yield yaml.safe_load((Path("webhook") / "samples" / "policy.yaml").read_text())
    yield from (case["policy"] for cases in ALL.values() for case in cases if "policy" in case)


def test_every_policy_of_the_tests_is_valid():
    policies = list(policies_of_tests())
    assert len(policies) > 20
    for policy in policies:
        assert is_accepted(policy), policy
        assert list(VALIDATOR.iter_errors(policy)) == [], policy


@each_case("document", [document for document, *_ in MISSPELT])
def test_a_misspelt_key_is_invalid(document):
    errors = list(VALIDATOR.iter_errors(document))
    for error in errors:
        errors += error.context
    assert "additionalProperties" in {error.validator for error in errors}


@each_case("document, start", WRONG)
def test_a_wrong_value_is_invalid(document, start):
    assert VALIDATOR.is_valid(document) is start.startswith(NOT_IN_SCHEMA)


scalars = st.sampled_from(
    ["off", False, True, None, "deny", "warn", "audit", "clamp", "1.16", "v1.2.3-a", " 1.2", 1, "a"]
)
rules = st.dictionaries(st.sampled_from([*DEFAULT_LEVELS, "card-cuont"]), scalars, max_size=2)
globs = {"match": st.lists(scalars, max_size=2)}
entries = st.fixed_dictionaries(globs, optional={"rules": rules, "exempt": scalars})
fleet_keys = st.sampled_from(["autoscaled", "staleAfterSeconds", "declared"])
documents = st.fixed_dictionaries(
    {},
    optional={
        "target": st.dictionaries(st.sampled_from(["volcano", "devicePlugin", "x"]), scalars, max_size=2),
        "workloads": scalars,
        "memoryAboveCard": scalars,
        "rules": rules,
        "namespaces": st.lists(entries, max_size=2),
        "fleet": st.dictionaries(fleet_keys, scalars | st.just([])),
        "trustedUsers": json_values,
    },
)


@given(documents)
def test_loader_and_schema_agree(document):
    assert VALIDATOR.is_valid(document) is is_accepted(document)


@given(st.lists(st.text("v1.20-+a \n", max_size=8)))
@example([" v1.2.3 ", "1.2\n", "1.13\n", "1.12.9", "1.11", "2.0", "01.20", "1.2-alpha.1+x"])
def test_loader_and_schema_agree_on_versions(texts):
    for document in [{"target": {key: text}} for text in texts for key in ("volcano", "devicePlugin")]:
        assert VALIDATOR.is_valid(document) is is_accepted(document), document
