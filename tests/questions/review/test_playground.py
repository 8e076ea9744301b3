"""The playground's page: the editor, the answer beside it, and what a form without a script gets."""

import io
import re
from pathlib import Path

import pytest

import webhook.console
from tests.cases import each_case
from tests.console.conftest import client_of, judging, sample_parts
from tests.console.pages import Page
from tests.console.rows import page_rows
from tests.questions import needs
from webhook.outcome import WORDS
from webhook.policy.policy import parse_policy
from webhook.questions.review import page as playground
from webhook.settings.sources import SAMPLES
from webhook.settings.trial import try_out
from webhook.suites.rulebook import rows

test_page = page_rows(__file__)

POD = """apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: main
    resources:
      limits:
        volcano.sh/vgpu-cores: 150
"""


def shown(answer) -> Page:
    assert answer.mimetype == "text/html"
    return Page(answer.get_data(as_text=True))


def words(element: dict) -> str:
    return " ".join(element["text"].split())


def post(client, manifest: str, **more: object) -> Page:
    answer = client.post("/review", data={"manifest": manifest, **more})
    assert answer.status_code == 200
    return shown(answer)


def editor(page: Page, name: str) -> str:
    (text,) = [each["text"] for each in page.all("textarea") if each["name"] == name]
    return text.removeprefix("\n")


def test_it_begins_with_a_pod_that_is_repaired_and_reviewed(client):
    page = shown(client.get("/"))
    assert editor(page, "manifest") == (SAMPLES / "pod-repaired.yaml").read_text()
    assert "Repaired" in words(page.one("section", "verdict repaired"))
    assert "volcano.sh/vgpu-number: '1'" in [line["text"][1:].strip() for line in page.all("div", "line plus")]
    assert [words(each) for each in page.all("span", "placement")] == ["✓ fits"] * 5
    assert words(page.one("p", "where")) == "✓ fits gpu-a, gpu-b, gpu-c, gpu-mig"
    assert len(page.all("div", "drawing")) == 4


def test_every_example_is_offered_with_settings_that_can_be_used(client):
    """test_operation.py reviews all of them."""
    offered = [each["value"] for each in shown(client.get("/")).all("option")]
    assert sorted(offered) == sorted(name for group in playground.choices().values() for name in group)
    assert set(offered) >= {row.id for row in rows()}
    examples = [playground.named(name) for name in offered]
    assert all(try_out(sample_parts(), each.settings, None) for each in examples if each.settings)


def test_an_example_of_other_settings_brings_them_or_a_note(client):
    tight = shown(client.get("/?example=fits-tightly"))
    assert editor(tight, "settings").strip() == "target.devicePlugin=1.11.0"
    assert "fits-tightly" in tight.one("div", "answer")["text"]
    needing = shown(client.get("/?example=default-memory"))
    assert "deviceConfig.nvidia.defaultMemory: 4000" in words(needing.one("p", "note warn"))


def test_a_gang_is_drawn_on_the_nodes(client):
    page = shown(client.get("/?example=gang-too-large"))
    verdict, gang = words(page.one("section", "verdict")), page.one("section", "gang bad")["text"]
    assert verdict.startswith("✕ Its pods will never start")
    assert "The webhook admits it, but its pods can never start together: correct gang-too-large" in verdict
    assert all(text in gang for text in ("The gang can never start", "left over", "1 × worker"))
    assert "worker" in words(page.all("div", "drawing")[0])


@needs("rules")
def test_a_refusal_is_marked_at_its_line(client):
    page = post(client, POD)
    assert "Refused" in words(page.one("section", "verdict bad"))
    assert page.one("div", "line found deny")["text"].split() == ["volcano.sh/vgpu-cores:", "150"]
    finding = page.one("p", "finding deny")
    assert words(finding).startswith('deny cores-range: container "main" requests volcano.sh/vgpu-cores 150')
    assert '"pods.vgpu-webhook.svc" denied the request: cores-range' in page.one("pre", "terminal")["text"]
    assert "/rules/cores-range" in [each.get("href") for each in page.all("a")]


def test_why_a_kind_of_node_takes_no_pod_is_written_once(client):
    page = post(client, POD.replace("vgpu-cores: 150", "vgpu-memory: 50000"))
    assert page.text.count("is refused first by") == 2, "beside each of two drawings, and not below it"


def test_the_form_keeps_what_was_written(client):
    settings = "rules.cores-range=warn\r\nrules.fits-no-node=off\r\n"
    page = post(client, POD, namespace="team-x", settings=settings, split="3")
    assert "Refused" not in words(page.one("section", "verdict"))
    fields = {each["name"]: each["value"] for each in page.all("input") if "value" in each and "name" in each}
    assert (fields["namespace"], fields["split"]) == ("team-x", "3")
    assert editor(page, "settings").strip() == "rules.cores-range=warn\nrules.fits-no-node=off"
    assert "in team-x" in words(page.one("p", "about"))


@pytest.mark.parametrize(("manifest", "file", "name"), [("x: 1", POD, "pod.yaml"), (POD, "", "")])
def test_a_file_is_taken_before_the_editor_unless_none_is_chosen(client, manifest, file, name):
    page = shown(client.post("/review", data={"manifest": [manifest, (io.BytesIO(file.encode()), name)]}))
    assert "Refused" in words(page.one("section", "verdict"))
    assert editor(page, "manifest").strip() == POD.strip()


def test_a_large_file_is_refused_and_left_nowhere(client):
    head = b'--b\r\nContent-Disposition: form-data; name="manifest"; filename="f.yaml"\r\n\r\n'
    body = head + b"x" * 300_000 + b"\r\n--b--\r\n"  # by hand: the client's own file would stay open
    answer = client.post("/review", data=body, content_type="multipart/form-data; boundary=b")
    assert answer.status_code == 413
    assert "larger than 256 KiB" in words(shown(answer).one("section", "verdict bad"))


@each_case(
    ("fields", "field", "message"),
    [
        ({"settings": "rules.nothing=deny"}, "settings", "no rule is called 'nothing'"),
        ({"policy": "enforcement: sometimes"}, "policy", "enforcement"),
        ({"policy": "rules: {", "settings": "rules.nothing=deny"}, "policy", "the policy"),
        ({"split": "0"}, "split", "it must be 1 or more"),
        ({"namespace": "n" * 254}, "namespace", "253"),
    ],
)
def test_a_mistake_is_shown_beside_its_field(client, fields, field, message):
    page = shown(client.post("/review", data={"manifest": POD, **fields}))
    notes = {each["id"].removeprefix("mistake-"): words(each) for each in page.all("p", "mistake")}
    assert message in notes.pop(field)
    assert set(notes.values()) == {""}
    invalid = [each["name"] for each in page.elements if each.get("aria-invalid") == "true"]
    assert invalid == [field]
    assert editor(page, "manifest").strip() == POD.strip()


def test_namespaces_of_the_policy_are_offered():
    entries = [{"match": ["team-a", "b-*"]}, {"match": ["kube-system"], "exempt": True}]
    client = client_of(policy=parse_policy({"namespaces": entries}, "p"))
    offered = [each["value"] for each in shown(client.get("/")).all("option") if "-" in each.get("value", "")]
    assert offered[-2:] == ["kube-system", "team-a"]


def test_long_stretches_are_folded():
    labels = "".join(f"    l{n}: x\n" for n in range(100))
    page = post(judging(), POD.replace("  name: train\n", f"  name: train\n  labels:\n{labels}"))
    fold = page.one("details", "fold")
    assert fold["text"].startswith("… 108 unchanged lines")
    assert "l50: x" in fold["text"]


@needs("rules")
def test_every_rule_page_leads_here(client):
    page = shown(client.get("/rules/cores-range"))
    (hidden,) = [each for each in page.all("input") if each.get("type") == "hidden"]
    opened = post(client, hidden["value"])
    assert "cores-range" in opened.one("p", "finding deny")["text"]


def test_the_page_can_be_used_without_a_mouse_and_without_seeing(client):
    page = shown(client.get("/?example=pod-refused"))
    labelled = {each["for"] for each in page.all("label") if "for" in each}
    text = client.get("/?example=pod-refused").text
    for field in [*page.all("textarea"), *page.all("select"), *page.all("input")]:
        wrapped = re.search(rf'<label class="field">[^<]*<(?:\w+) name="{field["name"]}"', text.replace("\n      ", ""))
        assert field.get("id") in labelled or wrapped, field["name"]
    for region in [*page.all("div", "listing"), *page.all("pre")]:
        assert region["tabindex"] == "0"
        assert region["aria-label"]
    assert not [each for each in page.elements if "style" in each or any(key.startswith("on") for key in each)]


@pytest.mark.parametrize("word", WORDS)
def test_every_outcome_has_its_verdict_and_its_colours(word: str):
    static = Path(webhook.console.__file__).parent / "static"
    assert word in playground.VERDICTS
    assert f".s-{word}" in (static / "decisions.css").read_text()
    assert word == "not-reviewed" or f".outcome.{word}" in (static / "console.css").read_text()
