"""Until a pod has a node, its annotations choose its devices: a change of them is judged as they are at creation."""

from typing import Any

import pytest

from tests.cli.conftest import pod
from tests.deploy.calling import called
from tests.deploy.clusters import entries, request
from tests.deploy.clusters import outcome_of as outcome
from tests.reviewing import CONFIG, snapshot
from webhook import names
from webhook.manifests.configurations import configurations
from webhook.outcome import Outcome
from webhook.policy.policy import parse_policy
from webhook.review.endpoints import validate

LIMITED = {"namespaces": [{"match": ["default"], "limits": {"memory": {"max": 20000}}}]}
SETTINGS = snapshot("mixed", **LIMITED)
ENTRIES = entries(configurations(CONFIG, parse_policy(LIMITED, "policy")))
TRUSTED = "system:serviceaccount:volcano-system:volcano-scheduler"
T4, A100 = ({names.USE_GPUTYPE: word} for word in ("T4", "A100"))


def update(
    before: Any, now: Any, limits: dict[str, str], user: str = "alice", metadata: Any = None, **fields: Any
) -> tuple[set[str], Outcome]:
    """The entries that send a change of the annotations, and what becomes of it."""
    old, new = (
        pod(limits=limits, metadata={"annotations": each} | (metadata or {}), **fields) for each in (before, now)
    )
    asked = request(new, "UPDATE", oldObject=old, userInfo={"username": user})
    return called(ENTRIES, asked, "/validate"), outcome(validate, asked, SETTINGS)


WHOLE = {names.VGPU_NUMBER: "1"}
SLICE = {names.VGPU_NUMBER: "1", names.VGPU_MEMORY: "15000"}


@pytest.mark.parametrize(
    ("before", "now", "limits", "rules"),
    [
        (T4, A100, WHOLE, {"outside-limits"}),
        (T4, {}, WHOLE, {"outside-limits"}),
        (T4, {names.NOUSE_GPUTYPE: "T4"}, WHOLE, {"outside-limits"}),
        (T4, A100, SLICE, set()),
        (T4, {**T4, names.VGPU_MODE: "nonsense"}, WHOLE, {"mode-invalid"}),
        (T4, {names.USE_GPUTYPE: "T4,H100"}, WHOLE, set()),
        ({}, {names.USE_GPUTYPE: "TPU"}, SLICE, {"no-eligible-card"}),
        # what was wrong before, and is not changed
        (A100, {**A100, names.PODGROUP_POLICY: names.PODGROUP_SPREAD}, WHOLE, set()),
        ({**T4, names.VGPU_MODE: "nonsense"}, {**A100, names.VGPU_MODE: "nonsense"}, SLICE, set()),
        (T4, A100, {"cpu": "1"}, set()),
    ],
)
def test_what_creation_refuses_an_update_refuses_if_it_is_new(before: Any, now: Any, limits: Any, rules: set[str]):
    sent, result = update(before, now, limits)
    assert {found.rule for found in result.denials} == rules
    assert sent == (set() if "cpu" in limits else {"assignments"})
    created = request(pod(limits=limits, metadata={"annotations": now}))
    assert rules <= {found.rule for found in outcome(validate, created, SETTINGS).denials}


@pytest.mark.parametrize(
    "change",
    [{"user": TRUSTED}, {"nodeName": "gpu-a"}, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}],
    ids=["the scheduler", "a pod with a node", "a pod that is being deleted"],
)
def test_what_components_of_the_cluster_write_is_never_judged(change: dict[str, Any]):
    sent, result = update(T4, {**A100, names.VGPU_MODE: "nonsense"}, WHOLE, **change)
    assert (sent, result.violations) == (set(), ())
