"""Whatever an author makes large, a review takes work in proportion to the request, and nothing of the request stays.

The places are those of real objects: each string, number, list and map of every manifest in tests/data, and each annotation
that the code names. One place is made large at a time, in pods with one container and with many.
"""

import gc
import json
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, product
from typing import Any, Self

import orjson
import pytest
import yaml

from tests.reviewing import ALL_FAMILIES, DATA, RECORDED, request, snapshot
from webhook import names
from webhook.devices.dialects import DIALECTS, Place
from webhook.errors import RequestError
from webhook.review.endpoints import review
from webhook.snapshot import Snapshot

Json = dict[str, Any]
Path = tuple[str | int, ...]

SIZE = 6_400  # about how many characters are added, in strings four times as many
CONTAINERS = 40
COMMON = ("containers", "initContainers", "metadata")
MORE_CALLS = 110_000  # than for the object as it was; comparing misspelt names takes most of them
CALLS_A_BYTE = 8
NAME = "main-{}-x"  # of a container
LONG = 64 << 10  # characters of one text

USED = {
    "dialects": dict.fromkeys(DIALECTS, "translate"),
    "target": {"volcano": "1.16.0"},
    "workloads": "deny",
    "namespaces": [{"match": ["default"], "limits": {"memory": {"max": 20000}}}],
}


@pytest.fixture(scope="module")
def settings() -> Snapshot:
    """Settings in which as much as possible is read."""
    return snapshot(*ALL_FAMILIES, "mixed", **USED)


def manifests() -> Iterator[Json]:
    """Pods and workloads as clusters and people had them, without what an API server writes."""
    for path in RECORDED:
        if found := json.loads(path.read_bytes())["request"]["object"]:
            written = {
                key: found["metadata"][key] for key in ("name", "annotations", "labels") if key in found["metadata"]
            }
            yield {key: value for key, value in found.items() if key != "status"} | {"metadata": written}
    for path in sorted(chain(DATA.glob("field/*.yaml"), DATA.glob("workloads/*.yaml"))):
        try:
            documents = list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError:
            continue  # one is about such a mistake
        yield from filter(None, documents)


def known_keys() -> set[str]:
    """The names of annotations, labels and resources in the code."""
    known = {value for value in vars(names).values() if isinstance(value, str) and "/" in value}
    groups = [value for value in vars(names).values() if isinstance(value, frozenset)]
    words = [word.name for dialect in DIALECTS.values() for word in dialect.words if word.place is not Place.RESOURCE]
    return {key.format(NAME.format(0)) for key in (*known, *chain(*groups), *words) if "/" in key.strip("/")}


def walk(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from walk(item, (*path, key))


def generic(kind: str, path: Path) -> Path:
    """The place without numbers; one of a container, or of metadata, is the same in every kind of object."""
    steps = tuple("*" if isinstance(step, int) else step for step in path)
    return next((steps[at:] for at, step in enumerate(steps) if step in COMMON), (kind, *steps))


def replicated(pods: list[Json]) -> dict[str, Json]:
    """By what a container requests, a pod with many such containers."""
    found: dict[str, Json] = {}
    for container in [container for pod in pods for container in pod["spec"]["containers"]]:
        containers = [container | {"name": NAME.format(at)} for at in range(CONTAINERS)]
        requested = ",".join(sorted(container.get("resources", {}).get("limits", {})))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}}
        found.setdefault(requested, pod)
    return found


def places() -> Iterator[tuple[Json, list[Path]]]:
    """Objects, each with a place that it alone has, or with the same place in all its containers."""
    objects = [*manifests()]
    found: dict[tuple[str, Path], tuple[Json, list[Path]]] = {}
    for one in objects:
        for path in walk(one):
            found.setdefault(("", generic(one["kind"], path)), (one, [path]))
    many = replicated([one for one in objects if one["kind"] == "Pod"])
    for requested, one in many.items():
        for path in walk(one):
            if path[2:3] and path[-2:-1] == ("resources",):
                found.setdefault((requested, generic("Pod", path)), (one, []))[1].append(path)
    yield from found.values()
    alone = [one for requested, one in many.items() if "," not in requested]
    containers = [container for one in alone for container in one["spec"]["containers"][: CONTAINERS // 8]]
    simple = with_value(alone[0], ("spec", "containers"), containers)
    plain = with_value(many[""], ("spec", "containers"), many[""]["spec"]["containers"][:1])
    for key in sorted(known_keys()):
        yield with_value(simple, ("metadata", "annotations"), {key: ""}), [("metadata", "annotations", key)]
        yield with_value(plain, ("metadata", "annotations"), {key: "1Gi"}), [("spec", "containers", 0, "name")]


def with_value(one: Any, path: Path, value: Any) -> Any:
    """The object with another value at a path."""
    if not path:
        return value
    step, *rest = path
    copied = one.copy()
    copied[step] = with_value(copied[step] if isinstance(step, int) else copied.get(step, {}), tuple(rest), value)
    return copied


def value_at(one: Any, path: Path) -> Any:
    for step in path:
        one = one[step]
    return one


def grown(value: Any, size: int) -> Iterator[Any]:
    """Large values of the same type: much to split, to convert, to compare or to look at."""
    if isinstance(value, str):
        yield "; ".join(f"{at:x},{value[:3]}{at:x}:" for at in range(size // 3))
        yield "; " * (size * 2)
        yield "9" * (size * 4)
    elif isinstance(value, list) and value:
        copies = [value[at % len(value)] for at in range(size // 64)]
        yield [
            one | {"name": f"n{at}"} if isinstance(one, dict) and "name" in one else one
            for at, one in enumerate(copies)
        ]
    elif isinstance(value, dict) and value:
        for key, one in [*value.items()][:2]:
            cuts = [key[:at] + letter + key[at:] for letter in "xyz" for at in range(len(key))]
            yield value | dict.fromkeys(cuts[: size // 64], one)
        yield {"9" * size: next(iter(value.values()))}


class Calls:
    """Counts calls, and what is taken from generators; raises when there are too many."""

    def __init__(self, most: int = 2**62):
        self.made, self.most = 0, most

    def count(self, _frame: Any, _event: str, _arg: Any) -> None:
        self.made += 1
        if self.made > self.most:
            sys.setprofile(None)
            raise TooMany

    def __enter__(self) -> Self:
        sys.setprofile(self.count)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.setprofile(None)


class TooMany(Exception):
    """A review made more calls than it may."""


def reviewed(one: Json, settings: Snapshot, most: int = 2**62) -> int:
    """How many calls a review makes."""
    with Calls(most) as calls, suppress(RequestError):  # of the wrong shape
        review(request(one, size=len(orjson.dumps(one))), settings)
    return calls.made


def enlarged() -> Iterator[tuple[str, Json, Json]]:
    """The name of a place, an object, and the object with that place made large."""
    for one, paths in places():
        size = SIZE // min(len(paths), 6)
        for way, values in enumerate(zip(*(grown(value_at(one, path), size) for path in paths), strict=False)):
            large = one
            for path, value in zip(paths, values, strict=True):
                large = with_value(large, path, value)
            yield f"{one['kind']} {'.'.join(map(str, paths[-1]))}, way {way}", one, large


def test_a_review_takes_work_in_proportion_to_the_request(settings: Snapshot):
    usual: dict[int, tuple[Json, int]] = {}  # with the object, so that no identity is used twice
    for name, one, large in enlarged():
        if id(one) not in usual:
            reviewed(one, settings)  # fills caches
            usual[id(one)] = one, reviewed(one, settings) - CALLS_A_BYTE * len(orjson.dumps(one))
        most = MORE_CALLS + usual[id(one)][1] + CALLS_A_BYTE * len(orjson.dumps(large))
        try:
            reviewed(large, settings, most)
        except TooMany:
            pytest.fail(f"{name}: more than {most} calls")


def test_nothing_of_a_request_stays(settings: Snapshot):
    """Of requests that differ in one long text, the later ones add no more to the memory than a part of a text."""
    found = [(one, paths[0]) for one, paths in places()]
    tracemalloc.start()
    try:
        before, after = [held(found, letters, settings) for letters in "ab"]
    finally:
        tracemalloc.stop()
    added = after.compare_to(before, "lineno")
    assert sum(line.size_diff for line in added) < LONG, "\n".join(map(str, added[:5]))


def held(found: list[tuple[Json, Path]], letters: str, settings: Snapshot) -> tracemalloc.Snapshot:
    """The memory that is in use after reviews with long texts of these letters at every place."""
    for letter, (one, path) in product(letters, found):
        value = value_at(one, path)
        if isinstance(value, str):
            large = value + letter * LONG
        elif isinstance(value, dict):
            large = {key.replace("/", f"/{letter * LONG}", 1): item for key, item in value.items()}
        else:
            continue
        with suppress(RequestError):
            enlarged = with_value(one, path, large)
            if value == NAME.format(0):  # it may also be in annotations
                enlarged = json.loads(json.dumps(one).replace(value, large))
            review(request(enlarged), settings)
    gc.collect()
    return tracemalloc.take_snapshot()
