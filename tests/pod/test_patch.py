"""Edits of an object, and the JSON patch that repeats them."""

import copy
import json

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.strategies import json_objects, json_values, keys
from webhook.pod.patch import APPEND, REMOVE, Draft, Edit


def draft_of(original, *edits):
    draft = Draft(original)
    draft.apply(edits)
    return draft


def exact(value):
    """JSON text, since 1 == True in Python, but not in JSON."""
    return json.dumps(value, sort_keys=True)


@st.composite
def edits_of(draw, root):
    """A valid edit of the object in its current state."""
    path, here = [], root
    while True:
        if isinstance(here, list):
            if not here or draw(st.booleans()):
                return Edit((*path, APPEND), draw(json_values))
            key = draw(st.integers(0, len(here) - 1))
        else:
            key = draw(st.sampled_from(sorted(here)) | keys if here else keys)
        path.append(key)
        child = here[key] if isinstance(here, list) else here.get(key)
        if child is None and draw(st.booleans()):
            # Missing parents are created: objects, or a list at the end.
            below = draw(st.lists(keys.filter(lambda k: k != APPEND), max_size=2))
            return Edit((*path, *below, draw(st.just(APPEND) | st.just("new"))), draw(json_values))
        if not isinstance(child, dict | list) or draw(st.booleans()):
            removable = not isinstance(here, list)
            return Edit(tuple(path), draw(st.just(REMOVE) | json_values) if removable else draw(json_values))
        here = child


@given(json_objects, st.data())
def test_the_patch_turns_the_original_into_the_draft(original, data):
    kept = copy.deepcopy(original)
    draft = Draft(original)
    for _ in range(data.draw(st.integers(1, 6))):
        draft.apply([data.draw(edits_of(draft.object))])
    operations = draft.operations()
    assert exact(original) == exact(kept)
    assert jsonpatch.apply_patch(kept, operations) == draft.object
    assert {operation["op"] for operation in operations} <= {"add", "replace", "remove"}
    assert operations == draft.operations()


@given(json_objects, st.data())
def test_edits_that_cancel_out_give_no_operation(original, data):
    present = sorted(original)
    draft = Draft(original)
    for key in present:
        draft.apply([Edit((key,), data.draw(json_values)), Edit((key,), original[key])])
    draft.apply([Edit(("brand new", "below"), 1), Edit(("brand new",), REMOVE)])
    assert draft.operations() == []
    assert draft.object == original


def test_without_edits_there_are_no_operations():
    original = {"a": {"b": 1}}
    draft = Draft(original)
    assert draft.object is original
    assert draft.operations() == []


NESTED = [Edit(("a", "b", "c"), 1), Edit(("a", "b", "d"), 2), Edit(("a", "e"), 3)]


@each_case(
    "original, edits, operations",
    [
        ({}, [Edit(("a",), 1)], [("add", "/a", 1)]),
        ({"a": 1}, [Edit(("a",), 2)], [("replace", "/a", 2)]),
        ({"a": 1}, [Edit(("a",), REMOVE)], [("remove", "/a")]),
        ({"a": 1}, [Edit(("a",), 1)], []),
        ({}, [Edit(("volcano.sh/vgpu~1", "é"), 1)], [("add", "/volcano.sh~1vgpu~01", {"é": 1})]),
        ({"a": 1}, [Edit(("a",), 2), Edit(("a",), 3)], [("replace", "/a", 3)]),
        ({"a": None}, [Edit(("a",), None)], []),
        ({"a": None}, [Edit(("a",), 1)], [("replace", "/a", 1)]),
        ({"a": None}, [Edit(("a",), REMOVE)], [("remove", "/a")]),
        ({}, [Edit(("a",), None)], [("add", "/a", None)]),
        ({}, [Edit(("a",), REMOVE)], []),
        ({}, [Edit(("a", "b"), REMOVE)], []),
        ({"a": None}, [Edit(("a", "b"), REMOVE)], []),
        # a null parent is replaced as a whole: the API server cannot add below it
        ({"a": None}, [Edit(("a", "b"), 1)], [("replace", "/a", {"b": 1})]),
        # missing parents are added once, with everything below them
        ({}, NESTED, [("add", "/a", {"b": {"c": 1, "d": 2}, "e": 3})]),
        ({}, [Edit(("l", APPEND), 1)], [("add", "/l", [1])]),
        ({"l": [1]}, [Edit(("l", APPEND), 2), Edit(("l", APPEND), 3)], [("add", "/l/-", 2), ("add", "/l/-", 3)]),
        ({"l": [1]}, [Edit(("l", APPEND), {"x": 1}), Edit(("l", 1, "x"), 2)], [("add", "/l/-", {"x": 2})]),
        ({"l": [{"x": 1}]}, [Edit(("l", 0, "x"), 2)], [("replace", "/l/0/x", 2)]),
        # setting a parent includes its children: appending again would add the element twice
        ({"l": []}, [Edit(("l",), [1]), Edit(("l", APPEND), 2)], [("replace", "/l", [1, 2])]),
        ({"a": {"x": 1}}, [Edit(("a",), {"x": 1, "y": 2}), Edit(("a", "x"), REMOVE)], [("replace", "/a", {"y": 2})]),
        ({"a": {"x": 1}}, [Edit(("a", "x"), 2), Edit(("a",), REMOVE)], [("remove", "/a")]),
        # changing a child does not change its neighbours
        ({"a": {"x": 1, "unknown": {"deep": [1, 2]}}}, [Edit(("a", "x"), 2)], [("replace", "/a/x", 2)]),
    ],
)
def test_edits_become_these_operations(original, edits, operations):
    draft = draft_of(original, *edits)
    assert [tuple(each.values()) for each in draft.operations()] == operations
    assert jsonpatch.apply_patch(original, draft.operations()) == draft.object


def test_the_value_of_an_edit_is_never_changed():
    value = {"x": [1]}
    draft = draft_of({}, Edit(("a",), value), Edit(("a", "x", APPEND), 2), Edit(("b",), value))
    assert value == {"x": [1]}
    assert draft.object == {"a": {"x": [1, 2]}, "b": {"x": [1]}}
