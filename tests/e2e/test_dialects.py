"""Pods that ask other systems for a GPU: translated in one namespace, told in the others, and never blocked."""

from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.api import Api
from tests.e2e.changes import DEVICE_CONFIG, attach, changed_config_map
from tests.e2e.cluster import Cluster
from tests.e2e.conftest import Serve
from tests.e2e.objects import namespace_objects, pod, pods
from tests.e2e.test_live import POLICY
from tests.server.program import Authority, Program, until
from webhook.devices.config_file import parse_device_config
from webhook.manifests.configurations import as_yaml, configurations
from webhook.policy.policy import parse_policy

TRANSLATED, TOLD = "dialects-translated", "dialects-told"
MOVING = {"namespaces": [{"match": [TRANSLATED], "dialects": {"hami": "translate", "kai": "translate"}}]}
HAMI = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
SLICE = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3k"}


@pytest.fixture(scope="module")
def moving(cluster: Cluster, serve: Serve, authority: Authority) -> Iterator[Program]:
    """The webhook with this policy, and the configurations that are printed for it."""
    config = parse_device_config(yaml.safe_load(DEVICE_CONFIG.read_text()), "device-config.yaml")
    printed = as_yaml(configurations(config, parse_policy(MOVING, "policy")))
    program = serve("--audit-log", "")
    attach(cluster, program.port, authority.ca.certificate, program, documents=[*yaml.safe_load_all(printed)])
    for namespace in (TRANSLATED, TOLD):
        cluster.apply(*namespace_objects(namespace))
    with cluster.api() as api, changed_config_map(api, POLICY, "policy.yaml", yaml.safe_dump(MOVING)):
        dry_run = f"{pods(TRANSLATED)}?dryRun=All"
        until(lambda: "translate-dialect" in "".join(api.post(dry_run, pod("p", HAMI)).warnings))
        yield program


def test_only_pods_in_other_names_are_sent_and_they_start_without_the_webhook(moving: Program, api: Api):
    translated, told = (api.post(pods(namespace), pod("a", HAMI)) for namespace in (TRANSLATED, TOLD))
    assert [text.partition(":")[0] for text in (*translated.warnings, *told.warnings)] == [
        "translate-dialect",
        "foreign-dialect",
    ]
    spec = api.get(pods(TRANSLATED, "a")).body["spec"]
    assert spec["containers"][0]["resources"] == {"limits": SLICE, "requests": SLICE}
    assert spec["schedulerName"] == "volcano"
    before = moving.metric("requests_total")
    assert api.post(pods(TOLD), pod("plain")).status == 201
    assert moving.metric("requests_total") == before
    moving.process.terminate()
    moving.process.wait()
    assert api.post(pods(TOLD), pod("late", HAMI)).status == 201
    assert api.post(pods(TOLD), pod("card", {"nvidia.com/gpu": "1"})).status == 201
    assert api.post(pods(TOLD), pod("slice", SLICE)).status == 500
