"""The manifests of docs/request.md are right, as they stand."""

from typing import Any

import pytest
import yaml

from tests.docs.generated import DOCS
from tests.docs.markdown import blocks
from tests.reviewing import ALL_FAMILIES, request, snapshot
from webhook.review import review

MANIFESTS = [yaml.safe_load(block.text) for block in blocks((DOCS / "request.md").read_text(), "yaml")]
NEEDED = {"toleration", "percentage-to-memory"}  # what the page leaves to the webhook


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["metadata"]["name"])
def test_a_manifest_to_copy_is_admitted_as_it_stands(manifest: dict[str, Any]):
    outcome = review(request(manifest), snapshot(*ALL_FAMILIES))
    assert outcome.violations == ()
    assert set(outcome.mutations) <= NEEDED


def test_there_are_ten_manifests_with_different_names():
    assert len({manifest["metadata"]["name"] for manifest in MANIFESTS}) == 10
