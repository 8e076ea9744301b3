"""YAML and JSON documents are read as Kubernetes reads them, or refused in bounded time."""

import gc
import json
import re

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import json_objects
from tests.timing import within
from webhook.errors import ConfigError
from webhook.inputs.parse import parse_stream
from webhook.output.yaml import to_yaml


def parse(text, **limits):
    return parse_stream(text.encode() if isinstance(text, str) else text, "the file", **limits)


def refusal(text, **limits):
    message = within(5, lambda: error_of(text, **limits))
    assert message is not None
    assert "\n" not in message
    return message


def error_of(text, **limits):
    """The error message for a document; None if it can be read."""
    try:
        parse(text, **limits)
    except ConfigError as error:
        return str(error)


MERGED = "b: &b {x: 0, z: 0}\n"


@pytest.mark.parametrize(
    "text, documents",
    [
        ("", []), ("# only a comment", []), ("---\n---\n", []), ("null", []),
        ("a: 1\n---\nb: 2\n---\n", [{"a": 1}, {"b": 2}]),
        ('{"a": [1, null, true, 1.5, "x"]}', [{"a": [1, None, True, 1.5, "x"]}]), ("  [1, 2]", [[1, 2]]),
        ("{a: b, c: [d]}", [{"a": "b", "c": ["d"]}]),  # flow style looks like JSON
        ("\ufeffa: 1", [{"a": 1}]), ("a: é", [{"a": "é"}]),
        # keys become text
        ("1: x", [{"1": "x"}]), ("true: x", [{"true": "x"}]), ("off: x", [{"false": "x"}]), ("~: x", [{"null": "x"}]),
        ("1.5: x", [{"1.5": "x"}]), ("1e3: x", [{"1000": "x"}]), ("y: x", [{"true": "x"}]),
        # a merge may repeat keys that it overrides, also in another mapping before it is itself constructed
        (MERGED + "c: {<<: *b, x: 1}", [{"b": {"x": 0, "z": 0}, "c": {"x": 1, "z": 0}}]),
        (MERGED + "outer: {o: {a: &a {<<: *b, x: 1}}}\nc: {<<: *a, z: 2}",
         [{"b": {"x": 0, "z": 0}, "outer": {"o": {"a": {"x": 1, "z": 0}}}, "c": {"x": 1, "z": 2}}]),
    ],
)  # fmt: skip
def test_documents_are_read(text, documents):
    assert parse(text) == documents


@pytest.mark.parametrize(
    "text, value",
    [
        ("2024-01-01", "2024-01-01"), ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("22:22", "22:22"),  # not a number in base 60
        ("12:30:45", "12:30:45"), ("1:30.5", "1:30.5"), ("1:" * 500 + "1.5", "1:" * 500 + "1.5"), ("=", "="),
        ("10", 10), ("0x10", 16), ("1.5", 1.5), ("3k", "3k"), ("true", True), ("off", False), ("~", None),
        ("'off'", "off"), ("'10'", "10"), ("'1e3'", "1e3"), ("'08'", "08"), ("'y'", "y"),
        # as `kubectl patch --local` of 1.37.2 prints them
        ("1e-3", 0.001), ("1e3", 1000), ("1.5E+3", 1500), ("1e1_0", 10**10), ("08", 8), ("0_8", 8), ("00", 0), ("1.0", 1),
        ("1.", 1), (".5", 0.5), ("-.5", -0.5), (".5_0", 0.5), (".e3", ".e3"), ("0x1p3", "0x1p3"), ("017", 15), ("0o17", 15),
        ("+0o7", 7), ("0B11", 3), ("-0b1", -1), ("-0x1F", -31), ("+1", 1), ("-_5", -5), ("1_000", 1000), ("1_", 1),
        ("_1", "_1"), ("0.", 0), ("y", True), ("Y", True), ("n", False), ("oN", "oN"), ("tRUE", "tRUE"), ("on", True),
    ],
)  # fmt: skip
def test_plain_scalars_are_read_as_kubernetes_reads_them(text, value):
    assert parse(f"a: {text}") == [{"a": value}]
    assert parse(f"a: [{text}]") == [{"a": [value]}]
    ((again,),) = parse(to_yaml([value]))
    assert (again, type(again)) == (value, type(value))
    assert parse(to_yaml({"a": text})) == [{"a": text}]


REFUSED = {
    r"tag": (  # of a type that JSON lacks
        "a: !!binary aGk=", "a: !!set {x}", "a: !!timestamp 2024-01-01", "a: !!omap [x: 1]",
        "a: !!python/name:os.system ''", "a: !x 1",
    ),
    r"a value does not suit its tag \(!!…\)$": ("!!bool maybe", '!!int ""'),
    r"appears twice": (
        "a: 1\na: 1", "a: 1\nb: 2\n'a': 3", "x: {a: 1, a: 2}", "x:\n- a: 1\n  a: 2", "{a: 1, a: 2}", "1: x\n'1': y",
        "b: &b {x: 0}\nc: {<<: *b, y: 1, y: 2}",
    ),
    r"the key 'a' appears twice": ('{"b": {"a": 1, "a": 2}}',),
    r"nested more than 100 deep": [opening * 100_000 for opening in ("[", "- ", "{a: ", "a: [", "? ")],
    r"^the file: not (YAML or )?JSON that can be read: ": (
        "a: [", "a: b: c", "\ta: 1", '{"a": 1}}', '{"a": NaN, }x', b"\xff\xfe\x00", b"a: \x00", "%", "*a",
        "a: " + "9" * 5000,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "message, text", [(message, text) for message, texts in REFUSED.items() for text in texts], ids=lambda it: it[:40]
)
def test_what_cannot_be_read_is_refused(message, text):
    assert re.search(message, refusal(text))


def alias_bomb(first, line, levels):
    """YAML in which each level contains the previous one ten times."""
    lines = [f"a0: &a0 {first}"]
    lines += [f"a{i}: &a{i} {line.format(','.join([f'*a{i - 1}'] * 10))}" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("first, line", [("[1]", "[{}]"), ("{k: 1}", "{{<<: [{}]}}")])
def test_an_alias_bomb_is_refused_quickly(first, line):
    """Of fewer values than usual: tests/console and tests/browser explode beyond the usual limit."""
    assert parse(alias_bomb(first, line, 4), most_values=20_000)
    assert "explodes" in refusal(alias_bomb(first, line, 12), most_values=20_000)


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: *a}", "a: &a {<<: *a}"])
def test_a_recursive_alias_is_read_in_bounded_time(text):
    assert (within(5, lambda: error_of(text)) or "the file: ").startswith("the file: ")


def test_the_nesting_of_real_objects_is_read():
    assert parse("[" * 90 + "]" * 90)
    assert parse("- " * 90 + "x")


def test_the_limit_on_values_grows_with_the_size_of_the_document():
    """The fleet of a large cluster has millions of values that are not aliases."""
    assert parse(f"a: {list(range(100))}", most_values=10)
    assert "explodes" in refusal(f"a: &a [1, 2, 3, 4, 5]\nb: [{','.join(['*a'] * 20)}]", most_values=10)


@given(st.lists(json_objects, min_size=1, max_size=3))
def test_yaml_and_json_agree(documents):
    text = yaml.safe_dump_all(documents)  # it escapes characters that the pure Python emitter writes as line breaks
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


@given(st.lists(json_objects, max_size=4), st.sampled_from([json.dumps, yaml.safe_dump]))
def test_items_are_cut_and_nothing_else(items, dump):
    """The items of a document that is a list; not what is called items further inside, nor a list of another name."""
    document = {"items": items, "others": {"items": [*items]}, "kind": "List"}
    assert parse(dump(document), cut=lambda item: [item]) == [document | {"items": [[item] for item in items]}]


@pytest.mark.parametrize(
    "text, documents",
    [
        ("items: [&a {b: 1}, *a, {<<: *a, c: 2}]\nlast: *a", [{"items": [["b"], ["b"], ["b", "c"]], "last": {"b": 1}}]),
        ("items: [{a: 1}]\n---\nitems: [{b: 2}]", [{"items": [["a"]]}, {"items": [["b"]]}]),
        ("- items: [{a: 1}]", [[{"items": [{"a": 1}]}]]),
        ("items: {items: [{a: 1}]}", [{"items": {"items": [{"a": 1}]}}]),
    ],
)
def test_items_are_cut_in_any_yaml(text, documents):
    assert parse(text, cut=sorted) == documents


@pytest.mark.parametrize("item", ["{a: 1, a: 2}", "9223372036854775808", ".inf", '"\\ud800"', "[" * 100 + "]" * 100])
def test_items_are_as_strict_as_what_is_kept(item):
    assert refusal(f"items: [{item}]", cut=lambda _: None) == refusal(f"items: [{item}]")


@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps])
def test_a_list_is_read_to_its_end(dump):
    """Cut after any line, for example on a full disk: what is left of YAML can be read as well."""
    pods = [{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main"}]}}] * 2
    whole = dump({"apiVersion": "v1", "items": pods, "kind": "List"}, indent=2)
    lines = whole.splitlines(keepends=True)
    for count in range(2, lines.index(next(line for line in lines if "List" in line))):
        assert error_of("".join(lines[:count])), count
    assert parse(whole)


def test_the_items_before_are_not_kept_while_an_item_is_read():
    """As nodes of the YAML library, they took half a GiB of a list of 5,000 nodes of a cluster."""
    alive = []

    def cut(_):
        alive.append(sum(isinstance(one, yaml.Node) for one in gc.get_objects()))

    parse("items:\n" + "- {a: [b, c, d]}\n" * 50, cut=cut)
    assert max(alive) < min(alive) + 2 * len(alive)
