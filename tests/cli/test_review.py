"""What `vgpu-webhook review` reads, what it answers to programs, and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.cases import each_case
from tests.cli.conftest import CONFIG, FLEETS, REVIEWS, pod, shell, vgpus
from webhook.settings.files import SAMPLES

KEYS = [
    "kind",
    "namespace",
    "name",
    "allowed",
    "enforcement",
    "podsRefused",
    "notReviewed",
    "foundByShape",
    "findings",
    "warnings",
    "patch",
    "object",
]


# --- the contract ---------------------------------------------------------------------------------------------------


def test_json_has_exactly_the_keys_of_the_contract(run, write):
    file = write("pod.yaml", pod(limits=vgpus(1, 1000, 101)))
    ran = run("review", "-o", "json", file)
    assert ran.code == 1
    (line,) = ran.lines
    assert list(line) == KEYS
    assert (line["kind"], line["namespace"], line["name"], line["allowed"]) == ("Pod", "default", "train", False)
    (finding,) = line["findings"]
    assert list(finding) == ["rule", "level", "path", "message", "file", "document", "line", "column"]
    assert (finding["file"], finding["document"]) == (str(file), 1)
    assert "vgpu-cores" in Path(file).read_text().splitlines()[finding["line"] - 1][finding["column"] - 1 :]
    assert line["findings"][0]["rule"] == "cores-range"
    assert line["findings"][0]["level"] == "deny"
    assert line["findings"][0]["path"] == "spec.containers[0].resources.limits[volcano.sh/vgpu-cores]"


def test_a_pod_that_is_too_large_is_refused_with_what_to_do(run, write):
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}}
    ran = run("review", write("pod.yaml", manifest | {"spec": {"containers": [{"name": "c"}] * 1001}}))
    assert ran.code == 1
    assert "pod-too-large: the pod is too large: 1001 containers" in ran.out
    assert "make several pods of it" in ran.out


def test_the_patch_makes_the_object(run, write):
    raw = pod(limits={"volcano.sh/vgpu-memory": "1000"}, schedulerName="default-scheduler")
    (line,) = run("review", "-o", "json", write("pod.yaml", raw)).lines
    assert line["patch"]
    assert jsonpatch.apply_patch(raw, line["patch"]) == line["object"]
    assert line["object"]["spec"]["containers"][0]["resources"]["limits"]["volcano.sh/vgpu-number"] == "1"


def test_patch_output_is_one_line_a_document(run, write):
    whole = pod(limits=vgpus(1, 1000))
    lines = run("review", "-o", "patch", write("pods.yaml", whole, pod(limits=vgpus(1), tolerations=[]), whole)).lines
    assert [bool(line) for line in lines] == [False, True, False]


def test_yaml_output_can_be_applied_and_leaves_refused_pods_out(run, write):
    good = pod("good", limits=vgpus(1, 1000), schedulerName="default-scheduler")
    ran = run("review", "-o", "yaml", write("pods.yaml", good, pod("bad", limits=vgpus(1, 1000, 101))))
    documents = [document for document in yaml.safe_load_all(ran.out) if document]
    assert [document["metadata"]["name"] for document in documents] == ["good"]
    assert documents[0]["spec"]["schedulerName"] == "volcano"
    assert "# REFUSED, left out: Pod bad in default" in ran.out


@pytest.mark.parametrize(
    "text", ["1e3", "08", "0o7", "y", "N", "-1", "+.5", "10.0.0.1", "1:30", "no", "null", "2026-01-02", ""]
)
def test_yaml_output_keeps_text_text_for_every_reader(text, run, write):
    raw = pod(limits=vgpus(1)) | {"data": {"x": text}}
    out = run("review", "-o", "yaml", write("pod.json", raw)).out
    written = next(line for line in out.splitlines() if line.startswith("  x: "))
    assert written[5] in "'\""
    assert yaml.safe_load(out)["data"]["x"] == text


# --- what is read ---------------------------------------------------------------------------------------------------


def test_a_yaml_stream_with_comments_and_empty_documents(run, write):
    texts = ["# only a comment", yaml.safe_dump(pod("a")), "", yaml.safe_dump(pod("b")), "---"]
    assert [line["name"] for line in run("review", "-o", "json", write("s.yaml", *texts)).lines] == ["a", "b"]


def test_json_documents_in_a_row(run, tmp_path):
    path = tmp_path / "row.json"
    path.write_text("\ufeff" + json.dumps(pod("a")) + "\n" + json.dumps(pod("b"), indent=2))
    assert [line["name"] for line in run("review", "-o", "json", path).lines] == ["a", "b"]


def test_lists_are_taken_apart_also_lists_in_lists(run, write):
    inner = {"apiVersion": "v1", "kind": "List", "items": [pod("b"), pod("c")]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [pod("a"), inner, pod("d")]}
    assert [line["name"] for line in run("review", "-o", "json", write("l.yaml", outer)).lines] == ["a", "b", "c", "d"]


def test_items_of_a_pod_list_need_no_kind(run, write):
    bare = {key: value for key, value in pod("a", limits=vgpus(1, 1000, 101)).items() if key in ("metadata", "spec")}
    ran = run("review", "-o", "json", write("l.yaml", {"apiVersion": "v1", "kind": "PodList", "items": [bare]}))
    assert (ran.code, ran.lines[0]["kind"]) == (1, "Pod")


def test_an_empty_list_is_no_mistake(run, write):
    ran = run("review", write("l.yaml", {"apiVersion": "v1", "kind": "List", "items": []}))
    assert (ran.code, ran.err) == (0, "")


def test_a_bad_item_is_named_by_its_place(run, write):
    outer = {"apiVersion": "v1", "kind": "List", "items": [pod("a"), {"metadata": {}}, pod("c")]}
    ran = run("review", "-o", "json", write("l.yaml", pod("x"), outer))
    assert ran.code == 2
    assert [line["name"] for line in ran.lines] == ["x", "a", "c"]
    assert "l.yaml: document 2: items[1]: this is not a Kubernetes object: it has no apiVersion and no kind" in ran.err


@each_case("path", sorted(REVIEWS.glob("*.json")), ids=lambda path: path.stem)
def test_a_recorded_review_keeps_its_own_words(path, run):
    request = json.loads(path.read_text())["request"]
    ran = run("review", "-o", "json", "--device-config", CONFIG, "--fleet", FLEETS / "every-family.yaml", path)
    (line,) = ran.lines
    assert ran.code == (0 if line["allowed"] and not line["podsRefused"] else 1)
    assert (line["kind"], line["namespace"]) == (request["kind"]["kind"], request["namespace"])
    if request["operation"] != "CREATE" or request.get("subResource"):
        assert not line["patch"]


def test_the_user_of_a_recorded_review_counts(run, write):
    review = json.loads((REVIEWS / "gpu-pod1.update.json").read_text())
    review["request"]["object"]["metadata"]["annotations"] = {"volcano.sh/vgpu-node": "gpu-a"}
    codes = []
    for user in ("admin", "system:serviceaccount:volcano-system:volcano-scheduler"):
        review["request"]["userInfo"]["username"] = user
        codes.append(run("review", write("r.json", review)).code)
    assert codes == [1, 0]


def test_v1beta1_reviews_are_read(run, write):
    review = json.loads((REVIEWS / "cores-over-100.json").read_text()) | {"apiVersion": "admission.k8s.io/v1beta1"}
    assert run("review", write("r.json", review)).code == 1


def template(cores: int = 101) -> dict[str, Any]:
    return {"metadata": {}, "spec": pod(limits=vgpus(1, 1000, cores))["spec"]}


def workload(
    kind: str, version: str = "apps/v1", spec: dict[str, Any] | None = None, **metadata: str
) -> dict[str, Any]:
    spec = spec or {"template": template()}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "d"} | metadata, "spec": spec}


REFUSED = {
    "Deployment": workload("Deployment"),
    "CronJob": workload("CronJob", "batch/v1", {"jobTemplate": {"spec": {"template": template()}}}),
    "one task of a vcjob": workload(
        "Job", "batch.volcano.sh/v1alpha1", {"tasks": [{"template": template(50)}, {"template": template()}]}
    ),
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_a_workload_whose_pods_will_be_refused_is_a_failure(raw, run, write):
    path = write("d.yaml", raw)
    ran = run("review", "-o", "json", path)
    (line,) = ran.lines
    assert (ran.code, line["allowed"], line["podsRefused"]) == (1, True, ["cores-range"])
    assert line["object"] == raw
    assert [finding["level"] for finding in line["findings"]] == ["warn"], (
        "a cluster admits the workload with a warning"
    )
    text = run("review", path).out
    assert f"REFUSED  the pods of {raw['kind']} d in default, 1 warning" in text
    assert "the workload is admitted, but its pods will never run: correct cores-range" in text
    applied = run("review", "-o", "yaml", path)
    assert "# its pods will NEVER RUN: correct cores-range" in applied.out
    assert yaml.safe_load(applied.out) == raw


def test_refused_pods_beat_warnings_and_count_in_lists(run, write):
    fine = workload("Deployment", spec={"template": template(50)})
    both = {"apiVersion": "v1", "kind": "List", "items": [fine, workload("Deployment")]}
    ran = run("review", "--warnings-as-errors", write("l.yaml", both))
    assert ran.code == 1
    assert "2 documents: 1 REFUSED, 1 allowed" in ran.out
    assert run("review", "--warnings-as-errors", write("d.yaml", fine)).code == 0


def test_many_other_findings_do_not_hide_that_pods_will_be_refused(run, write):
    mounts = [{"name": "v", "mountPath": f"/tmp/vgpulock/{n}"} for n in range(200)]
    spec = pod(limits=vgpus(1, 1000, 101))["spec"]
    spec["containers"].insert(0, {"name": "first", "volumeMounts": mounts})
    raw = workload("Deployment", spec={"template": {"spec": spec}})
    policy = write("p.yaml", {"rules": {"isolation-mount": "audit"}})
    (line,) = run("review", "-o", "json", "--policy", policy, write("d.yaml", raw)).lines
    assert "cores-range" in line["podsRefused"]


def test_a_lowered_rule_refuses_no_pods(run, write):
    policy = write("p.yaml", {"rules": {"cores-range": "warn"}})
    ran = run("review", "-o", "json", "--policy", policy, write("d.yaml", workload("Deployment")))
    assert (ran.code, ran.lines[0]["podsRefused"]) == (0, [])


def test_a_refused_workload_is_refused_itself(run, write):
    policy = write("p.yaml", {"workloads": "deny"})
    ran = run("review", "-o", "json", "--policy", policy, write("d.yaml", workload("Deployment")))
    assert (ran.code, ran.lines[0]["allowed"], ran.lines[0]["podsRefused"]) == (1, False, [])


# --- what is not reviewed -------------------------------------------------------------------------------------------

# Its container stands in no pod template.
UNREAD = workload("Session", "example.org/v1", {"container": template()["spec"]["containers"][0] | {"image": "cuda"}})


@pytest.mark.parametrize(
    "raw, why",
    [
        (pod(limits=vgpus(1, 1000, 101), metadata={"namespace": "kube-system"}), "namespace kube-system is exempt"),
        (workload("Deployment", namespace="kube-system"), "namespace kube-system is exempt"),
        (workload("Deployment", namespace="own-a"), "namespace own-a is exempt"),
        (UNREAD, "unknown kind Session of example.org"),
        (UNREAD | {"metadata": {"name": "d", "namespace": "kube-system"}}, "namespace kube-system is exempt"),
    ],
)
def test_what_is_not_reviewed_is_named(raw, why, run, write):
    policy = write("p.yaml", {"namespaces": [{"match": ["own-*"], "exempt": True}]})
    path = write("o.yaml", raw, pod())
    ran = run("review", "-o", "json", "--policy", policy, path)
    skipped, reviewed = ran.lines
    assert (ran.code, skipped["allowed"], skipped["findings"], skipped["patch"]) == (0, True, [], [])
    assert skipped["notReviewed"].startswith(f"{why}: ")
    assert skipped["object"] == raw
    assert reviewed["notReviewed"] is None
    text = run("review", "--policy", policy, path).out
    assert f"skipped  {raw['kind']} " in text
    assert f"  not reviewed: {why}: " in text
    assert "2 documents: 1 allowed, 1 skipped" in text
    assert f"# not reviewed: {why}: " in run("review", "-o", "yaml", "--policy", policy, path).out


def test_a_kind_that_is_not_known_is_reviewed_by_its_shape(run, write):
    raw = workload("Session", "example.org/v1", {"groups": [{"template": template(50)}, {"template": template()}]})
    path = write("s.yaml", raw, workload("Session", "example.org/v1", {"template": template(50)}))
    policy = write("p.yaml", {"workloads": "deny"})  # no guess refuses
    ran = run("review", "-o", "json", "--policy", policy, path)
    refused, fine = ran.lines
    assert (ran.code, refused["allowed"], refused["podsRefused"]) == (1, True, ["cores-range"])
    assert refused["foundByShape"] == ["spec.groups[0].template", "spec.groups[1].template"]
    assert refused["findings"][0]["path"].startswith("spec.groups[1].template.spec.containers[0].")
    assert (fine["notReviewed"], fine["foundByShape"], fine["podsRefused"]) == (None, ["spec.template"], [])
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
    policy = write("p.yaml", {"workloads": "deny", "workloadKinds": [entry]})
    refused, fine = run("review", "-o", "json", "--policy", policy, path).lines
    assert (refused["allowed"], refused["foundByShape"], fine["foundByShape"]) == (False, None, None)


def test_workloads_off_is_named(run, write):
    policy = write("p.yaml", {"workloads": "off"})
    ran = run("review", "--policy", policy, write("d.yaml", workload("Deployment")))
    assert ran.code == 0
    assert "not reviewed: the policy turns workloads off: only their pods are reviewed" in ran.out


def test_a_review_that_an_api_server_sent_is_judged_in_any_namespace(run, write):
    review = json.loads((REVIEWS / "cores-over-100.json").read_text())
    review["request"]["namespace"] = "kube-system"
    assert run("review", write("r.json", review)).code == 1


def test_other_kinds_pass(run, write):
    ran = run("review", write("c.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}))
    assert ran.code == 0
    assert ran.out == "1 document: 1 with nothing to review: neither a pod nor a workload\n"
    several = [{"apiVersion": "v1", "kind": "Service"}, pod(), {"apiVersion": "v1", "kind": "Secret"}]
    assert run("review", write("s.yaml", *several)).out.splitlines()[-1] == (
        "3 documents: 1 allowed, 2 with nothing to review: neither a pod nor a workload"
    )


# --- exit codes -----------------------------------------------------------------------------------------------------


def test_exit_0_and_3_for_warnings(run, write):
    path = write("pod.yaml", pod(limits=vgpus(1, 1000), hostPID=True))
    assert run("review", path).code == 0
    assert run("review", "--warnings-as-errors", path).code == 3
    assert run("review", "--warnings-as-errors", write("clean.yaml", pod(limits=vgpus(1, 1000)))).code == 0


def test_a_refusal_beats_a_warning_and_bad_input_beats_both(run, write, tmp_path):
    warned, refused = pod(limits=vgpus(1, 1000), hostPID=True), pod(limits=vgpus(1, 1000, 101))
    path = write("pods.yaml", warned, refused)
    assert run("review", "--warnings-as-errors", path).code == 1
    assert run("review", "--warnings-as-errors", path, tmp_path / "absent").code == 2


def test_good_files_are_reviewed_among_bad_ones(run, write, tmp_path):
    broken = write("broken.yaml", "a: [")
    ran = run("review", "-o", "json", write("a.yaml", pod("a")), broken, tmp_path / "absent", write("b.yaml", pod("b")))
    assert ran.code == 2
    assert [line["name"] for line in ran.lines] == ["a", "b"]
    assert "broken.yaml: not YAML or JSON that can be read" in ran.err
    assert "absent: No such file or directory" in ran.err


@pytest.mark.parametrize(
    "option,text,says",
    [
        ("--policy", "rules: {card-cuont: off}", "card-count"),
        ("--device-config", "[]", "nvidia"),
        ("--fleet", "kind: Pod", "kubectl get nodes"),
        ("--fleet", "\x00", "fleet"),
    ],
)
def test_bad_configuration_ends_the_run(option, text, says, run, write):
    ran = run("review", option, write("fleet-or-config.yaml", text), write("pod.yaml", pod()))
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_explain_needs_a_fleet(write):
    ran = shell("review", "--explain", write("pod.yaml", pod()))
    assert ran.returncode == 2
    assert b"add --fleet FILE or --cluster" in ran.stderr


# --- the real command -----------------------------------------------------------------------------------------------


def test_standard_input(write):
    ran = shell("review", "-o", "json", "-", stdin=json.dumps(pod(limits=vgpus(1, 1000, 101))).encode())
    assert (ran.returncode, json.loads(ran.stdout)["allowed"]) == (1, False)
    empty = shell("review", "-")
    assert (empty.returncode, empty.stderr) == (2, b"error: standard input: no document in it\n")


def test_a_reader_that_leaves_early_hides_no_refusal(write):
    path = write("pod.yaml", pod(limits=vgpus(1, 1000, 101)))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "webhook", "review", path]
    ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_it_starts_without_the_server(write):
    path = write("pod.yaml", pod(limits=vgpus(1)))
    code = (
        "import sys; from webhook.cli.main import main; code = main(['review', sys.argv[1]]); "
        "heavy = {'gunicorn', 'prometheus_client', 'uvloop', 'asyncio', 'cryptography', 'jsonpatch', 'ssl'}; "
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)"
    )
    ran = python("-c", code, path)
    assert (ran.returncode, ran.stderr) == (0, b"")


def python(*argv: object):
    return subprocess.run([sys.executable, *map(str, argv)], capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("enforcement", ["warn", "audit"])
def test_a_policy_that_does_not_enforce_shows_what_would_happen(run, write, enforcement: str):
    policy = write("policy.yaml", {"enforcement": enforcement})
    inputs = ["--fleet", SAMPLES / "fleet.yaml", "--device-config", SAMPLES / "device-config.yaml", "--policy", policy]
    refused, repaired = SAMPLES / "pod-refused.yaml", SAMPLES / "pod-repaired.yaml"
    ran = run("review", *inputs, refused, repaired)
    assert ran.code == 0
    assert ran.out.startswith("would be REFUSED Pod training in default")
    assert f"admitted unchanged: the policy has enforcement: {enforcement} here" in ran.out
    assert "before the policy enforces, correct what is marked deny" in ran.out
    assert "would be repaired Pod notebook in default" in ran.out
    assert "would be changed by default-number, scheduler-name, toleration" in ran.out
    assert "+   schedulerName: volcano" in ran.out
    line, _ = run("review", *inputs, "-o", "json", refused, repaired).lines
    assert (line["allowed"], line["enforcement"]) == (True, enforcement)
    assert bool(line["warnings"]) is (enforcement == "warn")
    assert "schedulerName" not in line["object"]["spec"]


@pytest.mark.parametrize("form", ["sarif", "junit", "github"])
def test_ci_formats_name_file_line_and_rule(run, write, form):
    file = write("pod.yaml", pod(limits=vgpus(1, 1000, 101)))
    ran = run("review", "-o", form, file)
    assert (ran.code, ran.err) == (1, "")
    assert "cores-range" in ran.out
    assert str(file) in ran.out
