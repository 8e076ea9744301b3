"""A mirror pod is a kubelet's copy of a static pod. It already runs, so it is neither repaired nor refused."""

from typing import Any

import pytest

from tests.deploy.calling import called
from tests.deploy.clusters import USUAL as CLUSTER
from tests.deploy.clusters import outcome_of
from tests.deploy.clusters import request as admission_request
from tests.review.test_enforcement import pod
from tests.review.test_review import USUAL
from tests.reviewing import request
from webhook import names
from webhook.review.endpoints import mutate, review, validate

KUBELET = {"username": "system:node:gpu-a", "groups": ["system:nodes", "system:authenticated"]}
ANYBODY = {"username": "alice", "groups": ["system:authenticated"]}


def invalid_pod(**annotations: str) -> dict[str, Any]:
    """A pod that is repaired and refused unless it is a mirror pod."""
    return pod(number=1, memory=3000, cores=101) | {"metadata": {"name": "a", "annotations": annotations}}


MIRROR = invalid_pod(**{names.MIRROR: "6f1c0b", "volcano.sh/vgpu-node": "a"})


@pytest.mark.parametrize("endpoint", [mutate, validate])
def test_a_mirror_pod_of_a_kubelet_is_never_touched(endpoint: Any):
    created = admission_request(MIRROR, userInfo=KUBELET)
    assert not outcome_of(endpoint, created, CLUSTER.snapshot).reviewed
    assert called(CLUSTER.entries, created, f"/{endpoint.__name__}") == set()


@pytest.mark.parametrize("user", [ANYBODY, {"username": "alice"}])
def test_the_annotation_alone_exempts_nothing(user: dict[str, Any]):
    created = admission_request(MIRROR, userInfo=user)
    refused = {violation.rule for violation in outcome_of(validate, created, CLUSTER.snapshot).denials}
    assert refused >= {"cores-range", "reserved-annotation"}
    assert outcome_of(mutate, created, CLUSTER.snapshot).operations
    assert called(CLUSTER.entries, created, "/mutate") == {"repair"}
    assert called(CLUSTER.entries, created, "/validate") == {"pods"}


def test_a_kubelet_creates_no_other_pod_without_a_review():
    created = admission_request(invalid_pod(), userInfo=KUBELET)
    assert not outcome_of(validate, created, CLUSTER.snapshot).allowed
    assert called(CLUSTER.entries, created, "/validate") == {"pods"}


def test_an_update_of_a_mirror_pod_is_reviewed():
    before = invalid_pod(**{names.MIRROR: "a"})
    assert not validate(request(MIRROR, before, groups=tuple(KUBELET["groups"])), USUAL).allowed


def test_a_template_with_the_annotation_is_no_mirror_pod():
    workload = {"metadata": {"name": "a"}, "spec": {"template": MIRROR}}
    assert review(request(workload, group="apps", kind="Deployment"), USUAL).violations
