"""A stream reads the objects of a large JSON file one by one, with any chunk size."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from webhook.errors import ConfigError
from webhook.inputs.items import ItemStream


class SlowReader(io.BytesIO):
    """A file that returns a few bytes for each read."""

    step = 3

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self.step, size or 0) if size is None or size > 0 else size)


def stream_of(text: str | bytes, step: int) -> ItemStream:
    stream = SlowReader(text if isinstance(text, bytes) else text.encode())
    stream.step = step
    return ItemStream(stream, "file")


def read(text: str | bytes, step: int = 3) -> list[Any]:
    return list(stream_of(text, step))


def to_text(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


documents = st.builds(lambda objects: {**objects, "kind": "Pod"}, strategies.json_objects)


@given(st.lists(documents, max_size=3), st.sampled_from([None, 4]), st.integers(1, 9))
def test_consecutive_documents_are_read(objects: list[Any], indent: int | None, step: int):
    assert read("\n".join(to_text(one, indent) for one in objects), step) == objects


@given(st.lists(documents, max_size=4), st.sampled_from([None, 4]), st.integers(1, 9), st.booleans())
def test_the_items_of_a_list_are_read(objects: list[Any], indent: int | None, step: int, last: bool):
    head = {"apiVersion": "v1", "kind": "List"}
    whole = {"items": objects, **head} if last else {**head, "items": objects}
    assert read(to_text(whole | {"metadata": {"resourceVersion": ""}}, indent), step) == objects


@given(st.lists(documents, max_size=4), st.integers(1, 9))
def test_lists_are_read_with_what_is_kept_of_their_items(objects: list[Any], step: int):
    whole = {"apiVersion": "v1", "items": objects, "kind": "List"}
    found = list(stream_of("\n".join(map(to_text, (whole, *objects))), step).documents(lambda item: [item]))
    assert found == [whole | {"items": [[item] for item in objects]}, *objects]


def test_pod_lists_byte_order_marks_and_numbers_across_chunks_are_read():
    pods = '{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}],"metadata":{}}'
    assert read(pods) == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]
    several = '\ufeff{"kind":"List","items":[{"kind":"A"}]} {"kind":"B"}\n{"kind":"List","items":[]}'
    assert read(several) == [{"kind": "A"}, {"kind": "B"}]
    assert read('{"kind":"A","n":1234567,"m":-89}', 1) == [{"kind": "A", "n": 1234567, "m": -89}]


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"List","items":[{"kind":"A"},',
        '{"kind":"List","items":[{"kind":"A"} {"kind":"B"}]}',
        '{"kind":"List","items":[{"kind":"A"}]',
        '{"kind":"List","items":[{"kind":"A"},]}',
        '{"kind":"List","items":[],"items":[{"kind":"A"}]}',
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
        b'{"kind":"\xff"}',
    ],
)
def test_invalid_json_is_refused_with_the_name_of_the_file(text: str | bytes):
    with pytest.raises(ConfigError, match="^file: .*utf-8" if isinstance(text, bytes) else "^file: "):
        read(text, 1000)


def test_objects_before_an_error_are_read():
    stream = iter(ItemStream(io.BytesIO(b'{"kind":"List","items":[{"a":1},{"a":2},{"a"'), "file"))
    assert [next(stream), next(stream)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(ConfigError):
        next(stream)


def test_an_endless_object_is_refused_before_it_fills_the_memory():
    class Endless(io.RawIOBase):
        returned = 0

        def read(self, size: int = -1) -> bytes:
            self.returned += size
            assert self.returned < 5000
            return b'{"a":"'.ljust(size, b"x") if size == self.returned else b"x" * size

    with pytest.raises(ConfigError, match="a value cannot be read near"):
        list(ItemStream(Endless(), "file", chunk=100, largest=1000))  # type: ignore[arg-type]


def test_a_few_chunks_are_read_ahead():
    item = to_text({"kind": "Pod", "text": "x" * 100})
    file = io.BytesIO(('{"items":[' + ",".join([item] * 500) + "]}").encode())
    ahead = [file.tell() - number * len(item) for number, _ in enumerate(ItemStream(file, "file", chunk=1000))]
    assert len(ahead) == 500
    assert max(ahead) < 3000
