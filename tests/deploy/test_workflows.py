"""GitHub workflows, and the targets of make."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import ROOT, Json

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def parsed(name: str) -> Json:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())


def test_zizmor_finds_nothing():
    zizmor = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    assert zizmor
    command = [zizmor, "--offline", "--no-progress", "--quiet", *map(str, [*WORKFLOWS, ACTION])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", [*WORKFLOWS, ACTION], ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_and_each_to_one(file: Path):
    pinned: dict[str, set[str]] = {}
    for name, commit in re.findall(
        r"uses: ([^@\s]+)@(.*)", "\n".join(path.read_text() for path in [*WORKFLOWS, ACTION])
    ):
        pinned.setdefault(name, set()).add(commit)
    assert all(re.fullmatch(r"[0-9a-f]{40}  # v\d+\.\d+\.\d+", commit) for one in pinned.values() for commit in one)
    assert {name: commits for name, commits in pinned.items() if len(commits) > 1} == {}
    assert len(re.findall(r"uses: ", file.read_text())) == len(re.findall(r"uses: [^@\s]+@", file.read_text()))


def test_every_supported_python_is_tested():
    tested = parsed("ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert set(supported) <= set(tested)
    assert tested[0] == PROJECT["requires-python"].removeprefix(">=")


def test_the_oldest_kubernetes_that_the_chart_installs_on_is_tested():
    oldest = parsed("ci.yml")["jobs"]["e2e"]["strategy"]["matrix"]["kubernetes"][0]
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={oldest}.0-0"


def plan(target: str, *options: str) -> list[str]:
    """What make would run; with a file that counts as ready, whichever file a checkout wrote last."""
    ready = str(ROOT / "Makefile")
    options = options or (f"READY={ready}", "-o", ready)
    done = subprocess.run(["make", "-n", target, *options, "-C", str(ROOT)], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "Entering" not in line]


def test_make_evidence_runs_what_security_md_names():
    text = (ROOT / "docs" / "security.md").read_text()
    named = {file for file in re.findall(r"`(tests/\S+\.py)`", text) if not file.startswith("tests/e2e/")}
    assert set(re.findall(r"tests/\S+\.py", "\n".join(plan("evidence")))) == named
    assert all((ROOT / file).is_file() for file in named)


@pytest.mark.parametrize("target, installed", [("run", "'.'"), ("check", "'.[dev]'")])
def test_make_run_installs_only_what_it_needs(target: str, installed: str, tmp_path: Path):
    assert re.search(r"constraints.txt -e ('.*?')", "\n".join(plan(target, f"VENV={tmp_path}")))[1] == installed


@pytest.mark.parametrize("code", [0, 3])
def test_an_environment_is_ready_only_if_its_installation_succeeds(code: int, tmp_path: Path):
    """With a Python whose environments have a `pip` that ends with this code."""
    venv, python = tmp_path / "venv", tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\n[ $1 = -c ] && exit\nmkdir -p $3/bin\n"
        f"printf '#!/bin/sh\\nexit {code}\\n' > $3/bin/pip\nchmod +x $3/bin/pip\n"
    )
    python.chmod(0o755)
    command = ["make", "setup", f"VENV={venv}", f"PYTHON={python}", "-C", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"setting up {venv}: half a minute" in done.stdout
    assert (done.returncode == 0, (venv / ".ready").exists()) == (code == 0, code == 0), done


@pytest.mark.parametrize("target", ["test", "quick"])
def test_a_target_that_takes_long_says_so_at_once(target: str):
    assert re.match(r'echo ".*minutes? on two cores', plan(target)[0])


def test_a_release_has_the_version_of_pyproject():
    """The chart and the image get it from the job that compares it with the tag."""
    (build,) = [step for step in parsed("release.yml")["jobs"]["image"]["steps"] if step.get("id") == "build"]
    arguments = dict(line.split("=", 1) for line in build["with"]["build-args"].splitlines())
    assert arguments.keys() == {"VERSION", "REVISION", "SOURCE"}
    assert arguments["VERSION"] == "${{ needs.wheel.outputs.version }}"
    assert set(build["with"]["platforms"].split(",")) == {"linux/amd64", "linux/arm64"}
    assert "repository: vgpu-webhook\n" in (ROOT / "deploy" / "chart" / "values.yaml").read_text(), (
        "the release replaces it"
    )
