"""A mirror pod is the API server's copy of a static pod. It already runs, so it is neither repaired nor refused."""

from typing import Any

import pytest

from tests.reviewing import request
from tests.test_enforcement import pod
from tests.test_review import USUAL
from webhook import names
from webhook.review import mutate, review, validate


def invalid_pod(**annotations: str) -> dict[str, Any]:
    """A pod that is repaired and refused unless it is a mirror pod."""
    pod_json = pod(number=1, memory=3000, cores=101)
    pod_json["metadata"] = {"name": "a", "annotations": annotations}
    return pod_json


@pytest.mark.parametrize("hash_", ["6f1c0b", ""])
@pytest.mark.parametrize("endpoint", [mutate, validate, review])
def test_a_mirror_pod_is_never_touched(endpoint: Any, hash_: str):
    mirror = request(invalid_pod(**{names.MIRROR: hash_, "volcano.sh/vgpu-node": "a"}))
    outcome = endpoint(mirror, USUAL)
    assert outcome.allowed
    assert not outcome.touched
    assert (outcome.operations, outcome.notices, outcome.violations) == ((), (), ())


def test_an_update_of_a_mirror_pod_is_never_touched():
    before, after = invalid_pod(**{names.MIRROR: "a"}), invalid_pod(**{names.MIRROR: "a", "volcano.sh/vgpu-node": "b"})
    assert not validate(request(after, operation="UPDATE", old_object=before), USUAL).touched


def test_the_same_pod_without_the_annotation_is_repaired_and_refused():
    assert mutate(request(invalid_pod()), USUAL).operations
    assert not review(request(invalid_pod()), USUAL).allowed


def test_a_template_with_the_annotation_is_no_mirror_pod():
    workload = {"metadata": {"name": "a"}, "spec": {"template": invalid_pod(**{names.MIRROR: "a"})}}
    outcome = validate(request(workload, group="apps", kind="Deployment"), USUAL)
    assert outcome.violations
