"""Settings from ConfigMaps: the first ConfigMap wins, and an invalid one changes nothing."""

import logging
from typing import Any

import pytest

from tests.cluster.apiserver import config_map
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.cluster.reflector import Access, Copy, State
from webhook.cluster.settings import FollowedDocument
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import default_device_config
from webhook.settings.sources import SourceStatus
from webhook.settings.table import DEVICE_CONFIG, POLICY

LOCATIONS = [("kube-system", "config"), ("volcano-system", "config")]
GOOD = {"device-config.yaml": "nvidia: {defaultMemory: 7}"}
OTHER = {"device-config.yaml": "nvidia: {defaultMemory: 8}"}


access = Access(lambda: Client(Credentials()))


class FakeCluster:
    """A source of settings, and the contents of its ConfigMaps in the cluster."""

    def __init__(self, source: FollowedDocument[Any]) -> None:
        self.source = source

    def sync(self, *maps: Any) -> bool:
        """Set the data of each ConfigMap: None if it does not exist, "?" if it is not listed yet.

        Returns:
            Whether the source has read a new version.
        """
        for reflector, data in zip(self.source.reflectors, maps, strict=True):
            if data != "?":
                kept = {} if data is None else {"config": self.source.keep(config_map("config", data))}
                reflector.copy, reflector._state, reflector.version = Copy(None, kept), State.KNOWN, 1
        return self.source.refresh()


@pytest.fixture
def device_config() -> FakeCluster:
    return FakeCluster(FollowedDocument(DEVICE_CONFIG, LOCATIONS, access))


@pytest.fixture
def policy() -> FakeCluster:
    return FakeCluster(FollowedDocument(POLICY, [("own", "policy")], access))


def default_memory(cluster: FakeCluster) -> int:
    return cluster.source.value.vgpu.default_memory


def test_only_one_name_is_requested(device_config: FakeCluster):
    for reflector, (namespace, _) in zip(device_config.source.reflectors, LOCATIONS, strict=True):
        assert reflector.path == f"/api/v1/namespaces/{namespace}/configmaps"
        assert reflector.query == {"fieldSelector": "metadata.name=config"}


def test_only_one_key_is_kept(device_config: FakeCluster):
    keep = device_config.source.keep
    assert keep(config_map("config", GOOD | {"other": "x" * 1000})) == (GOOD["device-config.yaml"],)
    assert keep({"metadata": {"name": "config"}}) == keep({"data": None}) == keep({"data": []}) == (None,)


def test_nothing_is_settled_before_the_first_config_map_is_known(device_config: FakeCluster):
    assert not device_config.sync("?", GOOD)
    source = device_config.source
    assert (source.state(), source.value) == (State.WAITING, default_device_config())
    assert source.status() == SourceStatus("unknown", "not read yet")
    assert device_config.sync(None, GOOD)
    assert (source.state(), default_memory(device_config)) == (State.KNOWN, 7)
    assert source.status() == SourceStatus("ConfigMap volcano-system/config")


def test_the_first_config_map_wins(device_config: FakeCluster):
    assert device_config.sync(GOOD, OTHER)
    assert default_memory(device_config) == 7
    assert not device_config.sync(GOOD, None), "the ConfigMap in use has not changed"
    assert device_config.sync(None, OTHER)
    assert default_memory(device_config) == 8
    assert device_config.sync(GOOD, OTHER)
    assert default_memory(device_config) == 7


def test_without_a_config_map_the_defaults_apply_and_are_reported(
    device_config: FakeCluster, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    assert not device_config.sync(None, None), "there was nothing to read"
    absent = (
        "Volcano's built-in defaults (there is no ConfigMap kube-system/config and no ConfigMap volcano-system/config)"
    )
    assert device_config.source.status().text == absent
    assert caplog.messages == [f"device-config: {absent} is in use"]
    assert device_config.source.state() is State.KNOWN


def test_a_deleted_device_config_is_volcanos_default_again(device_config: FakeCluster):
    device_config.sync(GOOD, None)
    assert device_config.sync(None, None)
    assert device_config.source.value == default_device_config()
    assert device_config.source.problem is None
    assert "Volcano's built-in defaults (there is no" in device_config.source.status().text


def test_a_deleted_policy_is_refused(policy: FakeCluster):
    policy.sync(None)
    assert policy.source.value.digest == default_policy().digest
    policy.sync({"policy.yaml": "schedulerNames: [volcano, other]"})
    good = policy.source.value
    assert good.digest != default_policy().digest
    assert policy.sync(None)
    assert policy.source.value is good
    assert (
        policy.source.status().text == "ConfigMap own/policy; problem: there is no ConfigMap own/policy: it was deleted"
    )


EMPTY = ("", " \n", "# none\n", "null", "---\n")
BAD_POLICIES = [
    *((text, "it is empty; write {} for the default policy") for text in EMPTY),
    ("rules: [", "not YAML or JSON that can be read"),
    ("rules: {card-cuont: off}", "rules: no rule is called 'card-cuont'; did you mean 'card-count'?"),
]


@pytest.mark.parametrize(("text", "message"), BAD_POLICIES)
def test_a_policy_that_cannot_be_used(policy: FakeCluster, text: str, message: str, caplog: pytest.LogCaptureFixture):
    assert policy.sync({"policy.yaml": text})
    assert policy.source.state() is State.UNKNOWN
    assert policy.source.status().text.startswith("unknown; problem: ")
    policy.sync({"policy.yaml": "schedulerNames: [volcano, other]"})
    good = policy.source.value
    caplog.clear()
    assert policy.sync({"policy.yaml": text})
    assert policy.source.value is good
    problem = policy.source.problem
    assert problem.startswith("ConfigMap own/policy: policy.yaml: ")
    assert message in problem
    assert caplog.messages == [f"policy: {problem}; ConfigMap own/policy stays in use"]
    assert not policy.sync({"policy.yaml": text}), "an invalid ConfigMap is reported once"
    assert policy.sync({"policy.yaml": "schedulerNames: [volcano, third]"})
    assert policy.source.problem is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"device-config.yaml": "nvidia: {defaultMemory: '7'}"}, "nvidia.defaultMemory: "),
        ({"config.yaml": "nvidia: {}"}, "ConfigMap kube-system/config has no key device-config.yaml"),
        ({"device-config.yaml": 5}, "ConfigMap kube-system/config has no key device-config.yaml"),
    ],
)
def test_a_device_config_that_cannot_be_used(device_config: FakeCluster, data: dict[str, Any], message: str):
    device_config.sync(data, OTHER)
    assert device_config.source.value == default_device_config(), (
        "the second ConfigMap is not used: Volcano does not use it, either"
    )
    assert device_config.source.state() is State.UNKNOWN, "Volcano runs with its defaults now"
    device_config.sync(GOOD, OTHER)
    device_config.sync(data, OTHER)
    assert default_memory(device_config) == 7
    assert message in device_config.source.problem


def test_likely_mistakes_of_a_policy_are_logged(policy: FakeCluster, caplog: pytest.LogCaptureFixture):
    policy.sync({"policy.yaml": "namespaces: [{match: [team-a], enforcement: audit}, {match: [team-*]}]"})
    assert "policy: ConfigMap own/policy: namespaces.0: it never decides: a later entry matches the same" in caplog.text
