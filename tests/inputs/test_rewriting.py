"""Changes in the text of a manifest: the fields that change, and no other character."""

from typing import Any

import pytest

from webhook.errors import ConfigError
from webhook.inputs.parse import parse_stream
from webhook.inputs.positions import SourceText
from webhook.inputs.rewriting import changes, rewritten

AFTER = {"a": {"l": {"x": "1", "w": 2}}, "t": [{"k": 1}, {"k": 2, "m": [1]}]}

# A text, what its last document becomes, and the text then.
REWRITTEN = {
    "comments stay, also those that belong to what is above a new key": (
        "a:  # a\n  l:\n    x: 5  # x\n\n      # deeper\n    # same\nt: # t\n- k: 1 # k\n",
        AFTER,
        "a:  # a\n  l:\n    x: '1'  # x\n\n      # deeper\n    w: 2\n    # same\nt: # t\n- k: 1 # k\n- k: 2\n  m: [1]\n",
    ),
    "nothing, or an empty value, becomes a block; no line break at the end": (
        "a:\n  l:  # nothing\nt: []  # none",
        AFTER,
        "a:\n  l:  # nothing\n    x: '1'\n    w: 2\nt:  # none\n- k: 1\n- k: 2\n  m: [1]",
    ),
    "lists keep their indentation, and lines their ends, but that of a comment": (
        "\ufeffa:  # \u2028\r\n  l:\r\n    x: '2'\r\nt:\r\n    - k: 1\r\n",
        AFTER,
        "\ufeffa:  # \u2028\r\n  l:\r\n    x: '1'\r\n    w: 2\r\nt:\r\n    - k: 1\r\n    - k: 2\r\n      m: [1]\r\n",
    ),
    "another name for the same keeps its comment": (
        "l:\n  old: '1'  # one\n  gone: 5\n  w: 2\n",
        {"l": {"x": "1", "w": 2}},
        "l:\n  x: '1'  # one\n  w: 2\n",
    ),
    "all keys go": ("l:\n  only: 1\nw: 2\n", {"l": {}, "w": 2}, "l: {}\nw: 2\n"),
    "a script ends in what looks like a comment": (
        "t:\n- run: |\n    x\n    # y\n\n# z\n",
        {"t": [{"run": "x\n# y\n", "k": True}]},
        "t:\n- run: |\n    x\n    # y\n  k: true\n\n# z\n",
    ),
    "flow style": (
        "--- {a: {l: {old: 3, x: '5',}}, t: [{k: 1}]}  # c\n",
        AFTER,
        "--- {a: {l: {x: '1', w: 2,}}, t: [{k: 1}, {k: 2, m: [1]}]}  # c\n",
    ),
    "flow style on several lines, with comments": (
        "{a: 1,  # one\n old: 2,\n x: 3}  # c\n",
        {"a": 1, "w": 4, "x": 5},
        "{a: 1,  # one\n x: 5,\n w: 4}  # c\n",
    ),
    "flow style, with comments on lines of their own": (
        "{old: 1,  # one\n # of x\n x: 2,  # x\n # of w\n w: 3}\n",
        {"x": 2},
        "{# of x\n x: 2,  # x\n # of w\n }\n",
    ),
    "flow style, whose end goes": ("{a: 1,  # one\n old: 2}\n", {"a": 1, "x": 5}, "{a: 1,  # one\n x: 5}\n"),
    "flow style, of which nothing stays": ("l: {old: 3, more: 4}\n", {"l": {"x": "a, b"}}, "l: {x: 'a, b'}\n"),
    "JSON on several lines": (
        '{\n\t"a": {"l": {\n\t\t"x": "5"\n\t}},\n\t"t": [\n\t\t{"k":1}\n\t]\n}\n',
        AFTER,
        '{\n\t"a": {"l": {\n\t\t"x": "1",\n\t\t"w": 2\n\t}},\n\t"t": [\n\t\t{"k":1},\n\t\t{"k": 2, "m": [1]}\n\t]\n}\n',
    ),
    "the last one of several documents": (
        "---\n# nothing\n---\na: 1\n---\nl:\n  x: 1\n...\n",
        {"l": {"x": 1}, "w": "yes"},
        "---\n# nothing\n---\na: 1\n---\nl:\n  x: 1\nw: 'yes'\n...\n",
    ),
    "an anchor, all of whose uses change alike": (
        "a: &l\n  x: 1\nb: *l\n",
        {"a": {"x": 2}, "b": {"x": 2}},
        "a: &l\n  x: 2\nb: *l\n",
    ),
    "a field that is merged, and now differs": (
        "a: &l\n  x: 1\nb:\n  <<: *l\n  k: 1\n",
        {"a": {"x": 1}, "b": {"x": 2, "k": 1}},
        "a: &l\n  x: 1\nb:\n  <<: *l\n  k: 1\n  x: 2\n",
    ),
}
REFUSED: dict[str, tuple[str, Any]] = {
    "an anchor, one of whose uses changes": ("a: &l\n  x: 1\nb: *l\n", {"a": {"x": 1}, "b": {"x": 2}}),
    "an alias that would be replaced": ("a: &l 1\nb: *l\n", {"a": 1, "b": 2}),
    "an object below a merge": ("a: &l\n  m: {x: 1}\nb:\n  <<: *l\n", {"a": {"m": {"x": 1}}, "b": {"m": {"x": 2}}}),
    "a merged key that goes": ("a: &l\n  x: 1\nb:\n  <<: *l\n  k: 1\n", {"a": {"x": 1}, "b": {"k": 1}}),
    "a key beside the dash of a list that goes": ("- a: 1\n  b: 2\n", [{"b": 2}]),
    "a comment in what is replaced": ("a: {  # c\n}\n", {"a": {"x": 1}}),
    "a comment above what is replaced": ("a:\n  # c\n  []\n", {"a": [1]}),
    "a script": ("a: |\n  x\n", {"a": "y"}),
    "a key that is no text": ("a:\n  1e3: 2\n", {"a": {"1000": 3}}),
    "JSON documents in a row": ('{"a": 1}\n{"a": 1}\n', {"a": 2}),
}


def rewrite(text: str, after: Any) -> str:
    """The text with its last document changed; no other lines than those that are named differ."""
    source, old = SourceText(text.encode()), text.split("\n")
    found = source.documents
    written, lines = rewritten(source, changes(found[-1], after, len(found), ()))
    new = written.data.decode()
    for line in reversed(lines):
        old[line.start : line.end] = new.split("\n")[line.new_start : line.new_end]
    assert "\n".join(old) == new
    return new


@pytest.mark.parametrize(("text", "after", "expected"), REWRITTEN.values(), ids=REWRITTEN)
def test_only_what_changes_is_written(text: str, after: Any, expected: str):
    assert rewrite(text, after) == expected
    assert parse_stream(expected.encode(), "it")[-1] == after


@pytest.mark.parametrize(("text", "after"), REFUSED.values(), ids=REFUSED)
def test_what_the_text_cannot_say_is_refused(text: str, after: Any):
    with pytest.raises(ConfigError, match=r"an anchor|cannot be changed in place"):
        rewrite(text, after)
