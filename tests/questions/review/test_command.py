"""`vgpu-webhook review`: its input, JSON output and exit codes."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import pod, python, vgpus
from tests.cli.rows import rows

test_command = rows(__file__)

KEYS = [
    "kind", "namespace", "name", "allowed", "outcome", "enforcement", "rules", "podsRefused", "neverStarts", "notReviewed",
    "foundByShape", "notJudged", "findings", "warnings", "patch", "object",
]  # fmt: skip


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


def test_refused_pods_are_reported_among_many_findings(run, write):
    mounts = [{"name": "v", "mountPath": f"/tmp/vgpulock/{n}"} for n in range(200)]
    spec = pod(limits=vgpus(1, 1000, 101))["spec"]
    spec["containers"].insert(0, {"name": "first", "image": "cuda", "volumeMounts": mounts})
    raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "d"}, "spec": {"template": {"spec": spec}}}
    policy = write("p.yaml", {"rules": {"isolation-mount": "audit"}})
    (line,) = run("review", "-o", "json", "--policy", policy, write("d.yaml", raw)).lines
    assert "cores-range" in line["podsRefused"]


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
