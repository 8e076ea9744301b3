"""Which parts of a pod's nodeSelector and node affinity are read, and when they are ignored."""

import pytest

from tests.cases import each_case
from tests.strategies import affinity
from webhook.pod.selectors import (
    COMPARISON_COST,
    MAX_REQUIREMENTS,
    MAX_WORD,
    NodeSelector,
    Operator,
    Requirement,
    integer,
)
from webhook.pod.view import PodView

ZONE = {"key": "zone", "operator": "Exists"}


# Each is invalid, and matches every node.
MALFORMED = [
    {"nodeSelector": {"": "a"}},
    {"nodeSelector": {"zone": None}},
    {"affinity": affinity([])},
    {"affinity": affinity([{"matchExpressions": 0}])},
    {"affinity": affinity([None, {"matchExpressions": [{"key": "x", "operator": "Exists"}]}])},
    *[
        {"affinity": affinity([{"matchExpressions": [expression]}])}
        for expression in (
            {"key": "x", "operator": "Exists", "values": 0},
            {"key": "x", "operator": "Exists", "values": ["a"]},
            {"key": "zone", "operator": "in", "values": ["b"]},
            {"key": "zone", "operator": "In"},
            {"key": "zone", "operator": "Gt", "values": ["a"]},
            {"key": "zone", "operator": "Gt", "values": ["1", "2"]},
        )
    ],
    *[
        {"affinity": affinity([{"matchFields": [field]}])}
        for field in (
            {"key": "x", "operator": "In", "values": ["b"]},
            {"key": "metadata.name", "operator": "NotIn", "values": ["n0", "n1"]},
            {"key": "metadata.name", "operator": "Gt", "values": ["1"]},
            {"key": "metadata.name", "operator": "Exists"},
        )
    ],
]


def read(**spec):
    return PodView({"spec": spec}).selector


def terms(*node_terms):
    return read(affinity=affinity(list(node_terms)))


def test_node_selector_and_affinity_are_read():
    selector = read(
        nodeSelector={"zone": "a", "size": "1"},
        affinity=affinity(
            [
                {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["b", "c"]}, ZONE]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]},
            ]
        ),
    )
    assert selector == NodeSelector(
        (Requirement("zone", Operator.IN, ("a",)), Requirement("size", Operator.IN, ("1",))),
        (
            (Requirement("zone", Operator.NOT_IN, ("b", "c")), Requirement("zone", Operator.EXISTS)),
            (Requirement("", Operator.IN, ("n0",)),),
        ),
    )
    assert selector.words == "nodeSelector with node affinity"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": {}},
        {"nodeSelector": None, "affinity": None},
        {"affinity": {"podAffinity": {}, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
        {"affinity": affinity(None)},
        {"affinity": affinity([])},
        {"affinity": affinity([{"matchExpressions": [ZONE]}, {"matchExpressions": ["zone"]}])},
    ],
)
def test_a_pod_without_requirements_has_no_selector(spec):
    assert read(**spec) is None


def test_an_empty_term_matches_no_node():
    nothing = (Requirement("", Operator.IN),)
    assert terms({}, {"matchExpressions": [ZONE]}).terms == (nothing, (Requirement("zone", Operator.EXISTS),))
    assert terms({"matchExpressions": [], "matchFields": None}).terms == (nothing,)


ONE_OF_MANY = {**ZONE, "operator": "In", "values": ["a"] * (MAX_REQUIREMENTS - 2)}
TOO_MANY = {**ZONE, "values": ["a"] * (MAX_REQUIREMENTS - 3)}  # Exists ignores its values

EXACT = [
    {"nodeSelector": {f"label-{i}": "a" for i in range(MAX_REQUIREMENTS)}},
    {"affinity": affinity([{"matchExpressions": [ZONE] * (MAX_REQUIREMENTS - 1)}])},
    {"affinity": affinity([{"matchExpressions": [ONE_OF_MANY]}])},
    {"nodeSelector": {"zone": "a"}, "affinity": affinity([{"matchExpressions": [TOO_MANY]}])},
    {"affinity": affinity([{"matchFields": [ZONE] * (MAX_REQUIREMENTS - 3), "matchExpressions": [ZONE]}, {}])},
    {"nodeSelector": {"zone": "a"}, "affinity": affinity([{"matchExpressions": [None] * (MAX_REQUIREMENTS - 2)}])},
    {"nodeSelector": {"zone": "a"}, "affinity": affinity([None] * (MAX_REQUIREMENTS - 1))},
    {"affinity": affinity([{}] * MAX_REQUIREMENTS)},
]


@pytest.mark.parametrize("spec", EXACT)
def test_invalid_terms_count_toward_the_limit(spec):
    """The length of the whole selector counts, valid or not, so that a shortened copy is read the same way."""
    assert read(**spec) is not None
    assert read(**{**spec, "nodeSelector": {**spec.get("nodeSelector", {}), "one-more": "a"}}) is None


def test_a_comparison_costs_as_much_as_many_values():
    comparison = {"key": "size", "operator": "Gt", "values": ["1"]}
    most = (MAX_REQUIREMENTS - 1) // (COMPARISON_COST + 2)
    assert 2 <= most < 10
    assert len(terms({"matchExpressions": [comparison] * most}).terms[0]) == most
    assert terms({"matchExpressions": [comparison] * (most + 1)}) is None


@pytest.mark.parametrize(
    "spec",
    [
        lambda word: {"nodeSelector": {word: "a"}},
        lambda word: {"nodeSelector": {"zone": word}},
        lambda word: {"affinity": affinity([{"matchExpressions": [{"key": word, "operator": "Exists"}]}])},
        lambda word: {"affinity": affinity([{"matchExpressions": [{**ZONE, "operator": "In", "values": [word]}]}])},
        lambda word: {"affinity": affinity([{"matchExpressions": [ZONE, {"key": "zone", "operator": word}]}])},
    ],
)
def test_a_selector_with_a_text_longer_than_a_label_is_ignored(spec):
    """Selectors are cached, and any user can send them."""
    assert read(**spec("x" * MAX_WORD)) is not None
    assert read(**spec("x" * (MAX_WORD + 1))) is None


@each_case(
    "text, number",
    [
        ("0", 0), ("+3", 3), ("-3", -3), ("007", 7), ("0" * 60 + "5", 5), ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)), ("9223372036854775808", None), ("-9223372036854775809", None), ("", None),
        ("+", None), ("--1", None), ("1.0", None), ("1_0", None), (" 1", None), ("²", None), ("٣", None), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_integers_are_read_as_go_reads_them(text, number):
    assert integer(text) == number
