"""What the webhook and Volcano read as settings, and quotas, are reviewed when they are written; nothing waits for it."""

from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.objects import config_map
from tests.e2e.test_live import DEVICE_CONFIG, POLICY
from webhook import names

pytestmark = pytest.mark.usefixtures("webhook")

KEYS = {POLICY: "policy.yaml", DEVICE_CONFIG: "device-config.yaml"}


@pytest.mark.parametrize(
    ("path", "text", "status", "says"),
    [
        (POLICY, "enforcemnt: warn", 403, "policy: enforcemnt: no such key; did you mean 'enforcement'?"),
        (POLICY, "enforcement: warn", 200, ""),
        (POLICY, "# written by a template that failed", 403, "it is empty; write {} for the default policy"),
        (DEVICE_CONFIG, "nvidia: [", 200, "device-config: kube-system/volcano-vgpu-device-config: "),
    ],
)
def test_a_setting_is_reviewed_when_it_is_written(path: str, text: str, status: int, says: str, api: Api):
    response = api.merge(f"{path}?dryRun=All", {"data": {KEYS[path]: text}})
    assert response.status == status, response.message
    assert says in (response.message if status == 403 else "\n".join(response.warnings))
    assert bool(response.warnings) == (status == 200 and bool(says))


def test_a_scheduler_configuration_is_reviewed_when_it_is_written(api: Api):
    conf = {names.SCHEDULER_CONF_KEY: "tiers: [{plugins: [{name: priority}]}]\nactions: allocate\n"}
    document = config_map("volcano-system", names.SCHEDULER_CONF_MAP, conf)
    response = api.post("/api/v1/namespaces/volcano-system/configmaps?dryRun=All", document)
    assert response.status == 201, response.message
    assert "no tier has deviceshare, so no device is ever assigned" in "\n".join(response.warnings)


@pytest.mark.parametrize(
    ("hard", "says"),
    [
        ({"requests.volcano.sh/vgpu-mem": "6000"}, ["did you mean volcano.sh/vgpu-memory?"]),
        ({"requests.nvidia.com/gpu": "8"}, ["no node offers nvidia.com/gpu"]),
        ({"requests.volcano.sh/vgpu-number": "4"}, []),
    ],
    ids=["misspelt", "not offered", "counted"],
)
def test_a_quota_is_reviewed_when_it_is_written(hard: dict[str, str], says: list[str], api: Api, namespace: str):
    response = api.post(f"/api/v1/namespaces/{namespace}/resourcequotas?dryRun=All", quota(hard))
    assert response.status == 201, response.message
    assert len(response.warnings) == len(says)
    assert all(part in warning for part, warning in zip(says, response.warnings, strict=True))


def quota(hard: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": hard}}
