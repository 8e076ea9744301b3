"""`vgpu-webhook review`: its input, JSON output and exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.cases import each_case
from tests.cli.conftest import CONFIG, FLEETS, REVIEWS, only_rules, pod, python, vgpus
from webhook.cli.program import ExitCode
from webhook.settings.sources import SAMPLES

EXAMPLES = SAMPLES.parent / "rules" / "examples" / "validate"

KEYS = [
    "kind", "namespace", "name", "allowed", "outcome", "enforcement", "rules", "podsRefused", "neverStarts", "notReviewed",
    "foundByShape", "notJudged", "findings", "warnings", "patch", "object",
]  # fmt: skip

# --- the contract ---------------------------------------------------------------------------------------------------


def test_json_has_exactly_the_keys_of_the_contract(run, write, only):
    file = write("pod.yaml", pod(limits=vgpus(1, 1000, 101)))
    result = run("review", *only("cores-range"), "-o", "json", file)
    (line,) = result.lines
    assert (result.code, list(line)) == (1, KEYS)
    assert [line[key] for key in KEYS[:7]] == ["Pod", "default", "train", False, "refused", "enforce", ["cores-range"]]
    (finding,) = line["findings"]
    assert list(finding) == ["rule", "level", "path", "message", "file", "document", "line", "column"]
    path = "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"
    assert [finding[key] for key in ("rule", "level", "path")] == ["cores-range", "deny", path]
    assert (finding["file"], finding["document"]) == (str(file), 1)
    assert "vgpu-cores" in Path(file).read_text().splitlines()[finding["line"] - 1][finding["column"] - 1 :]


def test_the_patch_gives_the_object(run, write):
    raw = pod(limits={"volcano.sh/vgpu-memory": "1000"}, schedulerName="default-scheduler")
    (line,) = run("review", "-o", "json", write("pod.yaml", raw)).lines
    assert line["patch"]
    assert jsonpatch.apply_patch(raw, line["patch"]) == line["object"]
    assert line["object"]["spec"]["containers"][0]["resources"]["limits"]["volcano.sh/vgpu-number"] == "1"


def test_patch_output_has_one_line_per_document(run, write):
    complete = pod(limits=vgpus(1, 1000))
    lines = run(
        "review", "-o", "patch", write("pods.yaml", complete, pod(limits=vgpus(1), tolerations=[]), complete)
    ).lines
    assert [bool(line) for line in lines] == [False, True, False]


def test_yaml_output_can_be_applied_and_leaves_refused_pods_out(run, write):
    good = pod("good", limits=vgpus(1, 1000), schedulerName="default-scheduler")
    result = run("review", "-o", "yaml", write("pods.yaml", good, pod("bad", limits=vgpus(1, 1000, 101))))
    documents = [document for document in yaml.safe_load_all(result.out) if document]
    assert [document["metadata"]["name"] for document in documents] == ["good"]
    assert documents[0]["spec"]["schedulerName"] == "volcano"
    assert "# REFUSED, left out: Pod bad in default" in result.out


# --- input ----------------------------------------------------------------------------------------------------------


def test_yaml_output_quotes_text_that_looks_like_another_type(run, write):
    texts = ["1e3", "08", "0o7", "y", "N", "-1", "+.5", "10.0.0.1", "1:30", "no", "null", "2026-01-02", ""]
    out = run("review", "-o", "yaml", write("pod.json", pod(limits=vgpus(1)) | {"data": texts})).out
    assert yaml.safe_load(out)["data"] == texts
    assert re.findall(r"(?m)^ *- (.)", out.partition("\ndata:\n")[2]) == ["'"] * len(texts)


def test_lists_in_lists_are_reviewed_in_order_and_a_bad_item_is_named_by_its_index(run, write):
    inner = {"apiVersion": "v1", "kind": "List", "items": [pod("b"), pod("c")]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner, {"metadata": {}}, pod("d")]}
    empty = {"apiVersion": "v1", "kind": "List", "items": []}
    result = run("review", "-o", "json", write("l.yaml", "# a comment", pod("a"), "", outer, empty, "---"))
    assert (result.code, [line["name"] for line in result.lines]) == (2, list("abcd"))
    assert "items[1]: this is not a Kubernetes object: it has no apiVersion and no kind" in result.err
    assert "l.yaml: document 2: " in result.err


def test_recorded_reviews_keep_their_requests(run):
    paths = sorted(REVIEWS.glob("*.json"))
    result = run("review", "-o", "json", "--device-config", CONFIG, "--fleet", FLEETS / "every-family.yaml", *paths)
    assert result.code == 1
    for path, line in zip(paths, result.lines, strict=True):
        request = json.loads(path.read_text())["request"]
        assert (line["kind"], line["namespace"]) == (request["kind"]["kind"], request["namespace"]), path
        if request["operation"] != "CREATE" or request.get("subResource"):
            assert not line["patch"], path


def test_the_user_of_a_recorded_review_is_used(run, write):
    review = json.loads((REVIEWS / "gpu-pod1.update.json").read_text())
    review["request"]["object"]["metadata"]["annotations"] = {"volcano.sh/vgpu-node": "gpu-a"}
    codes = []
    for user in ("admin", "system:serviceaccount:volcano-system:volcano-scheduler"):
        review["request"]["userInfo"]["username"] = user
        codes.append(run("review", write("r.json", review)).code)
    assert codes == [1, 0]


def template(cores: int = 101) -> dict[str, Any]:
    return {"metadata": {}, "spec": pod(limits=vgpus(1, 1000, cores))["spec"]}


def workload(
    kind: str, version: str = "apps/v1", spec: dict[str, Any] | None = None, **metadata: str
) -> dict[str, Any]:
    selector = {"selector": {"matchLabels": {"app": "d"}}} if version == "apps/v1" else {}
    spec = selector | (spec or {"template": template()})
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "d"} | metadata, "spec": spec}


REFUSED = {
    "Deployment": workload("Deployment"),
    "CronJob": workload("CronJob", "batch/v1", {"jobTemplate": {"spec": {"template": template()}}}),
    "one task of a vcjob": workload(
        "Job", "batch.volcano.sh/v1alpha1", {"tasks": [{"template": template(50)}, {"template": template()}]}
    ),
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_a_workload_whose_pods_are_refused_is_a_failure(raw, run, write, only):
    path = write("d.yaml", raw)
    review = "review", *only("cores-range")
    result = run(*review, "-o", "json", path)
    (line,) = result.lines
    assert (result.code, line["allowed"], line["podsRefused"]) == (1, True, ["cores-range"])
    assert line["object"] == raw
    assert [finding["level"] for finding in line["findings"]] == ["warn"], (
        "a cluster admits the workload with a warning"
    )
    text = run(*review, path).out
    assert f"REFUSED  the pods of {raw['kind']} d in default, 1 warning" in text
    assert "the webhook admits the workload, but will refuse its pods: correct cores-range" in text
    as_yaml = run(*review, "-o", "yaml", path)
    assert "# its pods will NEVER RUN: correct cores-range" in as_yaml.out
    assert yaml.safe_load(as_yaml.out) == raw


def test_refused_pods_are_reported_among_many_findings(run, write):
    mounts = [{"name": "v", "mountPath": f"/tmp/vgpulock/{n}"} for n in range(200)]
    spec = pod(limits=vgpus(1, 1000, 101))["spec"]
    spec["containers"].insert(0, {"name": "first", "image": "cuda", "volumeMounts": mounts})
    raw = workload("Deployment", spec={"template": {"spec": spec}})
    policy = write("p.yaml", {"rules": {"isolation-mount": "audit"}})
    (line,) = run("review", "-o", "json", "--policy", policy, write("d.yaml", raw)).lines
    assert "cores-range" in line["podsRefused"]


@pytest.mark.parametrize(
    "document, code, allowed",
    [({"rules": {"cores-range": "warn"}}, 0, True), ({"workloads": "deny"}, 1, False)],
    ids=["a lowered rule", "workloads that are denied themselves"],
)
def test_a_policy_under_which_no_pods_are_refused(document, code, allowed, run, write):
    policy = write("p.yaml", document)
    result = run("review", "-o", "json", "--policy", policy, write("d.yaml", workload("Deployment")))
    assert (result.code, result.lines[0]["allowed"], result.lines[0]["podsRefused"]) == (code, allowed, [])


def test_a_gang_that_never_starts_is_a_failure_but_its_pods_are_not_refused(run):
    manifest = EXAMPLES / "gang-too-large.yaml"
    result = run("review", "--sample", "-o", "json", manifest)
    (line,) = result.lines
    assert (result.code, line["allowed"]) == (1, True)
    assert (line["podsRefused"], line["neverStarts"]) == ([], ["gang-too-large"])
    text = " ".join(run("review", "--sample", manifest).out.split())
    assert text.startswith("NEVER STARTS Job ")
    assert "the webhook admits the workload and its pods, but they can never start: correct gang-too-large" in text


def test_a_bad_policy_names_the_command_that_lists_its_keys(run, write):
    metadata = {"name": "vgpu-webhook-policy", "namespace": "vgpu-webhook"}
    policy = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": "rles: {}"}}
    result = run("review", "--sample", write("p.yaml", policy))
    assert result.code == 1
    assert "correct what is marked deny; `vgpu-webhook policy schema` lists the keys\n" in result.out


def test_a_queue_has_no_namespace(run, write):
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    path = write("q.yaml", queue | {"spec": {"capability": {"volcano.sh/vgpu-memory": 1}}})
    (line,) = run("review", "--sample", "-o", "json", path).lines
    assert (line["namespace"], line["rules"]) == ("", ["queue-limits"])


def test_devices_of_resource_claims_are_not_judged(run, write, only):
    manifest = pod()
    manifest["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    path = write("p.yaml", manifest)
    (line,) = run("review", "--sample", "-o", "json", path).lines
    (sentence,) = line["notJudged"]
    assert sentence.startswith('container "main" requests resources.claims, which this webhook does not judge; ')
    text = run("review", "--sample", path).out
    assert "requests no device that this webhook judges\n" in text
    assert f"  note  {sentence}\n" in text
    manifest["spec"]["containers"][0]["resources"]["limits"] = vgpus(1, 1000, 10)
    result = run("review", "--sample", *only(), write("b.yaml", manifest))
    assert "next  read the notes; then apply it unchanged" in result.out


# --- objects without a review ---------------------------------------------------------------------------------------

# Its container is not in a pod template.
UNKNOWN_KIND = workload(
    "Session", "example.org/v1", {"container": template()["spec"]["containers"][0] | {"image": "cuda"}}
)


@pytest.mark.parametrize(
    "raw, reason",
    [
        (pod(limits=vgpus(1, 1000, 101), metadata={"namespace": "kube-system"}), "namespace kube-system is exempt"),
        (workload("Deployment", namespace="own-a"), "namespace own-a is exempt"),
        (UNKNOWN_KIND, "unknown kind Session of example.org"),
        (UNKNOWN_KIND | {"metadata": {"name": "d", "namespace": "kube-system"}}, "namespace kube-system is exempt"),
    ],
)
def test_objects_that_are_not_reviewed_are_named(raw, reason, run, write):
    policy = write("p.yaml", {"namespaces": [{"match": ["own-*"], "exempt": True}]})
    path = write("o.yaml", raw, pod())
    result = run("review", "-o", "json", "--policy", policy, path)
    skipped, reviewed = result.lines
    assert (result.code, skipped["allowed"], skipped["findings"], skipped["patch"]) == (0, True, [], [])
    assert skipped["notReviewed"].startswith(f"{reason}: ")
    assert skipped["object"] == raw
    assert reviewed["notReviewed"] is None
    text = run("review", "--policy", policy, path).out
    assert f"skipped  {raw['kind']} " in text
    assert f"  not reviewed: {reason}: " in text
    assert "2 documents: 1 allowed, 1 skipped" in text
    assert f"# not reviewed: {reason}: " in run("review", "-o", "yaml", "--policy", policy, path).out


@pytest.mark.parametrize(
    "api,spec,path",
    [
        (
            "example.org/v1",
            {"worker": {"resources": {"volcano.sh/vgpu-number": 1}}},
            "spec.worker.resources[volcano.sh/vgpu-number]",
        ),
        ("example.org/v1", {"gpu": [{"count": 1}, {"name": "volcano.sh/vgpu-number"}]}, "spec.gpu[1].name"),
        ("example.org/v1", {"size": "large", "note": "volcano.sh/vgpu-number: 1"}, None),
        ("v1", {"hard": {"volcano.sh/vgpu-number": 1}}, None),
        ("scheduling.volcano.sh/v1beta1", {"capability": {"volcano.sh/vgpu-number": 1}}, None),
    ],
)
def test_an_unknown_kind_that_names_a_device_is_named_with_the_path(api, spec, path, run, write):
    mentioned = {"metadata": {"labels": {"a": "volcano.sh/vgpu-number"}}, "status": {"volcano.sh/vgpu-number": 1}}
    out = run("review", write("o.yaml", {"apiVersion": api, "kind": "Session", "spec": spec, **mentioned})).out
    if path is None:
        assert out == "1 document: 1 with nothing to review: neither a pod nor a workload\n"
    else:
        assert f"unknown kind Session of example.org: it names a device at {path}, but only its pods" in out


@pytest.mark.parametrize(("version", "kind", "meant"), [("v1", "pod", "Pod"), ("apps/v1", "deployment", "Deployment")])
def test_a_kind_in_other_letters_is_refused(version, kind, meant, run, write):
    path = write("k.yaml", {"apiVersion": version, "kind": kind, "spec": {"template": template()}})
    for argv in (("review",), ("scan",), ("why", "--sample", "-f")):
        result = run(*argv, path)
        assert result.code == 2
        assert f"the API server has no kind {kind!r}; did you mean {meant}?" in result.err


def test_an_unknown_kind_is_reviewed_by_its_shape(run, write):
    raw = workload("Session", "example.org/v1", {"groups": [{"template": template(50)}, {"template": template()}]})
    path = write("s.yaml", raw, workload("Session", "example.org/v1", {"template": template(50)}))
    policy = write("p.yaml", {**only_rules("cores-range"), "workloads": "deny"})  # a finding by shape never refuses
    result = run("review", "-o", "json", "--policy", policy, path)
    refused, good = result.lines
    assert (result.code, refused["allowed"], refused["podsRefused"]) == (1, True, ["cores-range"])
    assert refused["foundByShape"] == ["spec.groups[0].template", "spec.groups[1].template"]
    assert refused["findings"][0]["path"].startswith("spec.groups[1].template.spec.containers[0].")
    assert (good["notReviewed"], good["foundByShape"], good["podsRefused"]) == (None, ["spec.template"], [])
    text = " ".join(run("review", "--policy", policy, path).out.split())
    assert (
        "unknown kind Session of example.org: the webhook reviews its pods only; what looks like a pod template was reviewed "
        "here: spec.groups[0].template, spec.groups[1].template. To have the kind reviewed, add it to workloadKinds"
    ) in text
    entry = {
        "group": "example.org",
        "version": "v1",
        "kind": "Session",
        "templates": ["spec.template", "spec.groups[*].template"],
    }
    policy = write("p.yaml", {**only_rules("cores-range"), "workloads": "deny", "workloadKinds": [entry]})
    refused, good = run("review", "-o", "json", "--policy", policy, path).lines
    assert (refused["allowed"], refused["foundByShape"], good["foundByShape"]) == (False, None, None)


def test_workloads_off_is_reported(run, write):
    policy = write("p.yaml", {"workloads": "off"})
    result = run("review", "--policy", policy, write("d.yaml", workload("Deployment")))
    assert result.code == 0
    assert "not reviewed: the policy turns workloads off: only their pods are reviewed" in result.out


def test_other_kinds_are_counted(run, write):
    several = [{"apiVersion": "v1", "kind": "Service"}, pod(), {"apiVersion": "v1", "kind": "Secret"}]
    assert run("review", write("s.yaml", *several)).out.splitlines()[-1] == (
        "3 documents: 1 allowed, 2 with nothing to review: neither a pod nor a workload"
    )


# --- directories ----------------------------------------------------------------------------------------------------

VALUES = "image: cuda\nreplicas: 2\n"


@pytest.fixture
def folder(tmp_path):
    """A repository: one pod, and files of Helm and kustomize."""
    files = {
        "app/pod.yaml": yaml.safe_dump(pod("a")),
        "app/values.yaml": VALUES,
        "app/patch.json": '[{"op": "remove", "path": "/spec"}]',
        "chart/templates/pod.yaml": "{{ if .Values.gpu }}\n",
        "chart/values.yaml": VALUES,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_files_of_a_directory_without_objects_are_passed_over_and_at_most_five_are_named(folder, run):
    result = run("review", "-o", "json", folder / "app")
    assert (result.code, [line["name"] for line in result.lines]) == (0, ["a"])
    files = f"{folder}/app/patch.json, {folder}/app/values.yaml"
    assert result.err == f"warning: passed over, without apiVersion and kind: 2, {files}\n"
    for number in range(6):
        (folder / "app" / f"v{number}.yaml").write_text(VALUES)
    assert run("review", folder / "app").err.endswith("/app/v3.yaml and 3 more\n")


@pytest.mark.parametrize("glob", ["templates", "chart/templates", "chart/t*s", "chart/templates/*", "[!a]*/*/*"])
def test_globs_leave_files_and_directories_out(glob, folder, run):
    assert run("review", "-R", folder).code == 2
    result = run("review", "-o", "json", "-R", folder, "--exclude", glob, "--exclude", "values.yaml")
    assert (result.code, [line["name"] for line in result.lines]) == (0, ["a"])
    assert result.err.count("\n") == 1
    assert "without apiVersion and kind: 1," in result.err


def test_a_named_file_is_read_although_a_glob_excludes_it_and_needs_an_object(folder, run):
    assert run("review", folder / "app" / "pod.yaml", "--exclude", "*").code == 0
    result = run("review", folder / "app" / "pod.yaml", folder / "app" / "values.yaml")
    assert result.code == 2
    assert "app/values.yaml: this is not a Kubernetes object: it has no apiVersion and no kind" in result.err


def test_a_directory_without_any_object_is_an_error(folder, run):
    result = run("review", folder / "app", "--exclude", "pod.*")
    assert result.code == 2
    assert f"error: no Kubernetes object in {folder}/app\n" in result.err


# --- exit codes -----------------------------------------------------------------------------------------------------


CLEAN, WARNED = pod(limits=vgpus(1, 1000)), pod(hostPID=True, limits=vgpus(1))
REFUSED_POD = pod(limits=vgpus(1, 1000, 101))


@pytest.mark.parametrize(
    "code, strict, documents",
    [
        (0, 0, [CLEAN]),
        (0, 3, [WARNED]),
        (1, 1, [WARNED, REFUSED_POD]),
        (2, 2, [WARNED, REFUSED_POD, "a: 1"]),
        (0, 0, [workload("Deployment", spec={"template": template(50)})]),
        (1, 1, [workload("Deployment", spec={"template": template(50)}), workload("Deployment")]),
    ],
)
def test_exit_codes(run, write, only, *, code, strict, documents):
    review = "review", *only("cores-range", "host-access"), write("documents.yaml", *documents)
    result = run(*review)
    assert (result.code, run(*review, "--warnings-as-errors").code) == (code, strict)
    assert f"{len(documents)} documents: 1 REFUSED, 1 " in result.out or code != 1


def test_good_files_are_reviewed_among_bad_ones(run, write, tmp_path):
    broken = write("broken.yaml", "a: [")
    result = run(
        "review", "-o", "json", write("a.yaml", pod("a")), broken, tmp_path / "absent", write("b.yaml", pod("b"))
    )
    assert result.code == 2
    assert [line["name"] for line in result.lines] == ["a", "b"]
    assert "broken.yaml: not YAML or JSON that can be read" in result.err
    assert "absent: No such file or directory" in result.err


def test_explain_needs_a_fleet(run, write):
    result = run("review", "--explain", write("pod.yaml", pod()))
    assert result.code == 2
    assert "add --fleet FILE or --cluster" in result.err


# --- the real command -----------------------------------------------------------------------------------------------


def test_standard_input(run):
    result = run("review", "-o", "json", "-", stdin=json.dumps(REFUSED_POD).encode())
    assert (result.code, result.lines[0]["allowed"]) == (1, False)
    empty = run("review", "-", stdin=b"")
    assert (empty.code, empty.err) == (2, "error: standard input: no document in it\n")


def test_a_closed_pipe_is_not_a_success(write):
    path = write("pod.yaml", pod(limits=vgpus(1, 1000, 101)))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "webhook", "review", path]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, b"")


def test_it_starts_without_the_server(write):
    path = write("pod.yaml", pod(limits=vgpus(1)))
    code = (
        "import sys; from webhook.cli.main import main; code = main(['review', sys.argv[1]]); "
        "heavy = {'gunicorn', 'prometheus_client', 'uvloop', 'asyncio', 'cryptography', 'jsonpatch', 'ssl'}; "
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)"
    )
    result = python(code, path)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("enforcement", ["warn", "audit"])
def test_a_policy_that_does_not_enforce_shows_what_would_happen(run, write, enforcement: str):
    policy = write("policy.yaml", {"enforcement": enforcement})
    inputs = ["--fleet", SAMPLES / "fleet.yaml", "--device-config", SAMPLES / "device-config.yaml", "--policy", policy]
    refused, repaired = SAMPLES / "pod-refused.yaml", SAMPLES / "pod-repaired.yaml"
    result = run("review", *inputs, refused, repaired)
    assert result.code == 0
    assert result.out.startswith("would be REFUSED Pod training in default")
    assert f"admitted unchanged: the policy has enforcement: {enforcement} here" in result.out
    assert "before the policy enforces, correct what is marked deny" in result.out
    assert "would be repaired Pod notebook in default" in result.out
    assert "would be changed by default-number, scheduler-name, toleration" in result.out
    assert "+   schedulerName: volcano" in result.out
    line, _ = run("review", *inputs, "-o", "json", refused, repaired).lines
    assert (line["allowed"], line["enforcement"]) == (True, enforcement)
    assert bool(line["warnings"]) is (enforcement == "warn")
    assert "schedulerName" not in line["object"]["spec"]


def test_files_and_directories(run, write, tmp_path: Path):
    (tmp_path / "below").mkdir()
    for name in ("b.yaml", "a.json", "notes.txt", "below/c.yml"):
        write(name, pod(Path(name).stem))

    def reviewed(*argv: object) -> list[str]:
        return [line["name"] for line in run("review", "-o", "json", *argv).lines]

    assert reviewed("-f", tmp_path) == ["a", "b"]
    assert reviewed("-R", "-f", tmp_path) == ["a", "b", "c"]
    assert reviewed("--filename", tmp_path / "b.yaml", tmp_path / "a.json", tmp_path / "notes.txt") == [
        "b",
        "a",
        "notes",
    ]
    (tmp_path / "empty").mkdir()
    assert run("review", tmp_path / "empty").code == ExitCode.BAD_INPUT
    result = run("review", "-f", "https://example.org/pod.yaml")
    assert (
        result.err
        == "error: https://example.org/pod.yaml: URLs are not read; download it first: curl -LO https://example.org/pod.yaml\n"
    )


# --- patches --------------------------------------------------------------------------------------------------------

PATCHED = {"containers": [{"name": "train", "resources": {"limits": {"volcano.sh/vgpu-memory": 4096}}}]}


def written(api_version: str, kind: str, **spec: Any) -> dict[str, Any]:
    """A whole workload, but for what the spec replaces."""
    raw = workload(kind, api_version, {"template": template(50)})
    return raw | {"spec": raw["spec"] | spec}


CONTAINERS = "spec.template.spec.containers"
IMAGE = f"{CONTAINERS}[0].image"
PATCHES = [
    ("apps/v1", "Deployment", {"selector": None}, "spec.selector", "it has no selector"),
    ("apps/v1", "StatefulSet", {"selector": None, "template": None}, "spec.selector", "it has no selector"),
    ("apps/v1", "Deployment", {"template": {"spec": PATCHED}}, IMAGE, 'container "train" has no image'),
    ("batch/v1", "Job", {"template": {"spec": PATCHED}}, IMAGE, 'container "train" has no image'),
    ("batch/v1", "Job", {"template": {"spec": {"schedulerName": "volcano"}}}, CONTAINERS, "its pods have no container"),
    ("batch/v1", "Job", {"template": None, "parallelism": 4}, "spec", "it has no pod template"),
]
RENDER = "render it first: `kubectl kustomize . | vgpu-webhook review -`"


def test_a_patch_is_not_a_whole_workload(run, write):
    file = write("patches.yaml", *(written(version, kind, **spec) for version, kind, spec, _, _ in PATCHES))
    lines = run("review", "-o", "json", file).lines
    for (_, kind, _, path, why), line in zip(PATCHES, lines, strict=True):
        finding = line["findings"][-1]
        message = f"{why}, so this looks like a patch and no whole {kind}; {RENDER}"
        assert (finding["rule"], finding["level"]) == ("looks-like-patch", "warn")
        assert (finding["path"], finding["message"]) == (path, message)
    assert run("review", "--warnings-as-errors", file).code == ExitCode.WARNED
    assert "looks-like-patch" in run("review", "-o", "sarif", file).out
    text = run("review", file).out
    assert text.count(f"  next  {RENDER}\n") == len(PATCHES)
    assert "unchanged" not in text


def containers(*resources: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"c{at}", "image": "x", "resources": each} for at, each in enumerate(resources)]


NO_LIMIT, UNEQUAL, FRACTION = "without a limit", "where they differ", "not a whole number"
REFUSED_ANYWAY = [  # an object, and what the API server refuses of it: paths, each with a part of the message
    (
        pod(containers=containers({"requests": {"nvidia.com/gpu": 1}}, {"limits": {"rdma/hca": "500m"}})),
        {
            "spec.containers[0].resources.requests[nvidia.com/gpu]": NO_LIMIT,
            "spec.containers[1].resources.limits[rdma/hca]": FRACTION,
        },
    ),
    (
        pod(containers=containers({"requests": {"rdma/hca": 1}, "limits": {"rdma/hca": "2"}})),
        {"spec.containers[0].resources.limits[rdma/hca]": UNEQUAL},
    ),
    (pod(limits=vgpus(1, 4096)) | {"restartPolicy": "Never"}, {"restartPolicy": "no field at this level"}),
    (  # the webhook repairs pods, and the API server checks the template of a Deployment before there is one
        written("apps/v1", "Deployment", template={"spec": {"containers": containers({"requests": vgpus(1, 4096)})}}),
        {
            f"{CONTAINERS}[0].resources.requests[volcano.sh/vgpu-number]": NO_LIMIT,
            f"{CONTAINERS}[0].resources.requests[volcano.sh/vgpu-memory]": NO_LIMIT,
        },
    ),
    (pod(containers=containers({"requests": vgpus(1, 4096)})), {}),
    (  # so does the template of a Notebook, which the API server does not check
        written(
            "kubeflow.org/v1", "Notebook", template={"spec": {"containers": containers({"requests": vgpus(1, 4096)})}}
        ),
        {},
    ),
    (
        pod(
            containers=containers(
                {"requests": {"rdma/hca": 1, "cpu": "500m"}, "limits": {"rdma/hca": "1", "memory": "1.5Gi"}},
                {"requests": {"hugepages-2Mi": "4Mi", "requests.kubernetes.io/x": 1}},
                {"limits": {"volcano.sh/vgpu-number": 0.5}},  # quantity-invalid reports it
            )
        ),
        {},
    ),
]


def test_what_the_api_server_refuses_anyway_is_reported(run, write):
    file = write("refused.yaml", *(manifest for manifest, _ in REFUSED_ANYWAY))
    lines = run("review", "-o", "json", "--fleet", FLEETS / "mixed.yaml", file).lines
    for (_, expected), line in zip(REFUSED_ANYWAY, lines, strict=True):
        found = {each["path"]: each["message"] for each in line["findings"] if each["rule"] == "api-server-refuses"}
        assert found.keys() == expected.keys()
        assert all(part in found[path] for path, part in expected.items())
    assert run("review", file).out.count("the API server refuses it as it is") == 4


@each_case(
    ("manifest",),
    [
        (written("apps/v1", "Deployment"),),
        (written("batch/v1", "Job"),),
        (written("kubeflow.org/v1", "Notebook", template={"spec": PATCHED}),),  # its patches replace the containers
        (pod(limits=vgpus(1, 4096)),),
        ({"kind": "Deployment", "apiVersion": "apps.example.com/v1", "metadata": {"name": "other"}},),
    ],
)
def test_a_whole_object_is_no_patch(run, write, manifest):
    assert "looks-like-patch" not in run("review", "-o", "json", write("whole.yaml", manifest)).out


@each_case(
    ("hard", "says"),
    [
        ({"requests.nvidia.com/gpu": "2"}, True),  # of another plugin, which some node offers
        ({"requests.nvidia.com/gpu": "2", "requests.volcano.sh/vgpu-number": "2"}, False),
        ({"requests.volcano.sh/vgpu-memory": "20000", "requests.volcano.sh/vgpu-number": "2"}, False),
        ({"requests.nvidia.com/gpumem": "20000"}, False),  # quota-limits says more
        ({"requests.cpu": "2"}, False),
    ],
)
def test_a_quota_that_does_not_count_the_pods_beside_it(hard, says, run, write):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    elsewhere = quota | {"metadata": {"name": "q", "namespace": "other"}}
    file = write("all.yaml", quota, pod(limits=vgpus(1, 1000)), elsewhere)
    result = run("review", "--fleet", FLEETS / "two-families.yaml", "--warnings-as-errors", file)
    sentence = (
        f"{file}: document 1: it counts nvidia.com/gpu, and the pods beside it request volcano.sh/vgpu-number, "
        "volcano.sh/vgpu-memory; limit requests.volcano.sh/vgpu-number, too"
    )
    assert (result.err.count(sentence), result.err.count("the pods beside it")) == (says, says)
    assert not says or result.code == ExitCode.WARNED


@each_case(
    ("asked", "codes", "sentence"),
    [
        ((4, 4000), (ExitCode.OK, 0), ""),
        ((5, 4000), (ExitCode.WARNED, 1), "minMember is 5, but the workloads beside it have 4 pods that name it"),
        (
            (4, 24000),
            (ExitCode.FOUND, 4),
            "4 vGPU pods of 2 tasks must start at once, but the empty fleet holds at most 2",
        ),
        ((2, 4000), (ExitCode.OK, 0), ""),
    ],
)
def test_the_pods_that_name_a_podgroup_beside_them(run, write, only, *, asked, codes, sentence):
    minimum, memory = asked
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "pd"}}
    group["spec"] = {"minMember": minimum}
    template = {
        "metadata": {"annotations": {"scheduling.k8s.io/group-name": "pd"}},
        "spec": pod(limits=vgpus(4, memory))["spec"],
    }
    of = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    workloads = [written("apps/v1", kind, replicas=2, **of) for kind in ("Deployment", "StatefulSet")]
    file, nothing = write("all.yaml", *workloads, group), write("pods.json", {"kind": "List", "items": []})
    options = *only("gang-never-complete", "gang-too-large"), "--fleet", FLEETS / "rtx4090.yaml", "--warnings-as-errors"
    result = run("review", *options, file)
    why = run("why", "-f", file, "--fleet", FLEETS / "rtx4090.yaml", "--pods", nothing)
    assert (result.code, why.code, sentence in result.err) == (*codes, True)
