"""The Helm chart installs the same objects as the kustomization, and each value does what its comment describes."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.chart import NAME, VALUES, VERSION, made_files, objects, printed, rendered
from tests.deploy.files import CHART, DEPLOY, OVERLAYS, Json, built, one, parsed, pod_specs
from tests.deploy.test_elsewhere import CLUSTER_WIDE, CONFIGURATIONS
from tests.docs.commands import AS_THE_CHART, PAGES, run
from tests.docs.markdown import Block, blocks
from webhook.cli import serve
from webhook.devices.dialects import DIALECTS
from webhook.manifests.fallback.policies import admission_policies
from webhook.policy.json_schema import json_schema
from webhook.policy.policy import default_policy, parse_policy
from webhook.settings.snapshot import default_device_config

helm = pytest.importorskip("helm_python", reason="there is no Helm library for this platform")

CA = "-----BEGIN CERTIFICATE-----\n…\n"
SECRET = {"certificates": {"source": "secret", "secret": {"name": "team-tls", "caBundle": CA}}}
FALLBACK = (DEPLOY / "components" / "fallback" / "policies.yaml").read_text()
ENFORCED = [{"match": ["team-a", "team-b"], "enforcement": "enforce"}]
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


def cases() -> Iterator[Any]:
    """Each case of values.yaml, with each of its `also`, and with the printed fallback policies."""
    text = (Path(__file__).parent / "values.yaml").read_text()
    text = text.replace("PRINTED", json.dumps(FALLBACK))
    for number, case in enumerate(yaml.safe_load(text)):
        for more in ({}, *case.pop("also", [])):
            values = (EVERYTHING if case.get("everything") else {}) | case.get("values", {}) | more
            yield pytest.param(values, case, id=f"{number} {json.dumps(case.get('values', {}) | more)}"[:100])


@pytest.mark.parametrize(("values", "case"), [*cases()])
def test_values(values: Json, case: Json):
    assert case.keys() <= {"everything", "values", "is", "are", "refused"}
    if "refused" in case:
        with pytest.raises(helm.HelmError, match=case["refused"]):
            objects(values)
        return
    found = objects(values)
    (webhook,) = [
        c for c in one(found, "Deployment")["spec"]["template"]["spec"]["containers"] if c["name"] == "webhook"
    ]
    port = webhook["ports"][0]["containerPort"]
    assert parsed(serve.command, webhook["args"][1:]).bind == (None if port == serve.DEFAULT_PORT else f"[::]:{port}")
    for query, expected in case.get("is", {}).items():
        assert list(selected(found, query, [None])) == [expected], query
    for query, expected in case.get("are", {}).items():
        assert sorted(selected(found, query), key=str) == sorted(expected, key=str), query


def selected(documents: list[Json], query: str, missing: Iterable[Any] = ()) -> Iterator[Any]:
    """The different values at a path; a step is a key, or `[0]`, `[*]`, `[key=value]`, `[=value]`, `[^beginning]` of a list.

    `missing` is what an object without the key gives; of the items of a list those that have the key are meant.
    """
    what, _, path = query.partition(" ")
    part, _, kind = what.partition("/")
    if part in ("pods", "containers"):
        pods = [spec for d in documents for found, spec in pod_specs([d]).items() if kind in ("", found)]
        values = pods if part == "pods" else [c for p in pods for c in [*p.get("initContainers", []), *p["containers"]]]
    else:
        values = [d for d in documents if what in ("*", d["kind"], f"{d['kind']}/{d['metadata']['name']}")]
        if what == "entries":
            values = list(entries(documents).values())
    for step in re.findall(r"\[(?:[^][]|\[.*?\])*\]|[^][.]+", path):
        if LIST_STEP.fullmatch(step):
            missing = ()
        values = [each for value in values for each in stepped(value, step) or missing]
    return (value for at, value in enumerate(values) if value not in values[:at])


LIST_STEP = re.compile(r"\[(?:(-?\d+)|(\*)|\^(.+)|([^=]*)=(.*))\]")


def stepped(value: Any, step: str) -> list[Any]:
    found = LIST_STEP.fullmatch(step)
    if found is None:
        key = step.strip("[]")
        return [value[key]] if key in (value or ()) else []
    index, every, beginning, key, wanted = found.groups()
    if index:
        return value[int(index) :][:1]
    each = value if isinstance(value, list) else [value]
    if beginning:
        return [one for one in each if one.startswith(beginning)]
    return [one for one in each if every or (one.get(key) if key else one) == yaml.safe_load(wanted)]


def translating(*dialects: str, in_namespace: bool = False) -> Json:
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


def test_what_the_commands_print_replaces_what_the_chart_has():
    configurations = (DEPLOY / "base" / "webhook-configurations.yaml").read_text()
    renamed = [text.replace("volcano.sh/", "gpu.example/") for text in (configurations, FALLBACK)]
    found = objects({"webhookConfigurations": renamed[0], "fallback": True, "fallbackPolicies": renamed[1]})
    assert '"gpu.example/"' in entries(found)["repair"]["matchConditions"][0]["expression"]
    policies = [d["spec"]["matchConditions"] for d in found if d["kind"] == "ValidatingAdmissionPolicy"]
    assert ["gpu.example/" in str(conditions) for conditions in policies] == [True] * 4


EXCEPTION = {"namespace": "a", "names": ["b"], "rules": ["host-access"]}
EXCEPTION |= {"until": "2026-12-31", "reason": "c", "owner": "d"}
# For each key of the policy but `enforcement`, a value that is not the default: which the fallback policies follow, or not.
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
    keys = {*WITHOUT_EFFECT, *NOT_FOLLOWED, "enforcement"}
    assert json_schema()["properties"].keys() == keys, "a new key is in one of them"
    policy = parse_policy(WITHOUT_EFFECT, "policy")
    config = default_device_config()
    assert admission_policies(config, policy) == admission_policies(config, default_policy())
    assert objects({"fallback": True, "policy": WITHOUT_EFFECT})


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
    assert policy(policy="{} # the defaults") == {}


def test_the_notes_have_the_enforcement_of_the_policy():
    enforcing, recording, some = (
        rendered(values)["NOTES.txt"]
        for values in (
            {},
            {"policy": "enforcement: audit"},
            {"policy": {"enforcement": "audit", "namespaces": ENFORCED}},
        )
    )
    assert "Enforcement enforce: it repairs and refuses pods.\n" in enforcing
    assert "upgrade with --set enforcement=warn." in enforcing
    assert "Enforcement audit: it admits pods unchanged and only records" in recording
    assert "write enforcement: enforce into the policy." in recording
    assert "In namespaces team-a, team-b, it repairs and refuses pods." in some


def test_nothing_is_rendered_as_null():
    assert not [text for text in rendered(EVERYTHING | SECRET).values() if ": null" in text or "<nil>" in text]


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
