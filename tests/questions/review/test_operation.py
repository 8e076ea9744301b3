"""The JSON of a review is what the command prints, within limits."""

import json
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import jsonpatch
import pytest
import yaml

from tests.cases import each_case
from tests.console.conftest import Fixed, judging, sample_parts
from tests.console.nodes import vgpu_node
from webhook.cli.main import main
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.inputs.parse import parse_stream
from webhook.policy.policy import parse_policy
from webhook.questions.review import explain
from webhook.questions.review import operation as review_api
from webhook.settings.sources import SAMPLES
from webhook.suites.rulebook import rows

PODS = sorted(path.name for path in SAMPLES.glob("pod-*.yaml"))
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train"},
    "spec": {"containers": [{"name": "main", "resources": {"limits": {"volcano.sh/vgpu-memory": 3000}}}]},
}
BAD = {
    **POD,
    "spec": {
        "containers": [{"name": "main", "image": "cuda", "resources": {"limits": {"volcano.sh/vgpu-cores": 150}}}]
    },
}


def post(client, manifest: object, **fields: object):
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    return client.post("/api/v1/review", json={"manifest": text, **fields})


def explained(client, manifest: object) -> dict:
    """Where the pods of a manifest fit."""
    return post(client, manifest).json["explanation"]


def reviewed(client, manifest: object, **fields: object) -> dict:
    """What the webhook does with a manifest, without where its pods fit."""
    response = post(client, manifest, explain=False, **fields)
    assert response.status_code == 200, response.text
    return response.json


PLAIN = "{apiVersion: v1, kind: Pod, metadata: {name: plain}, spec: {containers: [{name: main, image: busybox}]}}"
EVERY_MANIFEST = [PLAIN, *[(SAMPLES / name).read_text() for name in PODS], *[row.example().manifest for row in rows()]]


@pytest.fixture(scope="module")
def command_lines(tmp_path_factory):
    """What the command prints for each manifest."""
    file = tmp_path_factory.mktemp("command") / "manifests.yaml"
    file.write_text("\n---\n".join(EVERY_MANIFEST))
    with redirect_stdout(StringIO()) as printed:
        assert main(["review", "--sample", "-o", "json", "--explain", str(file)]) == 1
    found = [json.loads(line) for line in printed.getvalue().splitlines()]
    assert len(found) == len(EVERY_MANIFEST)
    return found


def without_places(review: dict) -> dict:
    """A review without the places of its findings: the console gets other files."""
    places = {"file", "document", "line", "column"}
    assert all(finding[key] for finding in review["findings"] for key in places)
    return {
        **review,
        "findings": [{key: finding[key] for key in finding.keys() - places} for finding in review["findings"]],
    }


def test_each_pod_gets_its_own_id(client):
    limits = "{limits: {volcano.sh/vgpu-number: 0}}"
    spec = f"{{containers: [{{name: main, resources: {limits}}}]}}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {spec}"
    texts = [f"{pod}\n---\n{pod}", pod.replace("name: a}", "name: b}", 1)]
    found = [client.post("/api/v1/review", json={"manifest": text}).json for text in (*texts, texts[0])]
    first, second, again = [[each["message"].splitlines()[-1] for each in review["documents"]] for review in found]
    assert len({*first, *second}) == 3
    assert first == again


def test_reviews_are_what_the_command_prints(client, command_lines):
    outcomes = set()
    for start in range(0, len(EVERY_MANIFEST), review_api.MAX_DOCUMENTS):
        some = slice(start, start + review_api.MAX_DOCUMENTS)
        found = reviewed(client, "\n---\n".join(EVERY_MANIFEST[some]))
        for each, printed in zip(found["documents"], command_lines[some], strict=True):
            line = {key: value for key, value in without_places(printed).items() if key not in ("explain", "gang")}
            assert without_places(each).items() >= line.items()
        outcomes |= {each["outcome"] for each in found["documents"]}
    assert outcomes == {"refused", "repaired", "warned", "allowed"}


def test_explanations_are_what_the_command_prints(client, command_lines):
    shapes = 0
    for start in range(0, len(EVERY_MANIFEST), explain.MAX_DOCUMENTS):
        some = slice(start, start + explain.MAX_DOCUMENTS)
        documents = explained(client, "\n---\n".join(EVERY_MANIFEST[some]))["documents"]
        for command_line, found in zip(command_lines[some], documents, strict=True):
            families = [each["family"] for each in command_line["explain"]]
            assert ([each["family"] for each in found["families"]], found["gang"]) == (families, command_line["gang"])
            for expected, family in zip(command_line["explain"], found["families"], strict=True):
                for printed, shape in zip(expected["shapes"], family["shapes"] or (), strict=True):
                    assert shape.keys() - printed.keys() == {"declared", "devices", "sentences", "drawing"}
                    assert {key: shape[key] for key in printed} == printed
                    shapes += 1
    assert shapes > 100


def test_patch_listing_and_object_agree(client):
    for text in EVERY_MANIFEST:
        (pod,) = parse_stream(text.encode(), "it")
        (found,) = reviewed(client, text)["documents"]
        assert jsonpatch.apply_patch(pod, found["patch"]) == found["object"]
        for marks, side in ((" -", pod), (" +", found["object"])):
            lines = [line["text"] for line in found["listing"] if line["mark"] in marks]
            assert yaml.safe_load("\n".join(lines)) == side
        attached = sorted(index for line in found["listing"] for index in line["findings"])
        assert attached == list(range(len(found["findings"])))


def test_a_denial_has_the_message_that_kubectl_prints(client):
    (found,) = reviewed(client, BAD)["documents"]
    assert found["message"].startswith(
        'Error from server (Forbidden): error when creating "manifest.yaml": admission webhook "pods.vgpu-webhook.svc" '
        'denied the request: cores-range: container "main" requests '
    )
    assert found["message"].endswith(")")
    assert not found["allowed"]
    assert found["outcome"] == "refused"
    assert reviewed(client, POD)["documents"][0]["message"] is None


def test_a_recorded_review_keeps_its_operation_and_namespace(client):
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "UPDATE",
            "namespace": "",
            "name": "train",
            "userInfo": {"username": "eve"},
            "object": {**POD, "metadata": {"name": "train", "annotations": {"volcano.sh/vgpu-ids-new": "x"}}},
            "oldObject": POD,
        },
    }
    (found,) = reviewed(client, body, namespace="else")["documents"]
    assert (found["operation"], found["namespace"], found["allowed"]) == ("UPDATE", "", False)
    assert 'admission webhook "assignments.vgpu-webhook.svc" denied' in found["message"]
    assert found["object"] == body["request"]["object"]


@pytest.mark.parametrize("metadata,namespace", [({}, "team"), ({"namespace": "own"}, "own"), (None, "team")])
def test_the_namespace_is_the_default_for_a_manifest_without_one(client, metadata, namespace):
    pod = {**POD, "metadata": metadata} if metadata is not None else {k: v for k, v in POD.items() if k != "metadata"}
    (found,) = reviewed(client, pod, namespace="team")["documents"]
    assert found["namespace"] == namespace


def test_a_workload_shows_how_its_pods_will_change():
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    manifest = {**job, "spec": {"template": {"spec": BAD["spec"]}}}
    (found,) = reviewed(judging("cores-range"), manifest)["documents"]
    assert found["allowed"]
    assert (found["podsRefused"], found["outcome"]) == (["cores-range"], "warned")
    assert found["patch"] == []
    (line,) = [line for line in found["listing"] if line["findings"]]
    assert line["path"] == "spec.template.spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"
    (pod,) = found["pods"]
    assert pod["path"] == "spec.template"
    assert "  schedulerName: volcano" in [line["text"] for line in pod["listing"] if line["mark"] == "+"]


def test_settings_and_split_apply_to_the_review(client):
    warned = reviewed(client, BAD, settings=["rules.cores-range=warn", "rules.fits-no-node=off"])["documents"][0]
    assert warned["allowed"]
    assert warned["warnings"]
    slices = {**POD, "spec": {"containers": [{"name": f"c{n}", **POD["spec"]["containers"][0]} for n in range(3)]}}
    for container in slices["spec"]["containers"]:
        container["resources"] = {"limits": {"volcano.sh/vgpu-number": 8, "volcano.sh/vgpu-memory": 100}}
    rule = "split-count"
    assert rule not in [each["rule"] for each in reviewed(client, slices)["documents"][0]["findings"]]
    assert rule in [each["rule"] for each in reviewed(client, slices, split=2)["documents"][0]["findings"]]


def test_findings_have_the_lines_of_the_manifest(client):
    text = (
        "# a comment\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n"
        "  spec:\n    containers:\n    - name: main\n      resources:\n        limits:\n          volcano.sh/vgpu-cores: 150\n"
        "---\n" + json.dumps(BAD, indent=1) + "\n"
    )
    for document in reviewed(client, text)["documents"]:
        lines = {each["rule"]: each["line"] for each in document["findings"]}
        assert "volcano.sh/vgpu-cores" in text.splitlines()[lines["cores-range"] - 1]


def test_settings_override_the_policy_of_the_request(client):
    policy = "rules: {cores-range: warn, fits-no-node: off}"
    assert reviewed(client, BAD, policy=policy)["documents"][0]["outcome"] in ("repaired", "warned")
    (found,) = reviewed(client, BAD, policy=policy, settings=["rules.cores-range=deny"])["documents"]
    assert [each["level"] for each in found["findings"] if each["rule"] == "cores-range"] == ["deny"]
    response = post(client, BAD, policy="rulse: {}")
    assert (response.status_code, "did you mean 'rules'" in response.json["message"]) == (422, True)


@each_case(
    "body,status,message",
    [
        ({}, 400, "manifest"),
        ({"manifest": 1}, 400, "manifest"),
        ({"manifest": "x: 1", "manifets": ""}, 400, "did you mean 'manifest'?"),
        ({"manifest": ""}, 422, "no document in it"),
        ({"manifest": "a: [", "namespace": "x"}, 422, "not YAML or JSON"),
        ({"manifest": "x: 1", "settings": ["rules.nonsense=deny"]}, 422, "nonsense"),
        ({"manifest": "x: 1", "settings": ["nonsense"]}, 422, "KEY=VALUE"),
        ({"manifest": "x: 1", "settings": ["a=1"] * 101}, 400, "settings"),
        ({"manifest": "x: 1", "split": 0}, 400, "split"),
        ({"manifest": "x: 1", "split": 1001}, 400, "split"),
        ({"manifest": "x" * 262_145}, 413, "larger than 256 KiB; `vgpu-webhook review FILE` takes"),
        ({"manifest": "x: 1", "namespace": "n" * 254}, 400, "namespace"),
    ],
)
def test_a_bad_request_is_refused_with_the_reason(client, body, status, message):
    response = client.post("/api/v1/review", json=body)
    assert response.status_code == status
    assert message in response.json["message"]


def test_an_invalid_document_does_not_hide_the_others(client):
    found = reviewed(client, "a: 1\n---\n- 1\n---\n" + json.dumps(POD) + "\n---\n" + json.dumps({**POD, "spec": []}))
    assert [each["place"] for each in found["documents"]] == ["the manifest: document 3"]
    assert [(each["place"], each["message"]) for each in found["problems"]] == [
        ("the manifest: document 1", "this is not a Kubernetes object: it has no apiVersion and no kind"),
        ("the manifest: document 2", "this is a list, not a Kubernetes object"),
        ("the manifest: document 4", "spec must be an object, not a list"),
    ]


def test_the_number_of_documents_is_limited(client):
    text = "\n---\n".join([json.dumps(POD)] * 1000)
    found = post(client, text).json
    assert len(found["documents"]) == review_api.MAX_DOCUMENTS == 50
    (problem,) = found["problems"]
    assert problem["place"] == "the manifest: 1,000 documents"
    assert problem["message"].startswith("only the first 50 are reviewed here; `vgpu-webhook review FILE`")
    explanation = found["explanation"]
    assert len(explanation["documents"]) == explain.MAX_DOCUMENTS == 10
    assert explanation["moreDocuments"] == 40


def test_the_number_of_explained_pods_is_limited(client):
    task = {"replicas": 1, "template": {"spec": POD["spec"]}}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {"tasks": [task] * 25}}
    (found,) = explained(client, job)["documents"]
    assert len({family["pod"] for family in found["families"]}) == explain.MAX_PODS
    assert found["morePods"] == 15


def console_with(nodes, policy=None):
    return create_app(ConsoleState(Fixed(replace(sample_parts(policy), nodes=nodes)))).test_client()


def test_long_names_of_cards_are_shortened():
    client = console_with([vgpu_node(f"node-{at}", (10, 16_000, f"model-{at}-" + "m" * 100_000)) for at in range(20)])
    response = post(client, POD)
    (found,) = response.json["explanation"]["documents"]
    assert sum(len(family["shapes"]) for family in found["families"]) == 20
    assert len(response.data) < 200_000
    assert len(client.post("/review", data={"manifest": json.dumps(POD)}).data) < 500_000


def test_the_number_of_shapes_is_limited_over_all_documents():
    client = console_with([vgpu_node(f"node-{at}", (10, 16_000 + at, "A10")) for at in range(45)])
    documents = explained(client, "\n---\n".join([json.dumps(POD)] * 6))["documents"]
    families = [family for each in documents for family in each["families"]]
    assert [(len(family["shapes"]), family["more"]) for family in families] == [*[(45, 0)] * 4, (20, 25)]
    assert explain.MAX_SHAPES == 4 * 45 + 20
    assert [each["morePods"] for each in documents] == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("nodes,fleet", [(None, "unknown"), ([], "known")])
def test_an_explanation_states_whether_the_fleet_is_known(nodes, fleet):
    explanation = explained(console_with(nodes), POD)
    assert explanation["fleet"] == fleet
    assert all(family["shapes"] == [] for family in explanation["documents"][0]["families"])


def test_declared_nodes_are_marked_as_declared():
    document = yaml.safe_load((SAMPLES / "policy.yaml").read_text()) or {}
    cards = {"name": "new", "cards": [{"type": "NVIDIA-A10", "memory": 24000, "count": 2}]}
    document["fleet"] = {"declared": [cards]}
    explanation = explained(console_with(None, parse_policy(document, "it")), POD)
    assert explanation["fleet"] == "declared"
    assert explanation["documents"][0]["families"][0]["shapes"][0]["declared"]
