"""The fuzzer's invariants hold for its seeds and for inputs that once broke them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.fuzz.inputs import changed, regressions, review_of, seeds
from tests.fuzz.targets import TARGETS
from tests.reviewing import RECORDED
from webhook.errors import RequestError
from webhook.wire import codec

REPAIRED = b"\x00" + next(path for path in RECORDED if path.name == "number-only.json").read_bytes()


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
