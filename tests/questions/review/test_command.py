"""`vgpu-webhook review`: its input, output and exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import DATA, pod, python, shell, there, vgpus
from tests.cli.rows import rows
from tests.cli.test_terminal import TerminalStream
from tests.cluster.apiserver import NODES, ApiServer, config_map
from webhook import names
from webhook.settings.sources import SAMPLES
from webhook.settings.table import COLLECTIONS

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


def test_the_result_does_not_depend_on_the_hash_seed(tmp_path):
    """Replicas and replays must not depend on it. The fleet has a card and a MIG instance of the same size."""
    fleet = json.loads((DATA / "oracle" / "cases.jsonl").read_text().splitlines()[3])
    assert fleet["id"] == "f11-3"
    pods = {"kind": "List", "apiVersion": "v1", "items": [case["pod"] for case in fleet["cases"]]}
    nodes, config = {"kind": "NodeList", "items": fleet["nodes"]}, fleet["deviceConfig"]
    options = {"fleet": nodes, "device-config": config, "policy": {"memoryAboveCard": "deny"}, "filename": pods}
    for name, content in options.items():
        (tmp_path / name).write_text(json.dumps(content))
    words = [word for name in options for word in (f"--{name}", tmp_path / name)]
    found = [shell("review", "-o", "json", *words, env=os.environ | {"PYTHONHASHSEED": seed}) for seed in "012"]
    assert {each.returncode for each in found} == {1}
    (printed,) = {each.stdout for each in found}
    assert b"memory-above-card" in printed


NAMES = ("fleet", "device-config", "policy", "queues", "quotas", "device-classes")
FILES = {name: SAMPLES / f"{name}.yaml" for name in NAMES}
WITH_FILES = [word for name, file in FILES.items() for word in (f"--{name}", file)]
LOG = SAMPLES / "audit.jsonl"
PODS = sorted(SAMPLES.glob("pod-*.yaml"))


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A cluster with the samples; the webhook is in a namespace that is not the default."""
    with ApiServer() as server:
        paths = dict(zip(("queues", "quotas", "device-classes"), (each.path for each in COLLECTIONS), strict=True))
        for name, path in {"fleet": NODES, **paths}.items():
            server.put(path, *yaml.safe_load(FILES[name].read_text())["items"])
        for namespace, name, key, file in (
            ("kube-system", names.DEVICE_CONFIG_MAP, names.DEVICE_CONFIG_KEY, FILES["device-config"]),
            ("gpu-system", names.POLICY_MAP, names.POLICY_KEY, FILES["policy"]),
        ):
            server.put(f"/api/v1/namespaces/{namespace}/configmaps", config_map(name, {key: file.read_text()}))
        yield server


@pytest.fixture
def cluster(api: ApiServer, tmp_path: Path) -> list[str]:
    kubeconfig = str(api.kubeconfig(tmp_path / "kubeconfig", "team-speech"))
    return ["--cluster", "--kubeconfig", kubeconfig, "--webhook-namespace", "gpu-system"]


@pytest.mark.parametrize(
    "command",
    there(
        [
            ["review", "--explain", "-o", "json", "-n", "team-speech", *PODS],
            ["review", "--explain", "-n", "team-vision", *PODS],
            ["replay", "-o", "json", LOG],
            ["replay", "--what-if", "split=1", "-f", LOG],
        ]
    ),
    ids=lambda command: " ".join(map(str, command[:4])),
)
def test_cluster_and_files_give_the_same_result(command, run, cluster):
    offline, live = run(*command, *WITH_FILES), run(*command, *cluster)
    assert offline.out
    assert live == offline
