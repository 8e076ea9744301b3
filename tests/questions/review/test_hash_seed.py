"""A review gives the same result in every process: replicas and replays must not depend on the order of a hash."""

import json
import os
import subprocess

from tests.server.program import COMMAND, DATA


def test_the_result_does_not_depend_on_the_hash_seed(tmp_path):
    # Its fleet has a card and a MIG instance of the same size, and pods that request more.
    fleet = json.loads((DATA / "oracle" / "cases.jsonl").read_text().splitlines()[3])
    assert fleet["id"] == "f11-3"
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "NodeList", "items": fleet["nodes"]}))
    (tmp_path / "config.json").write_text(json.dumps(fleet["deviceConfig"]))
    (tmp_path / "policy.json").write_text('{"memoryAboveCard": "deny"}')
    pods = [case["pod"] for case in fleet["cases"]]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": pods}))
    printed = {_review(tmp_path, seed) for seed in range(3)}
    assert len(printed) == 1
    assert "memory-above-card" in printed.pop()


def _review(directory, seed: int) -> str:
    command = [COMMAND, "review", "--fleet", "nodes.json", "--device-config", "config.json", "--policy", "policy.json"]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    result = subprocess.run(
        [*command, "-o", "json", "pods.json"],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    return result.stdout
