"""`vgpu-webhook manifests` prints what deploy/ contains, and its output follows the device config and the policy."""

from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import CONFIG
from tests.deploy.files import bound
from webhook.manifests.configurations import STATIC_SUFFIX, configurations
from webhook.names import NVIDIA_GPU
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import default_device_config

SERVICE = "        namespace: {}\n        name: {}\n"
RENDERED = configurations(default_device_config(), default_policy(), all_pods=True)
DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def printed(run):
    """Run the command; returns the webhook entries by name."""

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


def condition(entry, name):
    return next(each["expression"] for each in entry["matchConditions"] if each["name"] == name)


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
    """The rules of all other entries are in annotations; `python -m certs` moves them into the entries."""
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


def test_json_is_one_list_of_the_same_objects(run, printed):
    (document,) = run("manifests", "-o", "json").lines
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    assert by_name(document["items"]) == printed()


def test_the_names_of_the_device_config(printed, write):
    config = {"nvidia": {"resourceCountName": NVIDIA_GPU}, "vnpus": [{"resourceName": "example.org/npu"}]}
    default, renamed = printed(), printed("--device-config", write("device-config.yaml", config))
    for entry, name in (
        ("repair", "names-a-device"),
        ("pods", "claims-a-device"),
        ("ephemeral-containers", "names-a-device"),
        ("exposed", "exposes-a-device"),
        ("workloads", "concerns-a-device"),
    ):
        before, after = condition(default[entry], name), condition(renamed[entry], name)
        for prefix in (NVIDIA_GPU, "example.org/npu"):
            assert (f'startsWith("{prefix}")' in before, f'startsWith("{prefix}")' in after) == (False, True)
        assert 'startsWith("example.org/npu-core")' not in after
        assert 'startsWith("volcano.sh/")' in after
    assert "example.org/npu" in condition(renamed["assignments"], "changes-an-assignment")


def test_the_default_npus_do_not_change_the_output(printed):
    assert printed("--device-config", CONFIG) == printed()


def test_the_trusted_users_of_the_policy(printed, write):
    found = printed("--policy", write("policy.yaml", {"trustedUsers": ["joe"]}))
    for entry in ("assignments", "bindings"):
        assert condition(found[entry], "is-not-trusted") == '!(request.userInfo.username in ["joe"])'


@pytest.mark.parametrize(
    ("policy", "failure_policy"),
    [
        ({}, "Ignore"),
        ({"rules": {"visible-devices": "deny"}}, "Fail"),
        ({"namespaces": [{"match": ["team-*"], "rules": {"visible-devices": "deny"}}]}, "Fail"),
    ],
)
def test_pods_that_expose_a_device_wait_for_the_webhook_only_if_the_policy_refuses_them(
    printed, write, policy, failure_policy
):
    assert printed("--policy", write("policy.yaml", policy))["exposed"]["failurePolicy"] == failure_policy


@pytest.mark.parametrize(("workloads", "present"), [("off", False), ("warn", True), ("deny", True)])
def test_the_workloads_of_the_policy(printed, write, workloads, present):
    assert ("workloads" in printed("--policy", write("policy.yaml", {"workloads": workloads}))) is present


def test_a_config_that_hides_devices_needs_all_pods(run, write):
    config = write("device-config.yaml", {"nvidia": {"overwriteEnv": True}})
    assert "--all-pods" in run("manifests", "--device-config", config).err
    assert run("manifests", "--device-config", config, "--all-pods").err == ""


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


def test_the_fallback_policies_deny_where_the_policy_denies(run, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules: {isolation-env: warn}\nnamespaces: [{match: [team-*], rules: {host-access: deny}}]\n")
    result = run("manifests", "--fallback", "--failure-policy", "Ignore", "--policy", str(policy))
    assert (result.code, result.err) == (0, "")
    documents = list(yaml.safe_load_all(result.out))
    assert [document["kind"] for document in documents] == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ] * 4
    assert {document["spec"]["failurePolicy"] for document in documents[::2]} == {"Ignore"}
    assert [document["spec"] for document in documents[1::2]] == [
        {"policyName": document["metadata"]["name"], "validationActions": ["Deny"]} for document in documents[::2]
    ]
    variables = {document["name"]: document["expression"] for document in documents[0]["spec"]["variables"]}
    assert variables["host_access"].startswith("!(variables.entry in [0] && ")
    assert "isolation_env" not in variables


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


@pytest.mark.parametrize("options", [["--namespace", ""], ["--namespace", "a/b"], ["--name", "A"]])
def test_invalid_object_names_are_refused(run, options):
    result = run("manifests", *options)
    assert (result.code, result.out) == (2, "")
    assert f"{options[1]!r} is not a name" in result.err


@pytest.mark.parametrize("options", [["--failure-policy", "Ignore"], ["--fallback", "--all-pods"], ["--static"]])
def test_options_that_do_not_go_together(run, options):
    result = run("manifests", *options)
    assert result.code == 2
    assert "--fallback" in result.err
