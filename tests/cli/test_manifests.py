"""`vgpu-webhook manifests` prints what deploy/ contains, and its output follows the device config and the policy."""

from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import CONFIG
from tests.deploy.files import bound
from webhook.manifests.configurations import STATIC_SUFFIX, configurations
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import default_device_config

SERVICE = "        namespace: {}\n        name: {}\n"
RENDERED = configurations(default_device_config(), default_policy(), all_pods=True)
DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def printed(run):
    def printed(*options):
        result = run("manifests", *options)
        assert (result.code, result.err) == (0, "")
        return by_name(yaml.safe_load_all(result.out))

    return printed


def by_name(configurations):
    return {entry["name"].partition(".")[0]: entry for document in configurations for entry in document["webhooks"]}


def annotations(text):
    maps = [document["metadata"]["annotations"] for document in yaml.safe_load_all(text)]
    return {key: value for each in maps for key, value in each.items()}


def test_deploy_contains_the_default_output(run):
    assert run("manifests").out == (DEPLOY / "base" / "webhook-configurations.yaml").read_text()


def test_the_all_pods_component_adds_the_printed_entry(run, printed):
    component = yaml.safe_load((DEPLOY / "components" / "all-pods" / "hide-devices.yaml").read_text())
    default, all_pods = printed(), printed("--all-pods")
    assert all_pods == default | by_name([component])
    assert component["metadata"].keys() == {"name", "annotations"}
    assert annotations(run("manifests", "--all-pods").out) == (
        annotations(run("manifests").out) | component["metadata"]["annotations"]
    )
    assert all_pods["hide-devices"]["failurePolicy"] == "Ignore"


def test_only_the_probe_has_rules_before_the_webhook_responds(run, printed):
    """The rules of all other entries are in annotations; `vgpu-webhook certs` moves them into the entries."""
    assert {name for name, entry in printed("--all-pods").items() if "rules" in entry} == {"probe"}
    documents = list(yaml.safe_load_all(run("manifests", "--all-pods").out))
    assert [bound(document) for document in documents] == [
        document | {"webhooks": expected["webhooks"]} for document, expected in zip(documents, RENDERED, strict=True)
    ]


def test_another_namespace_and_name(run):
    default = run("manifests").out
    renamed = run("manifests", "--namespace", "gpu-system", "--name", "gpu-webhook").out
    assert (
        default.replace(SERVICE.format("vgpu-webhook", "vgpu-webhook"), SERVICE.format("gpu-system", "gpu-webhook"))
        .replace("  name: vgpu-webhook\n  labels:", "  name: gpu-webhook\n  labels:")
        .replace("            - vgpu-webhook\n", "            - gpu-system\n")  # from where the policy is sent
        == renamed
    )


def test_the_default_npus_do_not_change_the_output(printed):
    assert printed("--device-config", CONFIG) == printed()


def test_every_entry_fails_closed_except_those_that_could_block_other_pods(printed):
    entries = printed("--all-pods")
    fail_open = {name for name, entry in entries.items() if entry["failurePolicy"] != "Fail"}
    large = {"repair-large", "large"}
    warned = {"workloads", "exposed", "dialects"}
    assert fail_open == large | warned | {"pod-groups", "hide-devices", "policy", "settings", "limits"}
    for entry in entries.values():
        assert entry["timeoutSeconds"] == 5
        assert (entry["sideEffects"], entry["matchPolicy"]) == ("None", "Equivalent")
        assert entry["admissionReviewVersions"] == ["v1", "v1beta1"]
        assert 0 < len(entry["matchConditions"]) <= 64
        mutates = entry["clientConfig"]["service"]["path"] == "/mutate"
        assert entry.get("reinvocationPolicy") == ("IfNeeded" if mutates else None)


def test_the_fallback_component_contains_the_default_output(run):
    assert run("manifests", "--fallback").out == (DEPLOY / "components" / "fallback" / "policies.yaml").read_text()


@pytest.mark.parametrize(("enforcement", "action"), [("warn", "Warn"), ("audit", "Audit")])
def test_the_fallback_policies_only_warn_or_record_where_the_policy_enforces_nowhere(run, write, enforcement, action):
    policy = write("policy.yaml", {"enforcement": enforcement})
    softened = run("manifests", "--fallback", "--policy", policy).out
    assert softened == run("manifests", "--fallback").out.replace("- Deny", f"- {action}")
    some = {"enforcement": enforcement, "namespaces": [{"match": ["a"], "enforcement": "enforce"}]}
    assert "- Deny" in run("manifests", "--fallback", "--policy", write("policy.yaml", some)).out


def test_static_files_differ_in_their_names_only(run):
    printed = run("manifests", "--fallback", "--static").out
    assert printed.startswith("---\n#")  # a comment above the first document would be a document without a kind
    documents = list(yaml.safe_load_all(printed))
    assert printed.replace(STATIC_SUFFIX, "") == run("manifests", "--fallback").out
    for policy, binding in zip(documents[::2], documents[1::2], strict=True):
        name = policy["metadata"]["name"]
        assert name.endswith(".static.k8s.io")
        assert (binding["metadata"]["name"], binding["spec"]["policyName"]) == (name, name)
        assert "paramKind" not in policy["spec"]
        assert "paramRef" not in binding["spec"]
