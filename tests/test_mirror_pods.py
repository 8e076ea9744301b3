"""A mirror pod is the API server's copy of a static pod: it runs already, and is neither repaired nor refused."""

from typing import Any

import pytest

from tests.reviewing import request
from tests.test_enforcement import pod
from tests.test_review import USUAL
from webhook import names
from webhook.review import mutate, review, validate


def refused(**annotations: str) -> dict[str, Any]:
    """A pod that would be repaired and refused."""
    found = pod(number=1, memory=3000, cores=101)
    found["metadata"] = {"name": "a", "annotations": annotations}
    return found


@pytest.mark.parametrize("hash_", ["6f1c0b", ""])
@pytest.mark.parametrize("endpoint", [mutate, validate, review])
def test_a_mirror_pod_is_never_touched(endpoint: Any, hash_: str):
    mirror = request(refused(**{names.MIRROR: hash_, "volcano.sh/vgpu-node": "a"}))
    outcome = endpoint(mirror, USUAL)
    assert outcome.allowed
    assert not outcome.touched
    assert (outcome.operations, outcome.notices, outcome.violations) == ((), (), ())


def test_its_updates_are_not_touched():
    before, after = refused(**{names.MIRROR: "a"}), refused(**{names.MIRROR: "a", "volcano.sh/vgpu-node": "b"})
    assert not validate(request(after, operation="UPDATE", old_object=before), USUAL).touched


def test_the_same_pod_without_the_annotation_is_repaired_and_refused():
    assert mutate(request(refused()), USUAL).operations
    assert not review(request(refused()), USUAL).allowed


def test_a_template_with_the_annotation_is_no_mirror_pod():
    workload = {"metadata": {"name": "a"}, "spec": {"template": refused(**{names.MIRROR: "a"})}}
    outcome = validate(request(workload, group="apps", kind="Deployment"), USUAL)
    assert outcome.violations
