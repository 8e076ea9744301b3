"""Where the fuzzer begins, and how it changes JSON: recorded reviews, the examples of the rules, samples, workloads."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from tests.fuzz.targets import MAX_BYTES, settings
from tests.reviewing import DATA, RECORDED
from webhook import names

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted(
    file
    for directory in ("webhook/rules/examples", "webhook/samples", "docs/examples", "tests/data/workloads")
    for file in (ROOT / directory).rglob("*.yaml")
    if file.stat().st_size <= MAX_BYTES
)
HOSTILE = (
    None, True, "", "\x00\u2028\u202e", "\ud800", " 1 ", "1e3", "-1", "0.5", "8Gi", "99999999999999999999", "1" * 70,
    0, -1, 1.5, 2**31, 2**63, 10**400, [], {}, [None], [[]], {"": None}, "all", "none", "volcano", "Exists", "/dev", "a,b",
)  # fmt: skip
WORDS = sorted({value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)})


def seeds(kind: str) -> Iterator[bytes]:
    if kind == "manifests":
        for file in MANIFESTS:
            yield file.read_bytes()
            yield from (orjson.dumps(value) for value in _documents(file))
        return
    bodies = [path.read_bytes() for path in RECORDED]
    bodies += [review_of(value) for file in MANIFESTS for value in _documents(file) if isinstance(value, dict)]
    for number, body in enumerate(bodies):
        if len(body) < MAX_BYTES:
            yield bytes([number % len(settings())]) + body


def _documents(file: Path) -> Iterator[Any]:
    for value in yaml.safe_load_all(file.read_text()):
        yield from value.get("items") or [value] if isinstance(value, dict) else [value]


def review_of(value: dict[str, Any]) -> bytes:
    group, _, version = str(value.get("apiVersion")).rpartition("/")
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": str(value.get("kind"))},
        "operation": "CREATE",
        "namespace": "team",
        "userInfo": {"username": "ann", "groups": []},
        "object": value,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@cache
def _parts() -> list[Any]:
    """Values of the seeds, to be put elsewhere."""
    found: dict[str, Any] = {}
    for file in MANIFESTS:
        for value in _documents(file):
            for parent, key in _places(value):
                spelled = json.dumps(parent[key], default=str)
                if len(spelled) < 2000:
                    found.setdefault(spelled, json.loads(spelled))
    return list(found.values())


@cache
def _keys() -> list[str]:
    values = (value for file in MANIFESTS for value in _documents(file))
    return sorted(
        {str(key) for value in values for _, key in _places(value) if isinstance(key, str)} | {*WORDS, "", "~1"}
    )


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, child in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(child)


def changed(data: bytes, seed: int, change_bytes: Callable[[bytes], bytes], *, prefix: int) -> bytes:
    """The input with other values in one to four places of its JSON, or with other bytes if it is no JSON or one time in ten.

    A prefix of so many bytes is before the JSON.
    """
    chance = random.Random(seed)
    if chance.random() < 0.1:
        return change_bytes(data)
    try:
        document = json.loads(data[prefix:])
        places = list(_places(_inner(document) if prefix and chance.random() < 0.9 else document))
    except (ValueError, RecursionError):
        return change_bytes(data)
    if not places:
        return change_bytes(data)
    for _ in range(chance.randint(1, 4)):
        parent, key = chance.choice(places)
        with suppress(LookupError):  # an earlier change has removed it
            _change(parent, key, chance, change_bytes)
    head = bytes([chance.randrange(256)]) if prefix and chance.random() < 0.1 else data[:prefix]
    try:
        return head + json.dumps(document, separators=(",", ":"), ensure_ascii=chance.random() < 0.1).encode(
            errors="surrogatepass"
        )
    except (ValueError, RecursionError):
        return change_bytes(data)


def _inner(review: Any) -> Any:
    """The object of a review: changes around it mostly end the review early."""
    request = review.get("request") if isinstance(review, dict) else None
    return (request.get("object") if isinstance(request, dict) else None) or review


def _change(parent: Any, key: Any, chance: random.Random, change_bytes: Callable[[bytes], bytes]) -> None:
    value = parent[key]
    kind = chance.randrange(8)
    if kind == 0:
        parent[key] = copy.deepcopy(chance.choice(HOSTILE))
    elif kind == 1:
        parent[key] = copy.deepcopy(chance.choice(_parts()))
    elif kind == 2:
        del parent[key]
    elif kind == 3 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif kind == 3:
        parent[chance.choice(_keys())] = parent.pop(key)
    elif kind == 4 and isinstance(value, dict):
        value[chance.choice(_keys())] = copy.deepcopy(chance.choice([*HOSTILE, "1", "2", "50", "1000"]))
    elif kind == 4 and isinstance(value, list):
        value.append(copy.deepcopy(chance.choice(_parts())))
    elif isinstance(value, str):
        parent[key] = change_bytes(value.encode(errors="surrogatepass"))[:4096].decode(errors="replace")
    elif isinstance(value, int):
        parent[key] = chance.choice([value + 1, value - 1, -value, value * 1000, str(value)])
    else:
        parent[key] = chance.choice(["1", "3", 1, *WORDS])


def regressions() -> list[Path]:
    """Inputs that once broke an invariant: the first word of a file's name is the target."""
    return sorted((DATA / "fuzz").glob("*"))
