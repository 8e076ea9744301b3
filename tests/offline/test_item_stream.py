"""Objects of large JSON files one by one: the same as reading the whole, however the pieces fall."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from webhook.errors import ConfigError
from webhook.offline import objects as item_stream
from webhook.offline.objects import ItemStream


class Dribble(io.BytesIO):
    """Gives out a few bytes at a time."""

    step = 3

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self.step, size or 0) if size is None or size > 0 else size)


def read(text: str, step: int = 3) -> list[Any]:
    stream = Dribble(text.encode())
    stream.step = step
    return list(ItemStream(stream, "file"))


def spelled(value: Any, indent: int | None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


documents = st.builds(lambda found: {**found, "kind": "Pod"}, strategies.json_objects)


@given(st.lists(documents, max_size=3), st.sampled_from([None, 4]), st.integers(1, 9))
def test_documents_in_a_row(found: list[Any], indent: int | None, step: int):
    assert read("\n".join(spelled(one, indent) for one in found), step) == found


@given(st.lists(documents, max_size=4), st.sampled_from([None, 4]), st.integers(1, 9), st.booleans())
def test_the_items_of_a_list(found: list[Any], indent: int | None, step: int, last: bool):
    head = {"apiVersion": "v1", "kind": "List"}
    whole = {"items": found, **head} if last else {**head, "items": found}
    assert read(spelled(whole | {"metadata": {"resourceVersion": ""}}, indent), step) == found


def test_items_of_a_pod_list_get_its_kind():
    text = '{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}],"metadata":{}}'
    assert read(text) == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]


def test_several_lists_and_a_byte_order_mark():
    assert read('\ufeff{"kind":"List","items":[{"kind":"A"}]} {"kind":"B"}\n{"kind":"List","items":[]}') == [
        {"kind": "A"},
        {"kind": "B"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"List","items":[{"kind":"A"},',
        '{"kind":"List","items":[{"kind":"A"} {"kind":"B"}]}',
        '{"kind":"List","items":[{"kind":"A"}]',
        '{"kind":"List","items":[{"kind":"A"},]}',
        '{"kind":"A",}',
        '{"kind" "A"}',
        '{"kind":"A" "b":1}',
        "{1:2}",
        "{",
        '{"a":NaN}',
        '{"a":"\\ud800"}',
        "[1]",
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        "nonsense",
    ],
)
def test_what_is_not_json_is_refused_by_name(text: str):
    with pytest.raises(ConfigError, match=r"^file: "):
        read(text, 1000)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(ConfigError, match="utf-8"):
        list(ItemStream(io.BytesIO(b'{"kind":"\xff"}'), "file"))


def test_what_came_before_a_mistake_is_given_out():
    stream = iter(ItemStream(io.BytesIO(b'{"kind":"List","items":[{"a":1},{"a":2},{"a"'), "file"))
    assert [next(stream), next(stream)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(ConfigError):
        next(stream)


def test_an_object_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(item_stream, "CHUNK", 100)
    monkeypatch.setattr(item_stream, "MAX_OBJECT", 1000)

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            assert self.given < 5000
            return b"x" * size

    text = io.BufferedReader(io.BytesIO(b'{"a":"'))  # type: ignore[arg-type]
    endless = Endless()

    class Both:
        def read(self, size: int) -> bytes:
            return text.read(size) or endless.read(size)

    with pytest.raises(ConfigError, match="a value cannot be read near"):
        list(ItemStream(Both(), "file"))  # type: ignore[arg-type]


def test_a_list_is_never_held_as_a_whole():
    """Some chunks at a time: what is held does not grow with the file."""
    item = spelled({"kind": "Pod", "text": "x" * 10_000}, None)
    text = '{"items":[' + ",".join([item] * 500) + "]}"
    stream = ItemStream(io.BytesIO(text.encode()), "file")
    held = [len(stream._text) for _ in stream]
    assert len(held) == 500
    assert max(held) < 3 * item_stream.CHUNK


def test_a_number_across_two_chunks_is_one_number():
    assert read('{"kind":"A","n":1234567,"m":-89}', 1) == [{"kind": "A", "n": 1234567, "m": -89}]
