"""An audit line, and the annotations for the API server's audit log, have no content of a pod that may be secret."""

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.audit.test_excerpt import rich_pods
from tests.reviewing import request, snapshot
from webhook import names
from webhook.audit.writer import Exchange, line
from webhook.devices.config_file import parse_device_config
from webhook.pod.environment import HIDDEN
from webhook.review.endpoints import mutate, review, validate
from webhook.rules.registry import DEFAULT_LEVELS, MUTATIONS, VALIDATIONS

SECRET = "s3cr3t"
LEVELS = {"rules": dict.fromkeys(DEFAULT_LEVELS, "deny")}  # as many findings as possible


def _snapshot(**settings: Any) -> Any:
    config = parse_device_config({"nvidia": {"defaultGPUNum": 1, "defaultMemory": 100, **settings}}, "test")
    node = strategies.node_json("n", strategies.register([("NVIDIA-Tesla T4", 15360)]))
    return snapshot(config=config, raw=[node], **LEVELS)


SNAPSHOTS = [_snapshot(), _snapshot(overwriteEnv=True)]

NAMES = [names.NVIDIA_VISIBLE_DEVICES, "CUDA_DISABLE_CONTROL", "LD_PRELOAD", "ASCEND_VISIBLE_DEVICES", "PASSWORD", ""]
REFERENCE = {"secretKeyRef": {"name": SECRET, "key": SECRET}}
IN_CONTAINERS = {
    "command": [SECRET],
    "args": [SECRET],
    "image": SECRET,
    "env": [{"name": name, "value": SECRET} for name in NAMES] + [{"name": "B", "valueFrom": REFERENCE}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "volumeMounts": [{"name": "v", "mountPath": path, "subPath": SECRET} for path in ("/data", "/tmp/vgpu")],
    "livenessProbe": {"exec": {"command": [SECRET]}},
    "workingDir": SECRET,
    "securityContext": {"privileged": True, "seLinuxOptions": {"user": SECRET}},
}
IN_SPEC = {
    "volumes": [
        {"name": "v", "secret": {"secretName": SECRET}},
        {"name": "v", "nfs": {"server": SECRET, "path": SECRET}},
        {"name": "v", "csi": {"volumeAttributes": {"k": SECRET}}},
        {"name": "v", "hostPath": {"path": "/dev", "type": SECRET}},
    ],
    "imagePullSecrets": [{"name": SECRET}],
    "serviceAccountName": SECRET,
    "hostname": SECRET,
}
IN_ANNOTATIONS = dict.fromkeys(["vault.example.com/token", "password", "kubectl.kubernetes.io/last-applied"], SECRET)


def with_secrets(pod: dict[str, Any]) -> dict[str, Any]:
    pod["spec"] |= IN_SPEC | {"ephemeralContainers": [{"name": "debug"}]}
    pod["metadata"]["annotations"] |= IN_ANNOTATIONS
    pod["metadata"]["managedFields"] = [{"manager": SECRET}]
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in pod["spec"].get(kind, []):
            container.update(IN_CONTAINERS)
    return pod


RULES = {rule.id for rule in (*MUTATIONS, *VALIDATIONS)}
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # the API server silently drops a key with a space or !


def check_annotations(found: Any) -> None:
    """Fails unless the annotations have valid keys and short values."""
    assert all(KEY.fullmatch(key) for key in found)
    assert found.keys() <= {"decision-id", "outcome", "rules"}
    assert re.fullmatch(r"[0-9a-f]{12}", found["decision-id"])
    assert found["outcome"] in ("refused", "repaired", "warned", "allowed")
    rules = found["rules"].split(",") if "rules" in found else []
    assert set(rules) <= RULES
    assert len(rules) == len(set(rules))


def test_the_ids_of_all_rules_fit_into_one_annotation():
    assert len(",".join(sorted(RULES))) < 2048


@given(rich_pods().map(with_secrets), st.sampled_from(SNAPSHOTS))
def test_no_line_and_no_annotation_contains_a_secret(pod: dict[str, Any], snapshot: Any):
    before = {**pod, "spec": {**pod["spec"], "ephemeralContainers": []}}
    requests = [
        request(pod),
        request(pod, before),
        request(pod, before, sub_resource="ephemeralcontainers"),
        request({"spec": {"template": pod}}, group="apps", kind="Deployment"),
    ]
    for admission_request in requests:
        for endpoint in (mutate, validate, review):
            outcome = endpoint(admission_request, snapshot)
            assert SECRET.encode() not in line(Exchange("mutate", 0), admission_request, outcome, snapshot)
            annotations = outcome.answer().audit
            assert SECRET not in str(annotations)
            if outcome.reviewed:
                check_annotations(annotations)


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_a_line_without_secrets_still_has_findings_a_patch_and_the_excerpt(snapshot: Any):
    """Otherwise the test above would pass with empty lines."""
    limits = {names.VGPU_CORES: "150"}
    env = [{"name": name, "value": SECRET} for name in ("LD_PRELOAD", names.NVIDIA_VISIBLE_DEVICES)]
    containers = [{"name": name, "image": SECRET, "env": env} for name in ("train", "side")]
    pod = {"spec": {"containers": [containers[0] | {"resources": {"limits": limits}}, containers[1]]}}
    admission_request = request(pod)
    written = orjson.loads(
        line(Exchange("mutate", 0), admission_request, review(admission_request, snapshot), snapshot)
    )
    assert written["patch"]
    assert {"cores-range", "isolation-env"} <= {finding["rule"] for finding in written["findings"]}
    assert written["request"]["pod"]["spec"]["containers"][0]["env"] == [
        {"name": variable["name"], "value": HIDDEN} for variable in env
    ]
    assert SECRET not in str(written)
