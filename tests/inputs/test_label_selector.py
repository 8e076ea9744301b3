"""Label selectors have the syntax of kubectl."""

import pytest

from tests.cases import each_case
from webhook.inputs.label_selector import parse_label_selector, selects

OBJECT = {"metadata": {"labels": {"app": "web", "example.org/tier": "db", "empty": ""}}}


@each_case(
    "text, expected",
    [
        ("", True), ("app=web", True), ("app==web", True), ("app = web", True), ("app=api", False), ("app!=api", True),
        ("other!=api", True), ("app!=web", False), ("empty=", True), ("app", True), ("!app", False), ("other", False),
        ("! other", True), ("app in (api, web)", True), ("app notin (api,web)", False), ("other notin (api,web)", True),
        ("example.org/tier=db,app in (web,api),!other", True), ("example.org/tier=db,app in (x,y)", False),
    ],
)  # fmt: skip
def test_a_selector_selects_objects_as_kubectl_does(text: str, expected: bool):
    assert selects(parse_label_selector(text), OBJECT) is expected


@pytest.mark.parametrize("text", ["a=b=c", ",", "a,", "-a", "app in", "app in web", "a b", "app=(web)", "a>1", "!a=b"])
def test_an_invalid_selector_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a label selector; write KEY=VALUE"):
        parse_label_selector(text)


@pytest.mark.parametrize(
    "document", [None, [], {}, {"metadata": 1}, {"metadata": {"labels": [1]}}, {"metadata": {"labels": {"app": [1]}}}]
)
def test_an_object_without_valid_labels_has_none(document: object):
    assert selects(parse_label_selector("app!=web"), document)
    assert not selects(parse_label_selector("app=web"), document)
