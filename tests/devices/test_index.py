"""Which nodes a selector leaves, against Kubernetes' own words asked of node after node."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.devices import reference
from tests.examples import examples
from tests.pod.test_selectors import MALFORMED
from tests.timing import within
from webhook.devices import nodes
from webhook.devices.nodes import Index, Node
from webhook.pod import selectors
from webhook.pod.selectors import (
    COMPARISON_COST,
    MAX_REQUIREMENTS,
    NodeSelector,
    Operator,
    Requirement,
)
from webhook.pod.view import PodView

thorough = examples(100)
fleets = st.lists(st.builds(Node, st.sampled_from(strategies.NODE_NAMES), strategies.labels), max_size=12)


@pytest.fixture(params=[nodes.MAX_LISTED, 1], ids=["listed", "bits"])
def kept(request, monkeypatch):
    """The nodes with a value of a label are listed, or kept as bits; and no selector is too long."""
    monkeypatch.setattr(nodes, "MAX_LISTED", request.param)
    monkeypatch.setattr(selectors, "MAX_REQUIREMENTS", 10**6)


def left(spec, index):
    """The numbers of the nodes that a pod's spec leaves."""
    selector = PodView({"spec": spec}).selector
    everybody = set(range(len(index.names)))
    return everybody if selector is None else members(index.selected(selector), everybody)


def members(found, everybody):
    assert found >> len(everybody) == 0
    return {number for number in everybody if found >> number & 1}


def term(*expressions):
    return {"affinity": strategies.affinity([{"matchExpressions": list(expressions)}])}


@thorough
@pytest.mark.usefixtures("kept")
@given(fleets, st.lists(strategies.selectors, min_size=1, max_size=3))
def test_a_selector_leaves_what_kubernetes_leaves(fleet, specs):
    index = Index(fleet)
    for spec in specs + specs:  # the second time it is remembered
        expected = {i for i, node in enumerate(fleet) if reference.takes(spec, node.name, node.labels)}
        assert left(spec, index) == expected


@thorough
@given(fleets, strategies.mangled(strategies.selectors.filter(bool)))
def test_what_is_malformed_never_narrows(fleet, spec):
    possible = {i for i, node in enumerate(fleet) if reference.might_take(spec, node.name, node.labels)}
    assert left(spec, Index(fleet)) >= possible


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
    for demanded in (affinity, strategies.affinity(terms)):
        spec = {"nodeSelector": selector, "affinity": demanded}
        possible = {i for i, node in enumerate(fleet) if reference.might_take(spec, node.name, node.labels)}
        assert left(spec, index) >= possible


@pytest.mark.parametrize("spec", MALFORMED)
def test_what_is_malformed_leaves_every_node(spec):
    assert left(spec, Index([Node("n0", {"zone": "a"}), Node("n1")])) == {0, 1}


def test_values_of_many_nodes_are_joined(monkeypatch):
    monkeypatch.setattr(nodes, "MAX_LISTED", 1)
    index = Index([Node(f"n{i}", {"zone": zone}) for i, zone in enumerate("aabbccd")])
    assert left(term({"key": "zone", "operator": "In", "values": ["a", "b", "d"]}), index) == {0, 1, 2, 3, 6}
    assert left(term({"key": "zone", "operator": "Exists"}), index) == set(range(7))


def test_a_duplicate_node_in_a_file_is_found_twice():
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    index = Index([Node("n0"), Node("n1"), Node("n0")])
    assert left({"affinity": strategies.affinity([by_name])}, index) == {0, 2}


@pytest.mark.parametrize("operator, expected", [("Gt", {1, 2}), ("Lt", {0})])
def test_a_label_with_too_many_values_only_has_to_be_there(operator, expected, monkeypatch):
    sizes = {"n0": "1", "n1": "5", "n2": "7", "n3": "4"}
    index = Index([*(Node(name, {"size": size}) for name, size in sizes.items()), Node("n4")])
    spec = term({"key": "size", "operator": operator, "values": ["4"]})
    assert left(spec, index) == expected
    monkeypatch.setattr(nodes, "MAX_COMPARED", 2)
    assert left(spec, Index([Node(name, {"size": name}) for name in "123"] + [Node("4")])) == {0, 1, 2}


def test_few_selectors_are_remembered():
    index = Index([Node("n0", {"zone": "a"})])
    for number in range(3 * nodes.MAX_REMEMBERED):
        index.selected(NodeSelector((Requirement("zone", Operator.IN, (str(number),)),)))
    assert len(index._known) <= nodes.MAX_REMEMBERED


# --- cost -----------------------------------------------------------------------------------------------------------

NODES, LABELS = 50_000, 20


@pytest.fixture(scope="module")
def large():
    """A fleet as large as they come, with labels of few, some and many values."""
    order = random.Random(7)
    values = [98 if label % 2 else nodes.MAX_COMPARED for label in range(LABELS)]
    return Index(
        Node(f"n{i}", {f"label-{label}": str(order.randrange(most)) for label, most in enumerate(values)})
        for i in range(NODES)
    )


def costly():
    """The dearest selectors that are still read."""
    comparisons = MAX_REQUIREMENTS // (COMPARISON_COST + 3)
    some, many = [f"label-{i}" for i in range(1, LABELS, 2)], [f"label-{i}" for i in range(0, LABELS, 2)]
    everything = tuple(str(value) for value in range(98))
    yield "Gt of labels with many values", [(many[i], Operator.GREATER, ("-1",)) for i in range(comparisons)]
    yield "one value of many nodes, again and again", [(some[0], Operator.NOT_IN, ("1",) * 190)]
    yield "every value of two labels", [(label, Operator.IN, everything) for label in some[:2]]
    yield "labels that are there", [(label, Operator.EXISTS, ()) for label in (some + many) * 5]


@pytest.mark.parametrize("requirements", [pytest.param(found, id=name) for name, found in costly()])
def test_the_dearest_selector_takes_no_time(large, requirements):
    selector = NodeSelector(terms=(tuple(Requirement(*each) for each in requirements),))
    written = [{"key": key, "operator": operator, "values": list(values)} for key, operator, values in requirements]
    assert PodView({"spec": term(*written)}).selector == selector
    large.selected(selector)  # some facts of a label are worked out once

    def selected() -> None:
        large._known.clear()
        large.selected(selector)

    within(0.1, selected)
