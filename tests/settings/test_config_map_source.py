"""Settings from ConfigMaps: the first place wins, and what cannot be used changes nothing."""

import logging
from typing import Any

import pytest

from tests.kube.apiserver import config_map
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials
from webhook.policy.policy import default_policy
from webhook.settings.cluster_sources import ConfigMapSource
from webhook.settings.snapshot import default_device_config
from webhook.settings.sources import DEVICE_CONFIG, POLICY

PLACES = [("kube-system", "config"), ("volcano-system", "config")]
GOOD = {"device-config.yaml": "nvidia: {defaultMemory: 7}"}
OTHER = {"device-config.yaml": "nvidia: {defaultMemory: 8}"}


def connect() -> Client:
    return Client(Credentials())


class Said:
    """A setting, and an API server that is told what to say of each place."""

    def __init__(self, setting: ConfigMapSource[Any]) -> None:
        self.setting = setting

    def says(self, *maps: Any) -> bool:
        """Each place has this data, or no ConfigMap (None), or nobody knows ("?"). Whether something was read."""
        for reflector, data in zip(self.setting.reflectors, maps, strict=True):
            if data != "?":
                kept = None if data is None else reflector.keep(config_map("config", data))
                reflector.objects = {} if kept is None else {"config": kept}
                reflector.confirmed = 1.0
        return self.setting.refresh()


@pytest.fixture
def device_config() -> Said:
    return Said(ConfigMapSource(DEVICE_CONFIG, PLACES, connect))


@pytest.fixture
def policy() -> Said:
    return Said(ConfigMapSource(POLICY, [("own", "policy")], connect))


def memory(said: Said) -> int:
    return said.setting.value.vgpu.default_memory


def test_only_one_name_is_requested(device_config: Said):
    for reflector, (namespace, _) in zip(device_config.setting.reflectors, PLACES, strict=True):
        assert reflector.path == f"/api/v1/namespaces/{namespace}/configmaps"
        assert reflector.query == {"fieldSelector": "metadata.name=config"}


def test_only_one_key_is_kept(device_config: Said):
    keep = device_config.setting.reflectors[0].keep
    assert keep(config_map("config", GOOD | {"other": "x" * 1000})) == GOOD
    assert keep({"metadata": {"name": "config"}}) == keep({"data": None}) == keep({"data": []}) == {}


def test_nothing_is_settled_before_the_first_place_is_known(device_config: Said):
    assert not device_config.says("?", GOOD)
    setting = device_config.setting
    assert not setting.settled
    assert setting.value == default_device_config()
    assert setting.status() == ("Volcano's built-in defaults", "not read yet", None)
    assert device_config.says(None, GOOD)
    assert setting.settled
    assert memory(device_config) == 7
    assert setting.status() == ("ConfigMap volcano-system/config", None, None)


def test_the_first_place_wins(device_config: Said):
    assert device_config.says(GOOD, OTHER)
    assert memory(device_config) == 7
    assert not device_config.says(GOOD, None), "nothing that is in use has changed"
    assert device_config.says(None, OTHER)
    assert memory(device_config) == 8
    assert device_config.says(GOOD, OTHER)
    assert memory(device_config) == 7


def test_without_a_config_map_the_defaults_apply_and_are_reported(
    device_config: Said, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    assert not device_config.says(None, None), "there was nothing to read"
    absent = (
        "Volcano's built-in defaults (there is no ConfigMap kube-system/config and no ConfigMap volcano-system/config)"
    )
    assert device_config.setting.status().text == absent
    assert caplog.messages == [f"device-config: {absent} is in use"]
    assert device_config.setting.settled


def test_a_deleted_device_config_is_volcanos_default_again(device_config: Said):
    device_config.says(GOOD, None)
    assert device_config.says(None, None)
    assert device_config.setting.value == default_device_config()
    assert device_config.setting.problem is None
    assert "Volcano's built-in defaults (there is no" in device_config.setting.status().text


def test_a_deleted_policy_is_refused(policy: Said):
    policy.says(None)
    assert policy.setting.value.digest == default_policy().digest
    policy.says({"policy.yaml": "schedulerNames: [volcano, other]"})
    good = policy.setting.value
    assert good.digest != default_policy().digest
    assert policy.says(None)
    assert policy.setting.value is good
    assert policy.setting.status().text == "ConfigMap own/policy; problem: ConfigMap own/policy was deleted"


BAD_POLICIES = {
    "not YAML": ("rules: [", "not YAML or JSON that can be read"),
    "two documents": ("{}\n---\n{}", "2 documents where one is expected"),
    "unknown rule": ("rules: {card-cuont: off}", "rules: no rule is called 'card-cuont'; did you mean 'card-count'?"),
    "unknown key": ("shedulerName: x", "shedulerName: no such key; did you mean 'schedulerName'?"),
    "wrong type": ("rules: 7", "rules: "),
    "wrong root": ("[1]", ""),
}


@pytest.mark.parametrize("name", BAD_POLICIES)
def test_a_policy_that_cannot_be_used(policy: Said, name: str, caplog: pytest.LogCaptureFixture):
    text, complaint = BAD_POLICIES[name]
    assert policy.says({"policy.yaml": text})
    assert policy.setting.value.digest == default_policy().digest
    assert policy.setting.status().text.startswith("the default policy; problem: ")
    policy.says({"policy.yaml": "schedulerNames: [volcano, other]"})
    good = policy.setting.value
    caplog.clear()
    assert policy.says({"policy.yaml": text})
    assert policy.setting.value is good
    problem = policy.setting.problem
    assert problem.startswith("ConfigMap own/policy: policy.yaml: ")
    assert complaint in problem
    assert caplog.messages == [f"policy: {problem}; ConfigMap own/policy stays in use"]
    assert not policy.says({"policy.yaml": text}), "one bad ConfigMap is told once"
    assert policy.says({"policy.yaml": "schedulerNames: [volcano, third]"})
    assert policy.setting.problem is None


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"device-config.yaml": "nvidia: ["}, "not YAML"),
        ({"device-config.yaml": "nvidia: {defaultMemory: '7'}"}, "nvidia.defaultMemory: "),
        ({"device-config.yaml": "x: 1"}, "neither nvidia: nor vnpus:"),
        ({"device-config.yaml": ""}, "a device config is a mapping"),
        ({"config.yaml": "nvidia: {}"}, "ConfigMap kube-system/config has no key device-config.yaml"),
        ({"device-config.yaml": 5}, "ConfigMap kube-system/config has no key device-config.yaml"),
    ],
)
def test_a_device_config_that_cannot_be_used(device_config: Said, data: dict[str, Any], complaint: str):
    device_config.says(data, OTHER)
    assert device_config.setting.value == default_device_config(), (
        "the second place is not asked: Volcano would not, either"
    )
    assert device_config.setting.settled, "Volcano runs with its defaults now"
    device_config.says(GOOD, OTHER)
    device_config.says(data, OTHER)
    assert memory(device_config) == 7
    assert complaint in device_config.setting.problem
