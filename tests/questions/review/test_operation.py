"""The JSON of a review is what the command prints, within limits."""

import json
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO

import jsonpatch
import pytest
import yaml

from tests.cases import each_case
from tests.console.conftest import Fixed, client_of, sample_parts
from tests.console.nodes import vgpu_node
from webhook.cli.main import main
from webhook.inputs.parse import parse_stream
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
    findings = [{key: finding[key] for key in finding.keys() - places} for finding in review["findings"]]
    return {**review, "findings": findings}


def test_each_pod_gets_its_own_id(client):
    one, other = (json.dumps(POD | {"metadata": {"name": name}}).replace("3000", "-1") for name in "ab")
    found = [reviewed(client, text)["documents"] for text in (f"{one}\n---\n{one}", other, f"{one}\n---\n{one}")]
    first, second, again = [[each["message"].splitlines()[-1] for each in documents] for documents in found]
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


@each_case(
    "body,status,message",
    [
        ({"manifest": "x: 1", "settings": ["a=1"] * 101}, 400, "settings"),
        ({"manifest": "x" * 262_145}, 413, "larger than 256 KiB; `vgpu-webhook review FILE` takes"),
        ({"manifest": "x: 1", "namespace": "n" * 254}, 400, "namespace"),
    ],
)
def test_what_is_too_long_is_refused_with_the_reason(client, body, status, message):
    response = client.post("/api/v1/review", json=body)
    assert (response.status_code, message in response.json["message"]) == (status, True)


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


def console_with(nodes):
    return client_of(Fixed(replace(sample_parts(), nodes=nodes)))


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
