"""A ResourceQuota is read for its limits of device memory."""

import pytest

from webhook.volcano.quotas import Quota, Quotas, read_quota

MEMORY = "limits.volcano.sh/vgpu-memory"
METADATA = {"name": "gpus", "namespace": "team-a"}


def test_a_quota_of_devices_is_read():
    hard = {MEMORY: "40k", "limits.cpu": "8", "requests.volcano.sh/vgpu-number": "4", "limits.example.com/x": "many"}
    quota = read_quota({"metadata": METADATA, "spec": {"hard": hard}})
    assert quota == Quota("team-a", "gpus", {"volcano.sh/vgpu-memory": 40000})


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": METADATA, "spec": []},
        {"metadata": METADATA, "spec": {"hard": {"limits.cpu": 8}}},
        {"metadata": {"name": "gpus"}, "spec": {"hard": {MEMORY: 1}}},
        {"metadata": METADATA, "spec": {"hard": {MEMORY: 1}, "scopes": ["Terminating"]}},
        {"metadata": METADATA, "spec": {"hard": {MEMORY: 1}, "scopeSelector": {"matchExpressions": []}}},
        {"metadata": METADATA, "spec": {"hard": {MEMORY: [1]}}},
    ],
)
def test_a_quota_without_device_limits_is_ignored(raw: dict[str, object]):
    assert read_quota(raw) is None


def test_the_digest_depends_on_what_reviews_read():
    one, other = Quota("a", "q", {MEMORY: 1}), Quota("b", "q", {MEMORY: 1})
    assert Quotas([one, other]).digest == Quotas([other, one]).digest != Quotas([one]).digest
    assert [list(Quotas([one, other]).of(namespace)) for namespace in "abc"] == [[one], [other], []]
