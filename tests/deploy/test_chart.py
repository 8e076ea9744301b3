"""The Helm chart installs the same objects as the kustomization, and each value does what its comment describes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cases import each_case
from tests.deploy.chart import NAME, VALUES, VERSION, made_files, objects, printed, rendered
from tests.deploy.files import CHART, DEPLOY, OVERLAYS, Json, built, one, parsed, pod_specs
from tests.deploy.test_elsewhere import CLUSTER_WIDE, CONFIGURATIONS
from tests.docs.commands import AS_THE_CHART, PAGES, run
from tests.docs.markdown import Block, blocks
from webhook.cli import serve
from webhook.devices.dialects import DIALECTS
from webhook.manifests.fallback.policies import admission_policies
from webhook.pod import quantity
from webhook.policy.json_schema import json_schema
from webhook.policy.policy import default_policy, parse_policy
from webhook.settings.snapshot import default_device_config

helm = pytest.importorskip("helm_python", reason="there is no Helm library for this platform")

CA = "-----BEGIN CERTIFICATE-----\n…\n"
SECRET = {"certificates": {"source": "secret", "secret": {"name": "team-tls", "caBundle": CA}}}
FALLBACK = (DEPLOY / "components" / "fallback" / "policies.yaml").read_text()
SOME_ENFORCED: Json = {
    "enforcement": "audit",
    "namespaces": [{"match": ["team-a", "team-b"], "enforcement": "enforce"}],
}
EVERYTHING: Json = {key: value for values in VALUES.values() for key, value in values.items()}


def comparable(value: Any) -> Any:
    """Sort lists of named objects by name: kustomize has its own order for what a patch adds."""
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, list):
        named = all(isinstance(one, dict) and "name" in one for one in value)
        return sorted(map(comparable, value), key=lambda one: one["name"]) if named else list(map(comparable, value))
    return value


def by_name(documents: list[Json]) -> dict[tuple[str, str], Json]:
    """All objects except the Namespace: Helm creates it (--create-namespace), and a release cannot contain its own."""
    return {(d["kind"], d["metadata"]["name"]): comparable(d) for d in documents if d["kind"] != "Namespace"}


def entries(documents: list[Json]) -> dict[str, Json]:
    return {
        entry["name"].partition(".")[0]: entry for kind in CONFIGURATIONS for entry in one(documents, kind)["webhooks"]
    }


# --- the same as the kustomization ----------------------------------------------------------------------------------


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda overlay: overlay.name)
def test_a_release_has_the_objects_of_the_overlay(overlay: Path):
    released, expected = by_name(objects(VALUES[overlay.name])), by_name(built(overlay))
    assert released.keys() == expected.keys()
    for name, document in expected.items():
        assert released[name] == document, name


def test_generated_files_are_up_to_date():
    outdated = [path for path, text in made_files() if path.read_text() != text]
    assert outdated == [], "make manifests writes them"


@pytest.mark.parametrize("values", [{}, EVERYTHING, SECRET], ids=["defaults", "everything", "secret"])
def test_helm_lint_finds_nothing(values: Json):
    report = helm.lint(CHART, values, strict=True, namespace="elsewhere")
    assert [message for message in report["messages"] if message["severity"] > 1] == []


def test_the_package_contains_the_files_that_the_directory_links_to(tmp_path: Path):
    with helm.Chart.load(helm.package(CHART, destination=tmp_path)) as packaged:
        texts = packaged.render(EVERYTHING, name=NAME, namespace="elsewhere")
    shown = {path.removeprefix("vgpu-webhook/templates/"): text for path, text in texts.items()}
    assert shown == rendered(EVERYTHING, "elsewhere")


# --- versions -------------------------------------------------------------------------------------------------------


def test_the_version_comes_from_pyproject():
    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (metadata["version"], metadata["appVersion"]) == (VERSION, VERSION), "make manifests writes it"
    images = {
        container["image"]
        for documents in (objects(EVERYTHING), built(DEPLOY / "overlays" / "console"))
        for pod in pod_specs(documents).values()
        for container in pod["containers"]
    }
    assert images == {f"vgpu-webhook:{VERSION}"}


# --- another namespace ------------------------------------------------------------------------------------------------


def test_all_objects_are_in_the_namespace_of_the_release():
    found = objects(EVERYTHING, "gpu-system")
    assert {d["metadata"].get("namespace") for d in found if d["kind"] not in CLUSTER_WIDE} == {"gpu-system"}
    assert {e["clientConfig"]["service"]["namespace"] for e in entries(found).values()} == {"gpu-system"}
    subjects = {subject["namespace"] for d in found for subject in d.get("subjects", [])}
    assert subjects == {"gpu-system"}
    certificate = one(found, "Certificate")
    assert certificate["spec"]["dnsNames"][0] == "vgpu-webhook.gpu-system.svc"
    for kind in CONFIGURATIONS:
        annotations = one(found, kind)["metadata"]["annotations"]
        assert annotations["cert-manager.io/inject-ca-from"] == "gpu-system/vgpu-webhook"


def test_each_upgrade_has_a_new_job():
    """A Job is immutable, and each upgrade may change the rules that it copies into the configurations."""
    jobs = [
        [d["metadata"]["name"] for d in objects({}, revision=revision, is_upgrade=revision > 1) if d["kind"] == "Job"]
        for revision in (1, 2, 3)
    ]
    assert jobs == [["vgpu-webhook-certs"], ["vgpu-webhook-certs-2"], ["vgpu-webhook-certs-3"]]


# --- values ---------------------------------------------------------------------------------------------------------


def undocumented(schema: Json, values: Json, path: str = "") -> Iterator[str]:
    """The values of a schema that values.yaml does not show; the schema itself refuses the reverse."""
    for key, property_schema in schema["properties"].items():
        if key not in values:
            yield path + key
        elif values[key] and "properties" in property_schema:
            yield from undocumented(property_schema, values[key], f"{path}{key}.")


def test_values_yaml_shows_every_value_of_the_schema():
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    for_parents = ["global"]  # Helm sets it in a chart that others include
    assert list(undocumented(schema, yaml.safe_load((CHART / "values.yaml").read_text()))) == for_parents


@pytest.mark.parametrize(
    "values",
    [
        {"certificates": {"source": "magic"}},
        {"certificates": {"source": "secret"}},
        {"certificates": {"source": "secret", "secret": {"name": "tls", "caBundle": "no PEM"}}},
        {"replicas": 0},
        {"replica": 3},
        {"enforcement": "off"},
        {"failurePolicy": "fail"},
        {"policy": {"rules": {"card-cuont": "warn"}}},
        {"policy": {"namespaces": [{"matches": ["a"]}]}},
        {"policy": ["enforcement: warn"]},
        {"image": {"digest": "latest"}},
        {"commonLabels": {"team": 1}},
        {"commonLabels": {"app.kubernetes.io/part-of": "platform"}},
        {"podLabels": {"app.kubernetes.io/name": "other"}},
        {"port": 443},
        {"timeoutSeconds": 31},
        {"logFormat": "yaml"},
        {"extraArgs": ["serve"]},
        {"extraEnv": [{"value": "a"}]},
        {"extraEnv": [{"name": "VGPU_WEBHOOK_STORE", "value": "a"}]},
        {"podSecurityContext": {"runAsUser": 0}},
        {"affinity": {"nodeSelectorTerms": []}},
        {"topologySpreadConstraints": [{"topologyKey": "rack"}]},
        {"excludedNamespaceLabels": {"team": "infra"}},
        {"networkPolicy": {"egress": [53]}},
    ],
    ids=json.dumps,
)
def test_an_invalid_value_is_refused(values: Json):
    with pytest.raises(helm.HelmValuesError):
        rendered(values)


def test_the_image_has_the_repository_and_the_tag_or_digest_of_the_values():
    image = {"repository": "registry.example/gpu/webhook", "pullSecrets": [{"name": "key"}], "pullPolicy": "Always"}
    digest = "sha256:" + 64 * "0"
    for more, reference in (
        ({}, f":{VERSION}"),
        ({"tag": "edge"}, ":edge"),
        ({"tag": "edge", "digest": digest}, f"@{digest}"),
    ):
        for pod in pod_specs(objects(EVERYTHING | {"image": image | more})).values():
            assert pod["imagePullSecrets"] == [{"name": "key"}]
            images = {(c["image"], c["imagePullPolicy"]) for c in pod["containers"]}
            assert images == {(f"registry.example/gpu/webhook{reference}", "Always")}


@pytest.mark.parametrize("available", [False, True])
@pytest.mark.parametrize(
    ("given", "of_replicas", "of_the_job"),
    [("gpu", "gpu", "gpu"), ("none", None, None), ("", "system-cluster-critical", None)],  # a job may precede the quota
)
def test_the_priority_class_has_a_quota(available: bool, given: str, of_replicas: str | None, of_the_job: str | None):
    found = objects({"priorityClassName": given, "highAvailability": available})
    pods = pod_specs(found)
    assert [pods[kind].get("priorityClassName") for kind in ("Deployment", "Job", "CronJob")] == [
        of_replicas,
        of_the_job,
        of_the_job,
    ]
    quotas = [d["spec"]["scopeSelector"]["matchExpressions"] for d in found if d["kind"] == "ResourceQuota"]
    assert [selector["values"] for (selector,) in quotas] == [[of_replicas]] * (of_replicas is not None)


@pytest.mark.parametrize("available", [False, True])
def test_replicas_and_resources_are_set(available: bool):
    values = {"replicas": 5, "resources": {"requests": {"cpu": "2"}}, "highAvailability": available}
    deployment = one(objects(values), "Deployment")["spec"]
    assert deployment["replicas"] == 5
    assert deployment["template"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}


def test_a_secret_of_the_user_replaces_the_managed_certificate():
    found = objects(EVERYTHING | SECRET)
    pod = one(found, "Deployment")["spec"]["template"]["spec"]
    secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
    assert secrets == {"tls": "team-tls", "certificate": "team-tls"}
    assert one(found, "ServiceMonitor")["spec"]["endpoints"][0]["tlsConfig"]["ca"]["secret"]["name"] == "team-tls"
    bundles = {entry["clientConfig"]["caBundle"] for entry in entries(found).values()}
    assert bundles == {"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCuKApgo="}
    jobs = [pod_specs([one(found, kind, "vgpu-webhook-certs")])[kind] for kind in ("Job", "CronJob")]
    assert {job["containers"][0]["args"][0] for job in jobs} == {"bind"}
    assert not [rule for d in found for rule in d.get("rules") or [] if "secrets" in rule.get("resources", [])]


def test_cert_manager_can_use_another_issuer():
    issuer = {"kind": "ClusterIssuer", "name": "company"}
    found = objects({"certificates": {"source": "cert-manager", "issuerRef": issuer}})
    assert one(found, "Certificate")["spec"]["issuerRef"] == issuer
    assert not [d for d in found if d["kind"] == "Issuer"]


def test_the_failure_policy_ignore_applies_to_all_entries():
    default, ignoring = entries(objects(EVERYTHING)), entries(objects(EVERYTHING | {"failurePolicy": "Ignore"}))
    assert {name for name, entry in default.items() if entry["failurePolicy"] == "Ignore"} == {
        "dialects",
        "exposed",
        "hide-devices",
        "large",
        "pod-groups",
        "repair-large",
        "workloads",
        *BY_NAME[1:],
        "limits",
    }
    assert {entry["failurePolicy"] for entry in ignoring.values()} == {"Ignore"}


BY_NAME = ("probe", "policy", "settings")  # entries for ConfigMaps in namespaces that are excluded, too


def sent_from(found: Json) -> dict[str, list[str]]:
    """The namespaces from which settings are sent, by entry."""
    assert "namespaceSelector" not in found["probe"]
    selectors = {name: found[name]["namespaceSelector"]["matchExpressions"] for name in BY_NAME[1:]}
    return {name: only["values"] for name, (only,) in selectors.items() if only["operator"] == "In"}


def test_excluded_namespaces_apply_to_all_entries_except_those_for_config_maps():
    """kube-system stays excluded: a cluster whose webhook is away must be able to start."""
    found = entries(objects(EVERYTHING | {"excludedNamespaces": ["infra", "kube-system"]}))
    selectors = [entry["namespaceSelector"]["matchExpressions"] for name, entry in found.items() if name not in BY_NAME]
    expected = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "infra"]}
    assert selectors == [[expected]] * len(selectors)
    assert sent_from(found) == {"policy": ["vgpu-webhook"], "settings": ["kube-system", "volcano-system"]}


def translating(*dialects: str, in_namespace: bool = False) -> Json:
    """A policy that translates some dialects."""
    uses = {"dialects": dict.fromkeys(dialects, "translate")}
    return {"namespaces": [{"match": ["a"], **uses}]} if in_namespace else uses


SOME_DIALECTS: list[tuple[str, ...]] = [(), ("hami",), ("aliyun", "kai")]
MOST = tuple(DIALECTS)


@pytest.mark.parametrize(
    ("dialects", "policy"),
    [
        *[(ids, translating(*ids)) for ids in SOME_DIALECTS],
        (MOST, translating(*MOST, in_namespace=True)),
        (MOST, yaml.safe_dump(translating(*MOST))),
        (MOST, yaml.safe_dump(translating(*MOST, in_namespace=True))),
    ],
)
def test_the_webhook_configurations_send_what_the_policy_translates(dialects: tuple[str, ...], policy: Json | str):
    found = objects({"policy": policy})
    for one_printed in printed(dict.fromkeys(dialects, "translate")):
        installed = one(found, one_printed["kind"])
        assert installed["webhooks"] == one_printed["webhooks"]
        assert installed["metadata"]["annotations"] == one_printed["metadata"]["annotations"]


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    ("policy", "denied"),
    [({}, False), ({"visible-devices": "warn"}, False), ({"visible-devices": "deny"}, True)],
)
def test_pods_that_expose_a_device_wait_for_the_webhook_if_the_policy_refuses_them(
    policy: Json, denied: bool, failure_policy: str
):
    expected = failure_policy if denied else "Ignore"
    for each in ({"rules": policy}, {"namespaces": [{"match": ["a"], "rules": policy}]}):
        found = entries(objects({"policy": each, "failurePolicy": failure_policy}))
        assert found["exposed"]["failurePolicy"] == expected


def test_webhook_configurations_can_be_replaced():
    printed = (DEPLOY / "base" / "webhook-configurations.yaml").read_text().replace("volcano.sh/", "gpu.example/")
    found = objects({"webhookConfigurations": printed})
    assert '"gpu.example/"' in entries(found)["repair"]["matchConditions"][0]["expression"]


@pytest.mark.parametrize("key", ["webhookConfigurations", "fallbackPolicies"])
@pytest.mark.parametrize("text", ["# a command that failed\n", "x", "kind: List\nitems: []\n"])
def test_what_replaces_printed_objects_has_all_of_them(key: str, text: str):
    """Else an upgrade would remove the webhook, in silence."""
    with pytest.raises(helm.HelmRenderError, match=f"the value {key} has no "):
        objects({"fallback": True, key: text})


def test_the_fallback_policies_can_be_replaced():
    values = {
        "fallback": True,
        "fallbackPolicies": FALLBACK.replace("volcano.sh/", "gpu.example/"),
        "excludedNamespaces": ["infra"],
        "commonLabels": {"team": "a"},
    }
    found = [d for d in objects(values) if d["kind"] == "ValidatingAdmissionPolicy"]
    assert [d["metadata"]["name"].removeprefix("vgpu-webhook-") for d in found] == [
        "pods",
        "assignments",
        "bindings",
        "ephemeral-containers",
    ]
    assert {d["metadata"]["labels"]["team"] for d in found} == {"a"}
    for document in found:
        assert "gpu.example/" in str(document["spec"]["matchConditions"])
        constraints = document["spec"]["matchConstraints"]
        assert constraints["namespaceSelector"]["matchExpressions"][0]["values"] == ["kube-system", "infra"]


@pytest.mark.parametrize(
    ("values", "action"),
    [
        ({}, "Deny"),
        ({"enforcement": "warn"}, "Warn"),
        ({"enforcement": "audit"}, "Audit"),
        ({"policy": "enforcement: audit"}, "Audit"),
        ({"policy": {"enforcement": "warn", "fleet": {"autoscaled": True}, "namespaces": []}}, "Warn"),
        ({"enforcement": "audit", "fallbackPolicies": FALLBACK}, "Audit"),
        ({"policy": SOME_ENFORCED, "fallbackPolicies": FALLBACK}, "Deny"),
    ],
)
def test_the_fallback_policies_do_no_more_than_the_enforcement(values: Json, action: str):
    found = objects(values | {"fallback": True})
    bindings = [d["spec"] for d in found if d["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert [spec["validationActions"] for spec in bindings] == [[action]] * 4


# For each key of the policy but `enforcement`, a value that is not the default: which the fallback policies follow, or not.
EXCEPTION = {
    "namespace": "a",
    "names": ["b"],
    "rules": ["host-access"],
    "until": "2026-12-31",
    "reason": "c",
    "owner": "d",
}
WITHOUT_EFFECT: Json = {
    "schedulerName": "gpu",
    "schedulerNames": ["volcano", "gpu"],
    "toleration": None,
    "target": {"volcano": "1.13.0"},
    "percentage": {"mixedCards": "deny"},
    "memoryAboveCard": "deny",
    "repairs": {"toleration": "off"},
    "workloads": "off",
    "workloadKinds": [{"group": "a.b", "version": "v1", "kind": "X", "templates": ["spec.template"]}],
    "fleet": {"autoscaled": True},
    "dialects": {"hami": "translate"},
    "helpURL": "https://gpu.example.org",
}
NOT_FOLLOWED: Json = {
    "isolationEnv": {"allocators": "deny"},
    "rules": {"host-access": "deny"},
    "namespaces": [{"match": ["a"], "exempt": True}],
    "trustedUsers": ["joe"],
    "exceptions": [EXCEPTION],
}


@pytest.mark.parametrize("key", NOT_FOLLOWED)
def test_a_policy_that_the_fallback_policies_of_the_chart_do_not_follow_is_refused(key: str):
    values = {"fallback": True, "policy": {key: NOT_FOLLOWED[key]}}
    with pytest.raises(helm.HelmRenderError, match="which the fallback policies of the chart do not follow"):
        objects(values)
    assert objects(values | {"fallbackPolicies": FALLBACK})


def test_the_other_keys_of_a_policy_change_no_fallback_policy_and_are_accepted():
    assert json_schema()["properties"].keys() == {*WITHOUT_EFFECT, *NOT_FOLLOWED, "enforcement"}
    policy = parse_policy(WITHOUT_EFFECT, "policy")
    config = default_device_config()
    assert admission_policies(config, policy) == admission_policies(config, default_policy())
    assert objects({"fallback": True, "policy": WITHOUT_EFFECT})


def test_an_enforcement_that_the_printed_fallback_policies_do_not_follow_is_refused():
    policy = {"namespaces": SOME_ENFORCED["namespaces"]}
    with pytest.raises(helm.HelmRenderError, match="set enforcement in the policy"):
        objects({"fallback": True, "fallbackPolicies": FALLBACK, "policy": policy, "enforcement": "audit"})


def test_the_policy_and_the_enforcement_are_merged():
    def policy(**values: Any) -> Any:
        return yaml.safe_load(one(objects(values), "ConfigMap", "vgpu-webhook-policy")["data"]["policy.yaml"])

    assert policy(enforcement="warn") == {"namespaces": [], "enforcement": "warn"}
    for gpu in ("schedulerName: gpu\n", {"schedulerName": "gpu"}):
        assert policy(policy=gpu) == {"schedulerName": "gpu"}
        assert policy(policy=gpu, enforcement="audit") == {"schedulerName": "gpu", "enforcement": "audit"}
    for flow in ("{schedulerName: gpu}", "schedulerName: gpu\n...\n", "  # indented\nschedulerName: gpu"):
        assert policy(policy=flow, enforcement="audit") == {"schedulerName": "gpu", "enforcement": "audit"}
        assert policy(policy=flow) == {"schedulerName": "gpu"}
    assert policy(policy="{}", enforcement="audit") == {"enforcement": "audit"}
    assert policy(policy={"toleration": None}) == {"toleration": None}
    for warn in ("enforcement: warn", {"enforcement": "warn"}):
        with pytest.raises(helm.HelmRenderError, match="set enforcement there"):
            policy(policy=warn, enforcement="audit")
    with pytest.raises(helm.HelmRenderError, match="not YAML"):
        policy(policy="enforcement: [")
    for empty in ("", " \n", "# only\n# comments\n", "---\nnull\n"):
        with pytest.raises(helm.HelmRenderError, match="an empty text"):
            policy(policy=empty)
    assert policy(policy="{} # the defaults") == {}


@pytest.mark.parametrize(
    ("policy", "read"),
    [
        (None, True),
        ("rules: {quota-memory: off}", False),
        ({"rules": {"quota-memory": False}, "namespaces": [{"match": ["a"]}]}, False),
        ({"rules": {"quota-memory": "off"}, "namespaces": [{"match": ["a"], "rules": {"quota-memory": "warn"}}]}, True),
        ({"namespaces": [{"match": ["a"], "rules": {"quota-memory": "off"}}]}, True),
    ],
)
def test_quotas_may_be_read_only_if_the_policy_has_their_rule_on(policy: Any, read: bool):
    rule = one(objects({"policy": policy}), "ClusterRole")["rules"][0]
    assert rule["resources"] == ["nodes", "resourcequotas"][: 1 + read]


def test_the_notes_have_the_enforcement_of_the_policy():
    enforcing, recording, some = (
        rendered(values)["NOTES.txt"]
        for values in ({}, {"policy": "enforcement: audit"}, {"policy": SOME_ENFORCED, "enforcement": ""})
    )
    assert "Enforcement enforce: it repairs and refuses pods.\n" in enforcing
    assert "upgrade with --set enforcement=warn." in enforcing
    assert "Enforcement audit: it admits pods unchanged and only records" in recording
    assert "write enforcement: enforce into the policy." in recording
    assert "In namespaces team-a, team-b, it repairs and refuses pods." in some


def test_the_device_config_can_have_another_name_and_namespaces():
    found = objects(EVERYTHING | {"deviceConfig": {"name": "gpus", "namespaces": ["infra", "gpu"]}})
    expected = ["--device-config-map=gpus", "--device-config-namespace=infra", "--device-config-namespace=gpu"]
    for container in pod_specs(found)["Deployment"]["containers"]:
        at = container["args"].index(expected[0])
        assert container["args"][at : at + 3] == expected
    (rule,) = [rule for rule in one(found, "ClusterRole")["rules"] if rule["resources"] == ["configmaps"]]
    assert rule["resourceNames"] == ["gpus", "volcano-scheduler-configmap"]
    assert sent_from(entries(found)) == {"policy": ["vgpu-webhook"], "settings": ["volcano-system", "infra", "gpu"]}
    (condition,) = entries(found)["settings"]["matchConditions"]
    assert 'in ["volcano-scheduler-configmap", "gpus"]' in condition["expression"]


def test_labels_and_annotations_are_added():
    common = {"commonLabels": {"team": "gpu"}, "commonAnnotations": {"owner": "infra"}}
    pods = {"podLabels": {"mesh": "off"}, "podAnnotations": {"scrape": "no"}}
    found = objects(EVERYTHING | common | pods | {"monitoring": {"enabled": True, "labels": {"release": "prometheus"}}})
    for document in found:
        metadata = document["metadata"]
        assert (metadata["labels"]["team"], metadata["annotations"]["owner"]) == ("gpu", "infra"), document["kind"]
        watched = document["kind"] in ("ServiceMonitor", "PodMonitor", "PrometheusRule")
        assert metadata["labels"].get("release") == ("prometheus" if watched else None), document["kind"]
    template = one(found, "Deployment")["spec"]["template"]["metadata"]
    assert template["labels"].items() >= {"team": "gpu", "mesh": "off"}.items()
    assert template["annotations"].items() >= {"owner": "infra", "scrape": "no"}.items()


def test_metrics_without_a_password_are_open_to_nobody_who_is_not_named():
    with pytest.raises(helm.HelmError, match="name who may"):
        objects({"store": {"enabled": True}, "networkPolicy": {"metricsFrom": None}})


def test_the_network_policy_can_be_left_out():
    assert not [d for d in objects({"networkPolicy": {"enabled": False}}) if d["kind"] == "NetworkPolicy"]


def test_nothing_is_rendered_as_null():
    assert not [text for text in rendered(EVERYTHING | SECRET).values() if ": null" in text or "<nil>" in text]


# --- what another kind of cluster needs -------------------------------------------------------------------------------


def all_pods(found: list[Json]) -> list[Json]:
    """The pod specs of all workloads, of which there may be several of a kind."""
    return [spec for document in found for spec in pod_specs([document]).values()]


def containers(found: list[Json]) -> list[Json]:
    return [c for pod in all_pods(found) for c in [*pod.get("initContainers", []), *pod["containers"]]]


def test_every_pod_may_run_as_the_user_that_the_cluster_chooses():
    chosen = objects(EVERYTHING | {"podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None}})
    free = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert [pod["securityContext"] for pod in all_pods(chosen)] == [free] * len(all_pods(objects(EVERYTHING)))
    other = all_pods(objects(EVERYTHING | {"podSecurityContext": {"runAsUser": 1000740000}}))
    assert {pod["securityContext"]["runAsUser"] for pod in other} == {1000740000}
    assert {pod["securityContext"]["runAsGroup"] for pod in other} == {65532}


def test_more_variables_are_those_of_every_container_and_replace_none():
    before, after = (
        containers(objects(EVERYTHING | more)) for more in ({}, {"extraEnv": [{"name": "A", "value": "b"}]})
    )
    assert [c["env"] for c in after] == [[*c.get("env", []), {"name": "A", "value": "b"}] for c in before]
    assert len(after) > 6


def test_every_account_and_the_job_alone_have_their_annotations():
    common = {"commonAnnotations": {"a": "b"}}
    found = objects(
        EVERYTHING | common | {"serviceAccountAnnotations": {"role": "gpu"}, "jobAnnotations": {"hook": "Sync"}}
    )
    annotated = [(d["kind"], d["metadata"]["annotations"]) for d in found if d["kind"] in ("ServiceAccount", "Job")]
    assert annotated.count(("ServiceAccount", {"role": "gpu", "a": "b"})) == 5
    assert len(annotated) == 6
    assert [d["kind"] for d in found if "hook" in d["metadata"]["annotations"]] == ["Job"]


def webhook(found: list[Json]) -> Json:
    return one(found, "Deployment")["spec"]["template"]["spec"]


def test_the_arguments_of_the_webhook_are_options_of_serve_and_its_port_is_open():
    found = objects({"logFormat": "json", "logLevel": "debug", "port": 10250, "extraArgs": ["--audit-max-bytes=1Gi"]})
    (container,) = webhook(found)["containers"]
    options = parsed(serve.command, container["args"][1:])
    assert (options.log_format, options.log_level.lower(), options.audit_max_bytes) == ("json", "debug", 1 << 30)
    assert str(options.bind) == "[::]:10250"
    assert container["ports"] == [{"name": "https", "containerPort": 10250}]
    assert one(found, "NetworkPolicy")["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 10250}]}]


def test_on_the_network_of_the_host_one_replica_ends_before_the_next_takes_its_port():
    deployment = one(objects({"hostNetwork": True}), "Deployment")["spec"]
    pod = deployment["template"]["spec"]
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    pods = all_pods(objects(EVERYTHING | {"console": {}, "hostNetwork": True}))
    assert ["hostNetwork" in each for each in pods].count(True) == 1


@each_case(
    ("values", "message"),
    [
        ({"port": 8444, "store": {"enabled": True}}, "port 8444 is that of another container"),
        ({"port": 8480, "console": {"enabled": True}}, "port 8480 is that of another container"),
        ({"extraArgs": ["--audit-max-bytes=0"], "console": {"enabled": True}}, "evicts a replica"),
        ({"extraArgs": ["--audit-max-bytes=1.5Gi"], "store": {"enabled": True}}, "evicts a replica"),
    ],
)
def test_values_with_which_a_replica_could_not_run_are_refused(values: Json, message: str):
    with pytest.raises(helm.HelmRenderError, match=message):
        objects(values)
    for part in ({"console": {}, "store": {}}, {"port": 8443, "extraArgs": []}):
        assert objects(values | part)


@each_case(("size", "volume"), [("256Mi", "1Gi"), ("1Gi", "4Gi"), ("40000", "160000"), ("5M", "20M")])
@each_case("values", [{"console": {"enabled": True}}, {"store": {"enabled": True}}])
def test_the_volume_has_room_for_two_full_logs_twice(values: Json, size: str, volume: str):
    (found,) = [
        each["emptyDir"]["sizeLimit"]
        for each in webhook(objects(values | {"extraArgs": [f"--audit-max-bytes={size}"]}))["volumes"]
        if each["name"] == "audit"
    ]
    assert quantity.parse(found) == quantity.parse(volume) == 4 * quantity.parse(size)


def test_a_console_is_refused_on_the_network_of_the_host():
    with pytest.raises(helm.HelmRenderError, match="everybody on the node would reach the console"):
        objects({"hostNetwork": True, "console": {"enabled": True}})


def test_the_replicas_are_spread_as_the_values_say_and_the_jobs_are_not():
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    spread = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}]
    for available in (False, True):
        found = objects({"affinity": affinity, "topologySpreadConstraints": spread, "highAvailability": available})
        assert (webhook(found)["affinity"], webhook(found)["topologySpreadConstraints"]) == (affinity, spread)
        assert "affinity" not in pod_specs(found)["Job"], "one that keeps away from every replica would find no node"
    assert webhook(objects({"topologySpreadConstraints": []}))["topologySpreadConstraints"] == []


def test_the_network_policy_lets_out_what_the_values_add():
    ways = [{"ports": [{"protocol": "TCP", "port": 16443}]}]
    usual, more = (
        one(objects(values), "NetworkPolicy")["spec"]["egress"] for values in ({}, {"networkPolicy": {"egress": ways}})
    )
    assert more == usual + ways


def test_every_entry_has_the_timeout():
    assert {e["timeoutSeconds"] for e in entries(objects(EVERYTHING | {"timeoutSeconds": 30})).values()} == {30}
    assert {e["timeoutSeconds"] for e in entries(objects(EVERYTHING)).values()} == {5}


def test_namespaces_with_an_excluded_label_are_sent_by_no_entry_and_held_by_no_fallback_policy():
    found = objects(EVERYTHING | {"excludedNamespaceLabels": {"team": ["infra", "net"], "a.b/none": []}})
    expected = [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
        {"key": "a.b/none", "operator": "DoesNotExist"},
        {"key": "team", "operator": "NotIn", "values": ["infra", "net"]},
    ]
    selectors = [e["namespaceSelector"] for name, e in entries(found).items() if name not in BY_NAME]
    selectors += [
        d["spec"]["matchConstraints"]["namespaceSelector"] for d in found if d["kind"] == "ValidatingAdmissionPolicy"
    ]
    assert len(selectors) > 10
    assert [s["matchExpressions"] for s in selectors] == [expected] * len(selectors)
    assert sent_from(entries(found)) == {"policy": ["vgpu-webhook"], "settings": ["kube-system", "volcano-system"]}


@pytest.mark.parametrize(
    "block",
    [b for page in PAGES for b in blocks(page.read_text()) if b.comment.startswith(AS_THE_CHART)],
    ids=lambda block: block.comment[len(AS_THE_CHART) :][:40],
)
def test_a_documented_patch_changes_what_the_value_of_the_chart_changes(block: Block, tmp_path: Path):
    deploy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, deploy)
    kustomization: Json = {"resources": ["deploy"]}
    if block.language == "sh":
        done = run(block.text, tmp_path)
        assert done.returncode == 0, done.stderr
        shutil.copy(tmp_path / "webhook-configurations.yaml", deploy / "base")
    else:
        kustomization |= yaml.safe_load(block.text)
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    released, patched = by_name(objects(yaml.safe_load(block.comment[len(AS_THE_CHART) :]))), by_name(built(tmp_path))
    assert released.keys() == patched.keys()
    for name, document in patched.items():
        assert released[name] == document, name
    assert released != by_name(objects())
