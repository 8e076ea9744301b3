"""The accounts of the upstream manifests: trustedUsers has them, and the doctor recognizes their workloads."""

from pathlib import Path

import pytest
import yaml

from tests.questions.doctor.cluster import facts_of
from webhook import names
from webhook.questions.doctor.facts import ObjectKind
from webhook.questions.doctor.volcano import account_of, assigning_workloads
from webhook.rules.policy_keys import DEFAULT_TRUSTED_USERS

RECORDED = yaml.safe_load((Path(__file__).parents[2] / "data" / "upstream-accounts.yaml").read_text())
ASSIGNING = {names.SERVICE_ACCOUNT + recorded["account"] for recorded in RECORDED if recorded["assigns"]}


def workload(recorded, name, image):
    namespace, _, account = recorded["account"].partition(":")
    spec = {"serviceAccountName": account, "containers": [{"image": image}]}
    metadata = {"name": name, "namespace": namespace}
    return {"kind": recorded["kind"], "metadata": metadata, "spec": {"template": {"spec": spec}}}


def test_the_default_has_the_accounts_that_assign_devices_and_no_other():
    """The scheduler and the plugin of vGPUs may run in each other's namespace."""
    assert set(DEFAULT_TRUSTED_USERS) >= ASSIGNING
    assert len(set(DEFAULT_TRUSTED_USERS)) == len(DEFAULT_TRUSTED_USERS)
    assert {user.rpartition(":")[2] for user in DEFAULT_TRUSTED_USERS} == {u.rpartition(":")[2] for u in ASSIGNING}
    assert {user.split(":")[2] for user in DEFAULT_TRUSTED_USERS} == {"volcano-system", "kube-system"}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["account"] + " " + recorded["file"])
def test_a_workload_is_recognized_by_its_image_or_its_name(recorded):
    kind, copied = ObjectKind(recorded["kind"]), f"mirror.example/{recorded['image']}:1@sha256:0"
    for name, image in ((recorded["name"], "mirror.example/base:1"), ("x", copied)):
        found = assigning_workloads(facts_of({"": workload(recorded, name, image)}), kind, ("volcano",))
        expected = [names.SERVICE_ACCOUNT + recorded["account"]] if recorded["assigns"] else []
        assert list(map(account_of, found)) == expected
