"""`vgpu-webhook manifests`: what deploy/ holds is what it prints, and what it prints follows device config and policy."""

from pathlib import Path

import pytest
import yaml

from certs.binding import bound
from tests.cli.conftest import CONFIG
from webhook.manifests.configurations import configurations
from webhook.names import NVIDIA_GPU
from webhook.policy.policy import default_policy
from webhook.settings.snapshot import default_device_config

SERVICE = "        namespace: {}\n        name: {}\n"
RENDERED = configurations(default_device_config(), default_policy(), all_pods=True)
DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def printed(run):
    """Run the command; the entries by their names."""

    def printed(*options):
        ran = run("manifests", *options)
        assert (ran.code, ran.err) == (0, "")
        return by_name(yaml.safe_load_all(ran.out))

    return printed


def by_name(configurations):
    return {entry["name"].partition(".")[0]: entry for one in configurations for entry in one["webhooks"]}


def annotations(text):
    found = [one["metadata"]["annotations"] for one in yaml.safe_load_all(text)]
    return {key: value for one in found for key, value in one.items()}


def condition(entry, name):
    return next(found["expression"] for found in entry["matchConditions"] if found["name"] == name)


def test_deploy_holds_what_is_printed_by_default(run):
    assert run("manifests").out == (DEPLOY / "base" / "webhook-configurations.yaml").read_text()


def test_the_component_for_all_pods_adds_the_entry_that_is_printed(run, printed):
    component = yaml.safe_load((DEPLOY / "components" / "all-pods" / "hide-devices.yaml").read_text())
    usual, all_pods = printed(), printed("--all-pods")
    assert all_pods == usual | by_name([component])
    assert component["metadata"].keys() == {"name", "annotations"}
    assert annotations(run("manifests", "--all-pods").out) == (
        annotations(run("manifests").out) | component["metadata"]["annotations"]
    )
    assert all_pods["hide-devices"]["failurePolicy"] == "Ignore"


def test_only_the_probe_is_called_before_the_webhook_answers(run, printed):
    """The rules of all other entries are in annotations, from where `python -m certs` takes them."""
    assert {name for name, entry in printed("--all-pods").items() if "rules" in entry} == {"probe"}
    documents = list(yaml.safe_load_all(run("manifests", "--all-pods").out))
    assert [bound(document) for document in documents] == [
        document | {"webhooks": wanted["webhooks"]} for document, wanted in zip(documents, RENDERED, strict=True)
    ]


def test_another_namespace_and_name(run):
    usual = run("manifests").out
    renamed = run("manifests", "-n", "gpu-system", "--name", "gpu-webhook").out
    assert (
        usual.replace(
            SERVICE.format("vgpu-webhook", "vgpu-webhook"), SERVICE.format("gpu-system", "gpu-webhook")
        ).replace("  name: vgpu-webhook\n  labels:", "  name: gpu-webhook\n  labels:")
        == renamed
    )


def test_json_is_one_list_of_the_same(run, printed):
    (document,) = run("manifests", "-o", "json").lines
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    assert by_name(document["items"]) == printed()


def test_the_names_of_the_device_config(printed, write):
    config = {"nvidia": {"resourceCountName": NVIDIA_GPU}, "vnpus": [{"resourceName": "example.org/npu"}]}
    usual, renamed = printed(), printed("--device-config", write("device-config.yaml", config))
    for entry, name in (
        ("repair", "names-a-device"),
        ("pods", "concerns-a-device"),
        ("assignments", "changes-an-assignment"),
        ("ephemeral-containers", "concerns-a-device"),
        ("workloads", "concerns-a-device"),
    ):
        before, after = condition(usual[entry], name), condition(renamed[entry], name)
        for prefix in (NVIDIA_GPU, "example.org/npu"):
            assert (f'startsWith("{prefix}")' in before, f'startsWith("{prefix}")' in after) == (False, True)
        assert 'startsWith("example.org/npu-core")' not in after
        assert 'startsWith("volcano.sh/")' in after


def test_the_usual_npus_need_no_rendering(printed):
    assert printed("--device-config", CONFIG) == printed()


def test_an_old_volcano_reads_the_well_known_names(printed, write):
    config = write("device-config.yaml", {"nvidia": {"resourceCountName": NVIDIA_GPU}})
    policy = write("policy.yaml", {"target": {"volcano": "1.12.0"}})
    assert printed("--device-config", config, "--policy", policy) == printed()


def test_the_trusted_users_of_the_policy(printed, write):
    assignments = printed("--policy", write("policy.yaml", {"trustedUsers": ["joe"]}))["assignments"]
    assert condition(assignments, "is-not-trusted") == '!(request.userInfo.username in ["joe"])'


@pytest.mark.parametrize(("workloads", "sent"), [("off", False), ("warn", True), ("deny", True)])
def test_the_workloads_of_the_policy(printed, write, workloads, sent):
    assert ("workloads" in printed("--policy", write("policy.yaml", {"workloads": workloads}))) is sent


def test_a_config_that_hides_devices_needs_all_pods(run, write):
    config = write("device-config.yaml", {"nvidia": {"overwriteEnv": True}})
    assert "--all-pods" in run("manifests", "--device-config", config).err
    assert run("manifests", "--device-config", config, "--all-pods").err == ""


def test_every_entry_fails_closed_but_those_that_hold_up_other_pods(printed):
    entries = printed("--all-pods")
    open_ones = {name for name, entry in entries.items() if entry["failurePolicy"] != "Fail"}
    assert open_ones == {"workloads", "hide-devices"}
    for entry in entries.values():
        assert entry["timeoutSeconds"] == 5
        assert (entry["sideEffects"], entry["matchPolicy"]) == ("None", "Equivalent")
        assert entry["admissionReviewVersions"] == ["v1", "v1beta1"]
        assert 0 < len(entry["matchConditions"]) <= 64
        mutates = entry["clientConfig"]["service"]["path"] == "/mutate"
        assert entry.get("reinvocationPolicy") == ("IfNeeded" if mutates else None)


def test_a_component_holds_the_repairs_that_are_printed_by_default(run):
    printed = run("manifests", "--net-repair").out
    assert printed == (DEPLOY / "components" / "net-repair" / "policies.yaml").read_text()
    both = list(yaml.safe_load_all(run("manifests", "--net", "static", "--net-repair").out))
    assert both[-2:] == list(yaml.safe_load_all(printed))


@pytest.mark.parametrize(("net", "component"), [("isolation", "net"), ("static", "net-static")])
def test_the_components_hold_the_nets_that_are_printed_by_default(run, net, component):
    assert run("manifests", "--net", net).out == (DEPLOY / "components" / component / "policies.yaml").read_text()


def test_the_net_denies_where_the_policy_does(run, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules: {isolation-env: warn}\nnamespaces: [{match: [team-*], rules: {host-access: deny}}]\n")
    ran = run("manifests", "--net", "isolation", "--failure-policy", "Ignore", "--policy", str(policy))
    assert (ran.code, ran.err) == (0, "")
    found = list(yaml.safe_load_all(ran.out))
    assert [one["kind"] for one in found] == ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] * 3
    assert {one["spec"]["failurePolicy"] for one in found[::2]} == {"Ignore"}
    assert [one["spec"] for one in found[1::2]] == [
        {"policyName": one["metadata"]["name"], "validationActions": ["Deny"]} for one in found[::2]
    ]
    variables = {one["name"]: one["expression"] for one in found[0]["spec"]["variables"]}
    assert variables["host_access"].startswith("!(variables.entry in [0] && ")
    assert "isolation_env" not in variables


@pytest.mark.parametrize("options", [["-n", ""], ["-n", "a/b"], ["--name", "A"]])
def test_names_that_no_object_can_have_are_refused(run, options):
    ran = run("manifests", *options)
    assert (ran.code, ran.out) == (2, "")
    assert f"{options[1]!r} is not a name" in ran.err


@pytest.mark.parametrize("options", [["--failure-policy", "Ignore"], ["--net", "isolation", "--all-pods"]])
def test_options_that_do_not_go_together(run, options):
    ran = run("manifests", *options)
    assert ran.code == 2
    assert "--net" in ran.err
