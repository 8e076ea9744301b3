"""What runs `review` elsewhere: the action for GitHub, the pre-commit hook, and the example for GitLab."""

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.deploy.files import ROOT
from tests.deploy.test_workflows import ACTION, PROJECT
from webhook.cli.main import main
from webhook.questions.review.text import FORMATS
from webhook.settings.sources import SAMPLES


def review(tmp_path: Path, folder: Path = SAMPLES, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the last step of the action as a runner does, with the command of this environment."""
    action = yaml.safe_load(ACTION.read_text())
    step = action["runs"]["steps"][-1]
    defaults = {name: one.get("default", "") for name, one in action["inputs"].items()} | {"output": "text"}
    values = defaults | {name.replace("_", "-"): value for name, value in inputs.items()}
    inputs_of = re.compile(r"\$\{\{ inputs\.([\w-]+) }}")
    environment = {name: values[inputs_of.fullmatch(text)[1]] for name, text in step["env"].items()}
    (tmp_path / "vgpu-webhook").symlink_to(sys.prefix)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environment | {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(tmp_path)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_reviews_what_its_globs_match(tmp_path: Path):
    settings = {"fleet": "fleet.yaml", "device_config": "device-config.yaml", "policy": "policy.yaml"}
    done = review(tmp_path, files="pod-*.yaml\n**/pod-refused.yaml", output="json", **settings)
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 4), done.stderr


def test_no_file_name_is_an_option(tmp_path: Path):
    """The author of a pull request may not choose the policy that it is reviewed by."""
    (tmp_path / "weak.yaml").write_text("enforcement: audit\n")
    for name in ("pod.yaml", "--policy=weak.yaml", "--help.yaml"):
        (tmp_path / name).write_text((SAMPLES / "pod-refused.yaml").read_text())
    done = review(tmp_path, files="pod.yaml\n--*.yaml", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "3 documents: 3 REFUSED"), done.stderr


def test_the_action_can_fail_on_warnings_and_writes_a_report(tmp_path: Path):
    report, spaced = tmp_path / "a report", tmp_path / "a pod.yaml"
    spaced.write_text((SAMPLES / "pod-warned.yaml").read_text())
    done = review(tmp_path, files=str(spaced), fleet="fleet.yaml", warnings_as_errors="true", report=str(report))
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert "a pod.yaml" in report.read_text()


def test_the_action_reports_that_nothing_matches(tmp_path: Path):
    done = review(tmp_path, files="nowhere/*.yaml")
    assert (done.returncode, done.stdout) == (2, "::error::no file matches the input files: nowhere/*.yaml\n")


def test_the_action_names_the_outputs_of_the_command():
    described = re.findall(r"\w+", yaml.safe_load(ACTION.read_text())["inputs"]["output"]["description"])
    for output in ("github", "sarif", "junit", "text", "json"):
        assert output in described
        assert output == "text" or output in FORMATS


def test_the_pre_commit_hook_runs_a_command_on_the_changed_files():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["language"], hook["types"], hook.get("pass_filenames", True)) == ("python", ["yaml"], True)
    command, *options = hook["entry"].split()
    assert command in PROJECT["scripts"]
    assert main([*options, str(SAMPLES / "pod-refused.yaml")]) == 1


def test_the_example_for_gitlab_keeps_its_report_also_if_pods_are_refused():
    (job,) = yaml.safe_load((ROOT / "docs" / "examples" / "gitlab-ci.yml").read_text()).values()
    assert job["artifacts"]["when"] == "always"
    assert job["script"][-1].endswith(f"> {job['artifacts']['reports']['junit']}")
    assert job["script"][0].split()[-1].startswith(PROJECT["urls"]["Source"])
    assert "vgpu-webhook review --output junit" in job["script"][-1]
