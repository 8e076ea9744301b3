"""YAML and JSON: what Kubernetes would read, or a refusal in bounded time."""

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import json_objects
from tests.timing import within
from webhook.errors import ConfigError
from webhook.settings.documents import MAX_VALUES, _most_values, parse_documents


def parse(text):
    return parse_documents(text.encode() if isinstance(text, str) else text, "the file")


def refusal(text):
    message = within(5, lambda: refused(text))
    assert message is not None
    assert "\n" not in message
    return message


def refused(text):
    """Why a text cannot be read; None if it can."""
    try:
        parse(text)
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize(
    "text, documents",
    [
        ("", []),
        ("# only a comment", []),
        ("---\n---\n", []),
        ("null", []),
        ("a: 1\n---\nb: 2\n---\n", [{"a": 1}, {"b": 2}]),
        ('{"a": [1, null, true, 1.5, "x"]}', [{"a": [1, None, True, 1.5, "x"]}]),
        ("  [1, 2]", [[1, 2]]),
        ("{a: b, c: [d]}", [{"a": "b", "c": ["d"]}]),  # flow style looks like JSON
        ("\ufeffa: 1", [{"a": 1}]),
        ("a: é", [{"a": "é"}]),
    ],
)
def test_reads(text, documents):
    assert parse(text) == documents


@pytest.mark.parametrize(
    "written, value",
    [
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("22:22", "22:22"),  # no number to the base 60
        ("12:30:45", "12:30:45"),
        ("1:30.5", "1:30.5"),
        ("1:" * 500 + "1.5", "1:" * 500 + "1.5"),
        ("=", "="),
        ("10", 10),
        ("0x10", 16),
        ("1.5", 1.5),
        ("3k", "3k"),
        ("1e3", "1e3"),
        ("true", True),
        ("off", False),
        ("~", None),
        ("'off'", "off"),
        ("'10'", "10"),
    ],
)
def test_plain_text_is_what_kubernetes_makes_of_it(written, value):
    assert parse(f"a: {written}") == [{"a": value}]
    assert parse(f"a: [{written}]") == [{"a": [value]}]


@pytest.mark.parametrize(
    "text",
    [
        "a: !!binary aGk=",
        "a: !!set {x}",
        "a: !!timestamp 2024-01-01",
        "a: !!omap [x: 1]",
        "a: !!python/name:os.system ''",
        "a: !x 1",
    ],
)
def test_types_that_json_lacks_are_refused(text):
    assert "tag" in refusal(text)


@pytest.mark.parametrize(
    "text, key", [("1: x", "1"), ("true: x", "true"), ("off: x", "false"), ("~: x", "null"), ("1.5: x", "1.5")]
)
def test_keys_are_text(text, key):
    assert parse(text) == [{key: "x"}]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 1",
        "a: 1\nb: 2\n'a': 3",
        "x: {a: 1, a: 2}",
        "x:\n- a: 1\n  a: 2",
        "{a: 1, a: 2}",
        "1: x\n'1': y",
        "b: &b {x: 0}\nc: {<<: *b, y: 1, y: 2}",
    ],
)
def test_a_key_twice_is_refused(text):
    assert "appears twice" in refusal(text)


def test_a_merge_may_repeat_keys_that_it_overrides():
    base = "b: &b {x: 0, y: 0}\n"
    assert parse(base + "c: {<<: *b, x: 1}")[0]["c"] == {"x": 1, "y": 0}
    # merged into another mapping before its own turn
    deep = base + "outer: {o: {a: &a {<<: *b, x: 1}}}\nc: {<<: *a, y: 2}"
    assert parse(deep)[0]["c"] == {"x": 1, "y": 2}
    assert parse(deep)[0]["outer"] == {"o": {"a": {"x": 1, "y": 0}}}


def bomb(first, line, levels):
    """Each level holds the one before ten times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{i}: &a{i} {line.format(','.join([f'*a{i - 1}'] * 10))}" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("first, line", [("[1]", "[{}]"), ("{k: 1}", "{{<<: [{}]}}")])
def test_an_alias_that_explodes_is_refused_quickly(first, line):
    assert parse(bomb(first, line, 4))
    assert "explodes" in refusal(bomb(first, line, 12))


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: *a}", "a: &a {<<: *a}"])
def test_an_alias_of_itself_ends(text):
    assert (within(5, lambda: refused(text)) or "the file: ").startswith("the file: ")


@pytest.mark.parametrize("opening", ["[", "- ", "{a: ", "a: [", "? "])
def test_deep_nesting_is_refused_not_crashed_on(opening):
    assert "nested more than 100 deep" in refusal(opening * 100_000)


def test_nesting_of_any_object_is_read():
    assert parse("[" * 90 + "]" * 90)
    assert parse("- " * 90 + "x")


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: b: c",
        "\ta: 1",
        '{"a": 1}}',
        '{"a": NaN, }x',
        b"\xff\xfe\x00",
        b"a: \x00",
        "%",
        "*a",
        "a: " + "9" * 5000,
    ],
)
def test_what_cannot_be_read_is_refused(text):
    assert refusal(text).startswith("the file: not YAML or JSON that can be read: ")


def test_many_honest_values_are_no_explosion():
    """The fleet of a large cluster has millions: the limit grows with what is written out."""
    assert _most_values(b"") == MAX_VALUES
    assert _most_values(b" " * (MAX_VALUES + 1)) == MAX_VALUES + 1


@given(st.lists(json_objects, min_size=1, max_size=3))
def test_yaml_and_json_agree(documents):
    text = yaml.safe_dump_all(documents)  # escapes what the emitter in Python would write as a line break
    assert parse(text) == documents
    for document in documents:
        assert parse(orjson.dumps(document)) == [document]


@given(st.binary(max_size=60) | st.text("a:-[]{}&*!?|>'\"#,\n <1.", max_size=40))
def test_any_bytes_are_read_or_refused(data):
    try:
        documents = parse(data)
    except ConfigError as error:
        message = str(error)
        assert message.startswith("the file: ")
    else:
        assert None not in documents


def test_a_key_twice_in_json_is_refused():
    assert "the key 'a' appears twice" in refusal('{"b": {"a": 1, "a": 2}}')


@pytest.mark.parametrize("text", ["!!bool maybe", '!!int ""'])
def test_values_that_are_not_of_their_tag_are_refused(text):
    assert refusal(text).endswith("a value does not suit its tag (!!…)")
