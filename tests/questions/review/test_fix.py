"""`review --fix` and `--diff`: the repairs in the files."""

import json
import os
import threading
from pathlib import Path

import pytest
import yaml

from tests.reviewing import ALL_FAMILIES, snapshot
from webhook.document_review import review_document
from webhook.inputs.documents import parse_documents
from webhook.questions.review.fix import fix

ROOT = Path(__file__).parents[3]
RECORDED, EXAMPLES = ROOT / "tests/data/reviews", ROOT / "webhook/rules/examples/mutate"
POD = """\
# mine
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: main  # the only one
      image: x
      resources:
        limits:
          volcano.sh/vgpu-number: 1
          volcano.sh/vgpu-memory: 1000
"""
REPAIRED = f"""\
{POD}  schedulerName: volcano
  tolerations:
    - key: volcano.sh/vgpu
      operator: Exists
      effect: NoSchedule
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train, labels: {app: train}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {limits: {volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 1000}}}]
"""


def test_the_repairs_are_written_and_what_is_left_is_reported(run, tmp_path, only):
    real, link = tmp_path / "real.yaml", tmp_path / "pod.yaml"
    text = f"{POD}---\n{JOB}---\n{POD.replace('main  #', 'side  #')}  hostPID: true\n"
    real.write_text(text)
    real.chmod(0o640)
    link.symlink_to(real)
    diff = run("review", "--diff", link)
    assert (diff.code, real.read_text()) == (1, text)
    assert [line for line in diff.out.splitlines() if line.startswith("-")] == [f"--- {link}"]
    result = run("review", *only("host-access"), "--fix", "-o", "concise", link)
    assert result.code == 0
    assert [line.partition(": document ")[2] for line in result.err.splitlines()] == [
        "1: Pod train: scheduler-name, toleration",
        "2: Job train: the repairs of its pods",
        "3: Pod train: scheduler-name, toleration",
    ]
    (left,) = result.out.splitlines()
    assert left.startswith(f"{link}:45:3: warn host-access: ")
    job = f"{JOB}      schedulerName: volcano\n      tolerations:\n        - key"
    assert real.read_text().startswith(f"{REPAIRED}---\n{job}")
    assert (link.is_symlink(), real.stat().st_mode & 0o777, {*tmp_path.iterdir()}) == (True, 0o640, {link, real})
    again = run("review", "--diff", link)
    assert (again.code, again.out, again.err) == (0, "", "")


def test_a_difference_keeps_the_line_breaks_of_windows(run, write):
    lines = run("review", "--diff", write("pod.yaml", POD.replace("\n", "\r\n"))).out.split("\n")
    assert [line for line in lines if not line.endswith("\r") and line[:3] not in ("---", "+++", "@@ ")] == [""]


def test_a_file_that_must_not_be_written_stays(run, write, tmp_path):
    """A link in a directory that leads out of it, a file that is read-only, a pipe."""
    outside, only = write("outside.yaml", POD), write("only.yaml", POD)
    only.chmod(0o444)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link.yaml").symlink_to(outside)
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(POD,))
    writer.start()
    cases = {
        "in": f"link.yaml: the repairs are not written: a link leads to {outside}; name that file to change it",
        "only.yaml": "the repairs are not written: it is read-only; make it writable first",
        "pipe": "the repairs are not written: it is not a regular file",
    }
    for name, message in cases.items():
        result = run("review", "--fix", tmp_path / name)
        assert (result.code, message in result.err, "fixed: " in result.err) == (2, True, False)
        assert "Pod train" in result.out
    writer.join()
    assert (outside.read_text(), only.read_text()) == (POD, POD)


def test_a_recorded_review_is_left_as_it_is(run, write):
    recorded = write("review.json", (RECORDED / "cores-only.json").read_text())
    assert "fixed: " not in run("review", "--fix", recorded).err
    assert recorded.read_text() == (RECORDED / "cores-only.json").read_text()


class Indented(yaml.SafeDumper):
    """Indents lists below their keys."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)


STYLES = {
    "block": lambda value: yaml.safe_dump(value, sort_keys=False),
    "indented": lambda value: yaml.dump(value, Dumper=Indented, sort_keys=False, indent=4),
    "mixed": lambda value: yaml.safe_dump(value, default_flow_style=None, width=60).rstrip("\n"),
    "list": lambda value: yaml.dump({"apiVersion": "v1", "kind": "List", "items": [value, value]}),  # with an anchor
    "json": lambda value: json.dumps(value, indent=2),
}


@pytest.mark.parametrize("style", STYLES)
def test_every_repair_can_be_written_in_every_style(style: str):
    """`fix` reviews what it writes, and raises if that would be repaired again."""
    settings, fixed = snapshot(*ALL_FAMILIES), 0
    recorded = [json.loads(path.read_text())["request"].get("object") for path in sorted(RECORDED.glob("*.json"))]
    examples = [yaml.safe_load(path.read_text()) for path in sorted(EXAMPLES.glob("*.yaml"))]
    for value in filter(None, [*recorded, *examples]):
        documents = parse_documents(STYLES[style](value).encode(), "it")
        found = fix(documents, lambda document: review_document(document, settings))
        fixed += found is not None
    assert fixed > 40
