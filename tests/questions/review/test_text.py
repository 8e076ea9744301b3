"""Text output: verdicts, diffs, colour."""

import sys
from io import BytesIO, TextIOWrapper

import pytest

from tests.cli.conftest import FLEETS, only_rules, pod, vgpus
from tests.cli.test_terminal import TerminalStream


def test_a_repaired_pod_word_for_word(run, write, only):
    raw = pod("train", limits=vgpus(1, 1000), schedulerName="default-scheduler", tolerations=[])
    path = write("pod.yaml", raw)
    assert run("review", *only(), "--fleet", FLEETS / "rtx4090.yaml", path).out == (
        f"""repaired Pod train in default  ({path})
  changed by scheduler-name, toleration
    spec
        name: train
      spec:
    -   schedulerName: default-scheduler
    +   schedulerName: volcano
        containers:
        - name: main
    spec
              volcano.sh/vgpu-number: '1'
              volcano.sh/vgpu-memory: '1000'
    -   tolerations: []
    +   tolerations:
    +   - key: volcano.sh/vgpu
    +     operator: Exists
    +     effect: NoSchedule
  next  apply it unchanged: the webhook makes these changes (-o yaml prints the result)
"""
    )


def test_the_reasons_of_a_refusal_come_before_the_repairs(run, write):
    raw = pod("train", limits=vgpus(9, 1000), schedulerName="default-scheduler")
    lines = run("review", "--fleet", FLEETS / "rtx4090.yaml", write("pod.yaml", raw)).out.splitlines()
    assert lines[0].startswith("REFUSED")
    assert lines.index("  found") < lines.index("  changed by scheduler-name")


@pytest.mark.parametrize(
    ("number", "replicas", "label"), [(9, 1, "refuses its pods card-count:"), (8, 9, "never starts gang-too-large:")]
)
def test_what_refuses_the_pods_of_a_workload_is_no_mere_warning(run, write, number, replicas, label):
    """The webhook admits the workload, with a warning."""
    task = {"name": "worker", "replicas": replicas, "template": {"spec": pod("x", limits=vgpus(number, 24000))["spec"]}}
    job = {"schedulerName": "volcano", "minAvailable": replicas, "tasks": [task]}
    raw = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": job}
    result = run("review", "--fleet", FLEETS / "rtx4090.yaml", write("job.yaml", raw))
    assert result.code == 1
    assert f"    {label} " in result.out
    assert "    warn  card-count" not in result.out


def test_a_refused_pod_word_for_word(run, write, only):
    path = write("pod.yaml", pod("train", limits=vgpus(9, 1000)))
    assert run("review", *only("card-count"), "--fleet", FLEETS / "rtx4090.yaml", path).out == (
        f"""REFUSED  Pod train in default  ({path})
  found
    deny  card-count: container "main" requests 9 vGPUs, but the largest node (gpu-a) has 8 cards; request 8 or fewer
          at {path}:1:179 spec.containers[0].resources.limits[volcano.sh/vgpu-number]
  next  correct what is marked deny; `vgpu-webhook rules card-count` explains it
        add --explain to see why each kind of node can or cannot take it
"""
    )


def test_what_only_the_audit_log_gets_is_read_before_the_pod_is_applied(run, write):
    path = write("pod.yaml", pod(limits=vgpus(1, 1000), hostPID=True))
    policy = {"rules": only_rules()["rules"] | {"host-access": "audit"}}
    result = run("review", "--policy", write("policy.yaml", policy), path)
    assert "next  read the findings marked audit; then apply it unchanged" in result.out


def test_a_summary_of_several(run, write, tmp_path, only):
    documents = [
        pod(limits=vgpus(1, 1000)),
        pod(limits=vgpus(1, 1000, 101)),
        pod(limits=vgpus(1, 1000), hostPID=True),
        pod(),
    ]
    result = run("review", *only("cores-range", "host-access"), write("pods.yaml", *documents), tmp_path / "absent")
    assert result.out.endswith("\n5 documents: 1 REFUSED, 1 warned, 2 allowed, 1 not readable\n")
    assert "1 allowed" not in run("review", write("pod.yaml", pod())).out, "one document needs no summary"


def test_an_unknown_fleet_is_reported_once(run, write):
    note = "the fleet is unknown"
    device, plain = pod(limits=vgpus(1, 1)), pod()
    assert run("review", write("pods.yaml", device, device)).out.count(note) == 1
    assert note not in run("review", write("pods.yaml", plain, plain)).out
    assert note not in run("review", "--sample", write("pods.yaml", device)).out


def test_changes_to_the_pods_of_a_workload_are_shown(run, write):
    template = {"spec": pod(limits=vgpus(1, 1), schedulerName="default-scheduler")["spec"]}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    out = run("review", write("job.yaml", job)).out
    assert "will change in the pods of spec.template, once they are made" in out
    assert "+   schedulerName: volcano" in out


# --- colour ---------------------------------------------------------------------------------------------------------


def test_colour_in_a_pipe(run, write, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31mREFUSED " in run("review", write("pod.yaml", pod(limits=vgpus(1, 1, 101)))).out


@pytest.mark.parametrize("environment, coloured", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_and_wrapped_lines(environment, coloured, run, write, monkeypatch):
    for name, value in ({"COLUMNS": "60", "TERM": "xterm"} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal := TerminalStream())
    run("review", path := write("pod.yaml", pod(limits=vgpus(1, 1, 101))))
    out = terminal.getvalue()
    assert ("\x1b" in out) is coloured
    message = out[out.index("cores-range") : out.index(f"at {path}:1:")]
    assert message.count("\n") > 1
    assert all(len(line) <= 60 for line in message.splitlines()[1:])


def test_output_without_utf_8_has_escaped_names(run, write, monkeypatch):
    monkeypatch.setattr(sys, "stdout", ascii_only := TextIOWrapper(BytesIO(), "ascii"))
    assert run("review", write("p.yaml", pod("训练"))).code == 0
    ascii_only.seek(0)
    assert "Pod \\u8bad\\u7ec3 in default" in ascii_only.read()
