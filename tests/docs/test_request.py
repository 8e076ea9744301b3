"""The manifests of docs/request.md are right, as they stand."""

from typing import Any

import pytest
import yaml

from tests.docs.commands import README
from tests.docs.generated import DOCS
from tests.docs.markdown import blocks
from tests.reviewing import ALL_FAMILIES, request, snapshot
from webhook.review.endpoints import review

PAGE = (DOCS / "request.md").read_text()
MANIFESTS = [yaml.safe_load(block.text) for block in blocks(PAGE, "yaml")]
NEEDED = {"toleration", "percentage-to-memory"}  # what the page leaves to the webhook


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["metadata"]["name"])
def test_a_manifest_to_copy_is_admitted_as_it_stands(manifest: dict[str, Any]):
    outcome = review(request(manifest), snapshot(*ALL_FAMILIES))
    assert outcome.violations == ()
    assert set(outcome.mutations) <= NEEDED


def test_the_manifests_have_different_names_and_are_counted():
    assert len({manifest["metadata"]["name"] for manifest in MANIFESTS}) == len(MANIFESTS) == 13
    assert PAGE.startswith("# Request a slice\n\nThirteen manifests")
    assert "one of [thirteen manifests](docs/request.md)" in README.read_text()


def test_half_a_card_is_half_of_any_card():
    half = next(manifest for manifest in MANIFESTS if manifest["metadata"]["name"] == "half-a-card")
    outcome = review(request(half), snapshot("rtx4090"))
    (edit,) = [edit for edit in outcome.operations if edit["path"].endswith("limits/volcano.sh~1vgpu-memory")]
    assert edit["value"] == str(24564 // 2)
