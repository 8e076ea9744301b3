"""The fuzzer's invariants hold for its seeds and for inputs that once broke them, and each can fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.fuzz.inputs import MANIFESTS, changed, regressions, review_of, seeds
from tests.fuzz.targets import TARGETS
from tests.reviewing import RECORDED
from webhook import existing_objects
from webhook.audit import writer
from webhook.errors import RequestError
from webhook.inputs.documents import Document
from webhook.outcome import Outcome
from webhook.pod.patch import Draft
from webhook.review import pods
from webhook.wire import codec

REPAIRED = b"\x00" + next(path for path in RECORDED if path.name == "number-only.json").read_bytes()
REFUSED = b"\x00" + next(path for path in RECORDED if path.name == "cores-over-100.json").read_bytes()
MANIFEST = next(path for path in MANIFESTS if path.name == "pod-refused.yaml").read_bytes()


@pytest.mark.parametrize("kind", TARGETS)
def test_the_invariants_hold_for_the_seeds(kind: str):
    tried = [TARGETS[kind](seed) for seed in seeds(kind)]
    assert len(tried) > 100


@pytest.mark.parametrize("file", regressions(), ids=lambda file: file.name)
def test_what_the_fuzzer_found_stays_mended(file: Path):
    TARGETS[file.name.split("-")[0]](file.read_bytes())


documents = strategies.mangled(st.sampled_from([json.loads(path.read_bytes()) for path in RECORDED]))
reviews = documents | strategies.mangled(strategies.pods()).map(review_of).map(json.loads)


@given(st.sampled_from(["mutate", "validate"]), st.integers(0, 255), reviews)
def test_the_invariants_hold_for_random_reviews(kind: str, settings: int, review: Any):
    TARGETS[kind](bytes([settings]) + json.dumps(review).encode())


@given(reviews | strategies.pods() | strategies.json_values)
def test_the_invariants_hold_for_random_manifests(document: Any):
    TARGETS["manifests"](json.dumps(document).encode())


def other_uid(answer: Callable[..., bytes]) -> Callable[..., bytes]:
    return lambda request, *rest: answer(request._replace(uid="another"), *rest)


def no_message(answer: Callable[[Outcome], Any]) -> Callable[[Outcome], Any]:
    return lambda outcome: answer(outcome)._replace(message="")


def fails(_: object) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise KeyError("a bug")

    return fail


DEFECTS = [
    ("mutate", REPAIRED, codec, "encode", other_uid),
    ("mutate", REPAIRED, Draft, "operations", lambda _: lambda _: []),
    ("mutate", REPAIRED, writer, "line", fails),
    ("validate", REFUSED, Outcome, "answer", no_message),
    ("validate", REFUSED, pods, "findings", fails),
    ("manifests", MANIFEST, existing_objects, "review_any_kind", fails),
    ("manifests", MANIFEST, Document, "position", lambda _: lambda *_: None),
]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: f"{defect[0]}-{defect[3]}")
def test_a_defect_breaks_an_invariant(monkeypatch: pytest.MonkeyPatch, defect: Any):
    kind, data, owner, name, broken = defect
    TARGETS[kind](data)
    monkeypatch.setattr(owner, name, broken(getattr(owner, name)))
    with pytest.raises((AssertionError, KeyError)):
        TARGETS[kind](data)


def test_most_changed_reviews_are_read():
    """A fuzzer whose inputs end at the envelope would find nothing."""
    read = 0
    for seed in range(200):
        try:
            codec.decode(changed(REPAIRED, seed, lambda data: data, prefix=1)[1:])
        except RequestError:
            continue
        read += 1
    assert read > 150
