"""The nodes that a selector matches, compared with a reference that checks one node after the other."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import strategies
from tests.cases import each_case
from tests.devices import reference
from tests.examples import examples
from tests.pod.test_selectors import MALFORMED
from tests.timing import within
from webhook.devices.nodes import MAX_COMPARED, Index, Node
from webhook.pod.selectors import COMPARISON_COST, MAX_REQUIREMENTS, NodeSelector, Operator, Requirement, read_selector

thorough = examples(100)
fleets = st.lists(st.builds(Node, st.sampled_from(strategies.NODE_NAMES), strategies.labels), max_size=12)


def matched(spec, index, most=MAX_REQUIREMENTS):
    """The numbers of the nodes that a pod's spec matches."""
    selector = read_selector(spec, most)
    all_numbers = set(range(len(index.names)))
    return all_numbers if selector is None else members(index.selected(selector), all_numbers)


def members(bits, all_numbers):
    assert bits >> len(all_numbers) == 0
    return {number for number in all_numbers if bits >> number & 1}


def term(*expressions):
    return {"affinity": strategies.affinity([{"matchExpressions": list(expressions)}])}


@thorough
@example([Node(zone, {"zone": zone}) for zone in "aabbc"], [term({"key": "zone", "operator": "Exists"})])
@given(fleets, st.lists(strategies.selectors, min_size=1, max_size=3))
def test_a_selector_matches_the_nodes_that_kubernetes_matches(fleet, specs):
    indexes = [Index(fleet), Index(fleet, listed=1)]  # the nodes with a value of a label as lists, and as bits
    for spec in specs + specs:  # the second result comes from the cache
        expected = {i for i, node in enumerate(fleet) if reference.matches(spec, node.name, node.labels)}
        assert [matched(spec, index, 10**6) for index in indexes] == [expected] * 2


@thorough
@given(fleets, strategies.mangled(strategies.selectors.filter(bool)))
def test_a_malformed_selector_excludes_no_possible_node(fleet, spec):
    possible = {i for i, node in enumerate(fleet) if reference.might_match(spec, node.name, node.labels)}
    assert matched(spec, Index(fleet)) >= possible


FIELDS = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "key", "operator")
any_json = st.recursive(
    strategies.scalars | st.sampled_from([*strategies.LABELS, "In", "Gt", "metadata.name"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*FIELDS, "values", "matchExpressions", "matchFields", "zone"]), inner)
    ),
    max_leaves=12,
)


@given(fleets, any_json, any_json, any_json)
def test_any_json_is_read(fleet, selector, affinity, terms):
    index = Index(fleet)
    for required in (affinity, strategies.affinity(terms)):
        spec = {"nodeSelector": selector, "affinity": required}
        possible = {i for i, node in enumerate(fleet) if reference.might_match(spec, node.name, node.labels)}
        assert matched(spec, index) >= possible


@pytest.mark.parametrize("spec", MALFORMED)
def test_a_malformed_selector_matches_every_node(spec):
    assert matched(spec, Index([Node("n0", {"zone": "a"}), Node("n1")])) == {0, 1}


@pytest.mark.parametrize("operator, expected", [("Exists", set()), ("DoesNotExist", {0, 1})])
def test_a_label_that_no_node_has(operator, expected):
    assert matched(term({"key": "zone", "operator": operator}), Index([Node("n0"), Node("n1")])) == expected


@pytest.mark.parametrize("operator, expected", [("Gt", {1, 2}), ("Lt", {0})])
def test_gt_and_lt_match_every_value_of_a_label_with_too_many_values(operator, expected):
    fleet = [*(Node(f"n{number}", {"size": size}) for number, size in enumerate("1574")), Node("n4")]
    spec = term({"key": "size", "operator": operator, "values": ["4"]})
    assert matched(spec, Index(fleet, compared=4)) == expected
    assert matched(spec, Index(fleet, compared=3)) == {0, 1, 2, 3}


def test_a_few_selectors_are_remembered():
    index = Index([Node(f"n{number}", {"zone": "a"}) for number in range(100)], remembered=2)
    first, second, third = (NodeSelector((Requirement("zone", Operator.NOT_IN, (word,)),)) for word in "bcd")
    bits = index.selected(first)
    index.selected(second)
    assert index.selected(first) is bits
    index.selected(third)
    assert index.selected(first) is not bits


# --- cost -----------------------------------------------------------------------------------------------------------

NODES, LABELS = 50_000, 20


@pytest.fixture(scope="module")
def large():
    """A large fleet, with labels of few and of many values."""
    order = random.Random(7)
    labels = [f"label-{label}" for label in range(LABELS)]
    values = [[*map(str, range(98 if label % 2 else MAX_COMPARED))] for label in range(LABELS)]
    rows = zip(*[order.choices(some, k=NODES) for some in values], strict=True)
    return Index((Node("n", dict(zip(labels, row, strict=True))) for row in rows), remembered=1)


def costly():
    """The most expensive selectors that are evaluated."""
    comparisons = MAX_REQUIREMENTS // (COMPARISON_COST + 3)
    some, many = [f"label-{i}" for i in range(1, LABELS, 2)], [f"label-{i}" for i in range(0, LABELS, 2)]
    everything = tuple(str(value) for value in range(98))
    yield "Gt of labels with many values", [(many[i], Operator.GREATER, ("-1",)) for i in range(comparisons)]
    yield "one value of many nodes, repeated", [(some[0], Operator.NOT_IN, ("1",) * 190)]
    yield "every value of two labels", [(label, Operator.IN, everything) for label in some[:2]]
    yield "labels that are present", [(label, Operator.EXISTS, ()) for label in (some + many) * 5]


@each_case("requirements", [requirements for _, requirements in costly()], ids=[name for name, _ in costly()])
def test_the_most_expensive_selectors_are_fast(large, requirements):
    selector = NodeSelector(terms=(tuple(Requirement(*each) for each in requirements),))
    written = [{"key": key, "operator": operator, "values": list(values)} for key, operator, values in requirements]
    assert read_selector(term(*written)) == selector
    large.selected(selector)  # some data of a label is computed once

    def selected() -> None:
        large.selected(NodeSelector())  # takes the place of the other one
        large.selected(selector)

    within(0.1, selected)
