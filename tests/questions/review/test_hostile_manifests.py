"""Manifests made to break, to stall or to inject: a clear answer in bounded time, and nothing of them becomes markup."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import vgpus
from tests.console.conftest import Fixed, sample_parts
from tests.console.pages import Page
from tests.console.running import running
from tests.docs.generated import DOCS
from tests.timing import within
from webhook import names
from webhook.console.app import create_app
from webhook.console.state import ConsoleState
from webhook.questions.review.operation import MAX_MANIFEST

SECONDS = 3.0
MAX_ANSWER = 8 << 20  # bytes
MAX_MEMORY = 400 << 10  # KiB of a serving process
ROOM = MAX_MANIFEST - 2000

HEAD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n"
NOTES = f"{HEAD}  annotations:\n"
CARDS = "volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: 9999, volcano.sh/vgpu-cores: 33"
SPEC = "spec:\n  containers:\n  - name: c\n    resources: {limits: {volcano.sh/vgpu-memory: 3000}}\n"


def containers(number: int, limits: str) -> str:
    one = "  - {{name: c{}, env: [{{name: CUDA_DISABLE_CONTROL, value: x}}], resources: {{limits: {{{}}}}}}}\n"
    return HEAD + "spec:\n  containers:\n" + "".join(one.format(n, limits) for n in range(number))


def tasks(number: int) -> str:
    one = "  - {{name: t{}, template: {{spec: {{containers: [{{name: c, resources: {{limits: {{{}: 1}}}}}}]}}}}}}\n"
    listed = "".join(one.format(n, names.VGPU_NUMBER) for n in range(number))
    return f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: j}}\nspec:\n  tasks:\n{listed}"


def hard_jobs(number: int) -> str:
    """Jobs of ten tasks, the containers of which do not quite fit on any node."""

    def task(variant: int) -> dict[str, Any]:
        amounts = [(1 + at % 3, 7500 + variant * 10 + at * 1165, at % 5 * 10) for at in range(8)]
        found = [{"name": f"c{at}", "resources": {"limits": vgpus(*each)}} for at, each in enumerate(amounts)]
        return {"name": f"t{variant}", "template": {"spec": {"containers": found}}}

    one = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}}
    jobs = [{**one, "spec": {"tasks": [task(10 * job + at) for at in range(10)]}} for job in range(number)]
    return "\n---\n".join(map(json.dumps, jobs))


def aliases(times: int) -> str:
    return f"x: &x [{'aaaa,' * 1000}]\n{HEAD}y: [{'*x,' * times}]\n{SPEC}"


# Manifests, each with the status of the response and a text on its page. tests/inputs/test_parse.py and
# test_bad_input.py have those that cannot be read.
CASES: dict[str, tuple[Callable[[], str], int, str]] = {
    "a million keys": (lambda: "\n".join(f"{n:x}: 1" for n in range(300_000)), 413, "larger than 256 KiB"),
    "empty lists": (lambda: f"a: [{'[],' * (ROOM // 3)}]", 200, "not a Kubernetes object"),
    "deep JSON": (lambda: "[" * ROOM, 422, "nested more than 100 deep"),
    "nested as deep as may be": (lambda: f"{HEAD}{SPEC}    x: {'{a: ' * 90}1{'}' * 90}\n", 200, "Repaired"),
    "aliases": (lambda: aliases(380), 200, "Repaired"),
    "more aliases": (lambda: aliases(1800), 413, "more than 3 MiB of JSON once aliases"),
    "documents": (lambda: "--- a\n" * 40_000, 200, "40,000 documents"),
    "a list of 80,000": (lambda: f"apiVersion: v1\nkind: PodList\nitems: [{'{},' * 80_000}]", 200, "80,000 documents"),
    "containers": (lambda: containers(1000, "volcano.sh/vgpu-memory: 3000"), 200, "Refused"),
    "2,000 containers": (lambda: containers(2000, "volcano.sh/vgpu-number: 1"), 200, "Refused"),
    "cards to try": (lambda: containers(16, CARDS), 200, "Refused"),
    "tasks": (lambda: tasks(1000), 200, "490 more pods of it"),
    "hard jobs": (lambda: hard_jobs(7), 200, "the search for a change was cut short"),
    "annotations": (lambda: "".join([NOTES, *(f"    k{n}: v\n" for n in range(15_000)), SPEC]), 200, "unchanged lines"),
    "one long line": (lambda: f"{NOTES}    a: {'x' * (ROOM - 200)}\n{SPEC}", 200, "Repaired"),
    "many short lines": (lambda: NOTES + "    a: |\n" + "      x\n" * 30_001 + SPEC, 200, "Repaired"),
    "reversed writing": (lambda: f'{NOTES}    a: "{chr(92)}u202e"\n{SPEC}', 200, "\\u202E"),
}

# Manifests that are sent to an operation of the API, too. The others take as long to parse there as for the page.
AS_JSON = ("a million keys", "deep JSON", "aliases", "2,000 containers", "one long line")


def form(client: Any, text: str) -> Any:
    """Send the form as a browser does; by hand, since the client would write a large one to the disk."""
    head = b'--b\r\nContent-Disposition: form-data; name="manifest"\r\n\r\n'
    body = head + text.encode() + b"\r\n--b--\r\n"
    return client.post("/review", data=body, content_type="multipart/form-data; boundary=b")


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_manifest_gets_a_clear_and_fast_response(client, name):
    make, status, message = CASES[name]
    text = make()
    page = within(SECONDS, lambda: form(client, text))
    assert page.status_code == status
    assert message in unescape(page.text.partition('id="result"')[2])
    if name in AS_JSON:
        answer = within(SECONDS, lambda: client.post("/api/v1/review", json={"manifest": text}))
        assert answer.status_code == status
        assert len(answer.data) < MAX_ANSWER
        assert "Traceback" not in answer.text
        assert status == 200 or answer.json["message"]
    assert len(page.data) < MAX_ANSWER


# --- markup ---------------------------------------------------------------------------------------------------------

EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</textarea></pre></title><iframe src=//evil>",
    "javascript:alert(1)",
    "{{ 7*7 }}{% raw %}",
    "&lt;b&gt;<b evil=1>",
    "\u202egnp.exe\u2066\u200f",
    "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "a\u2028b\u2029c\u0085d",
    "--><!--]]>",
)
OURS = {f"/static/{name}.js" for name in ("theme", "live", "times", "playground", "share", "sort")}
HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def pod(text: str) -> dict[str, Any]:
    """A pod with a text wherever one can stand, about which many rules speak."""
    limits = {names.VGPU_NUMBER: 1, names.VGPU_CORES: 150, names.VGPU_MEMORY: text, text: 1}
    main = {
        **dict.fromkeys(("name", "image"), text),
        "args": [text],
        "env": [{"name": text, "value": text}, {"name": "CUDA_DISABLE_CONTROL", "value": text}],
        "volumeMounts": [{"name": text, "mountPath": f"/tmp/vgpu/{text}"}],
        "resources": {"limits": limits},
        "securityContext": {"privileged": True, "capabilities": {"add": [text]}},
    }
    annotations = {text: text, names.VGPU_MODE: text, names.USE_GPUTYPE: text, names.NOUSE_GPUTYPE: text}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": text, "namespace": text, "labels": {text: text}, "annotations": annotations},
        "spec": {
            **dict.fromkeys(("schedulerName", "nodeName"), text),
            "nodeSelector": {text: text},
            "containers": [main, {"name": f"{text}2", "resources": {"limits": {names.VGPU_NUMBER: 1}}}],
            "initContainers": [{**main, "name": f"{text}3"}],
            "volumes": [{"name": text, "hostPath": {"path": f"/dev/nvidia{text}"}}],
            text: {text: [text]},
        },
    }


def placeable(text: str) -> dict[str, Any]:
    limits = {names.VGPU_NUMBER: 1, names.VGPU_MEMORY: 3000}
    main = [{"name": text, "image": text, "resources": {"limits": limits}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": text}, "spec": {"containers": main}}


def manifest(text: str) -> str:
    request = {
        **dict.fromkeys(("uid", "namespace", "name"), text),
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "UPDATE",
        "userInfo": {"username": text},
        "object": {**pod(text), "metadata": {"annotations": {"volcano.sh/vgpu-ids-new": text}}},
        "oldObject": pod(text),
    }
    recorded = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": text}, "spec": {"template": pod(text)}}
    broken = [{"apiVersion": text, "kind": text}, {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": text}}]
    small = {**job, "spec": {"template": placeable(text)}}
    return "\n".join(map(json.dumps, [pod(text), placeable(text), recorded, job, small, *broken]))


def evil_fleet(text: str) -> ConsoleState:
    """The sample fleet, whose nodes and cards have such names."""
    parts, nodes, card = sample_parts(), [], "NVIDIA-" + re.sub(r"[,:]", "", text)
    for number, node in enumerate(parts.nodes or ()):
        annotations = {key: value.replace("NVIDIA-", card) for key, value in node.annotations.items()}
        nodes.append(replace(node, name=f"{text}{number}", annotations=annotations))
    return ConsoleState(Fixed(replace(parts, nodes=nodes)))


@pytest.fixture(scope="module")
def harmless() -> Page:
    client = create_app(evil_fleet("plain")).test_client()
    answer = client.post("/review", data={"manifest": manifest("plain"), "settings": "x", "namespace": "plain"})
    more = client.post("/review", data={"manifest": manifest("plain")})
    return Page(answer.text + more.text)


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_of_it_becomes_markup(harmless, evil):
    client = create_app(evil_fleet(evil)).test_client()
    answer = client.post("/review", data={"manifest": manifest(evil)})
    assert answer.status_code == 200
    page = Page(answer.text)
    assert page.kinds <= harmless.kinds
    assert page.comments == []
    assert {value for tag, name, value in page.values if (tag, name) == ("script", "src")} == OURS
    links = {value for _, name, value in page.values if name in ("href", "src", "action")}
    assert all(value.startswith(("/", "#")) and not value.startswith("//") for value in links)
    assert not HIDDEN.search(page.shown)
    assert not any(HIDDEN.search(value) for _, _, value in page.values)
    shown = page.shown.count("alert(1)") + page.shown.count("evil")
    assert shown > 20 or "alert" not in evil  # it is there, as text


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_of_the_other_fields_becomes_markup(client, harmless, evil):
    small = json.dumps(placeable("plain"))
    for data in ({"settings": evil}, {"settings": f"rules.{evil}=deny"}, {"split": evil}, {"namespace": evil * 20}):
        answer = client.post("/review", data={"manifest": small, **data})
        page = Page(answer.text)
        allowed = harmless.kinds | {("section", ("class", "role"))}
        mistaken = {kind for kind in page.kinds if kind[0] in ("input", "textarea") and "aria-invalid" in kind[1]}
        assert page.kinds - allowed - mistaken <= {("details", ("class", "open")), ("code", ())}
        assert not HIDDEN.search(page.shown)
    answer = client.get("/", query_string={"example": evil})
    assert answer.status_code == 404
    assert {value for tag, name, value in Page(answer.text).values if (tag, name) == ("script", "src")} < OURS
    assert not HIDDEN.search(Page(answer.text).shown)


def test_the_editor_holds_it_as_it_was_written(client):
    text = "\n\n  " + "\n".join(EVIL) + "\n"
    page = client.post("/review", data={"manifest": text}).text
    editor = re.search(r'<textarea id="manifest"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert editor is not None
    assert unescape(editor[1]) == text


# --- in a process ---------------------------------------------------------------------------------------------------

LARGEST = ("empty lists", "2,000 containers")  # takes the most memory; and writes the longest answer


def test_a_serving_process_takes_the_largest_and_stays_small():
    with running() as console:
        for name in LARGEST:
            make, status, _ = CASES[name]
            found, body = _ask(console.port, {"manifest": make()})
            assert found == status, (name, body[:300])
        assert _ask(console.port, {"manifest": "x" * (10 << 20)})[0] in (413, 0)
        assert console.get("/")
        assert max(_peaks(console.process.pid)) < MAX_MEMORY


def _ask(port: int, question: object) -> tuple[int, bytes]:
    """Status and body; 0 if the connection is cut while the body is sent."""
    url, headers = f"http://127.0.0.1:{port}/api/v1/review", {"Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(question).encode(), headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
    except urllib.error.URLError:
        return 0, b""


def _peaks(pid: int) -> list[int]:
    """The largest memory of a process and of its children, in KiB."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    statuses = [Path(f"/proc/{each}/status").read_text() for each in (str(pid), *children)]
    return [int(found[1]) for status in statuses if (found := re.search(r"VmHWM:\s+(\d+)", status))]


def test_the_documentation_states_the_limit():
    assert f"A manifest has at most {MAX_MANIFEST >> 10} KiB" in (DOCS / "console.md").read_text()
