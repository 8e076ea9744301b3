"""SECURITY-INSIGHTS.yml has the fields that version 2 of its schema requires, and agrees with the repository."""

import re

import pytest
import yaml

from tests.deploy.files import ROOT, Json
from tests.deploy.test_workflows import PROJECT, WORKFLOWS

FILE = ROOT / "SECURITY-INSIGHTS.yml"
INSIGHTS = yaml.safe_load(FILE.read_text())
SOURCE = PROJECT["urls"]["Source"]
# https://github.com/ossf/security-insights-spec, schema.cue: what is required, and how some of it is written
REQUIRED = {
    "header": r"url schema-version=2[.]\d+[.]\d+ last-updated=\d{4}-\d\d-\d\d last-reviewed=\d{4}-\d\d-\d\d",
    "project": "name",
    "project.administrators": "name primary",
    "project.repositories": "name url comment",
    "project.vulnerability-reporting": "reports-accepted bug-bounty-available",
    "repository": "url status accepts-change-request accepts-automated-change-request",
    "repository.core-team": "name primary",
    "repository.license": "url expression",
    "repository.release": "automated-pipeline",
    "repository.release.distribution-points": "uri comment",
    "repository.security.assessments.self": "comment",
    "repository.security.tools": r"name results rulesets=\[.* type=(?:fuzzing|container|secret|SCA|SAST|other)",
    "repository.security.tools.integration": "adhoc ci release",
}


def at(value: Json | list[Json], path: str) -> list[Json]:
    """The objects at a path, through lists."""
    if isinstance(value, list):
        return [found for each in value for found in at(each, path)]
    step, _, rest = path.partition(".")
    return at(value[step], rest) if path else [value]


@pytest.mark.parametrize("path", REQUIRED)
def test_it_has_the_required_fields(path: str):
    found = at(INSIGHTS, path)
    assert found
    for field, _, pattern in (each.partition("=") for each in REQUIRED[path].split()):
        assert all(re.fullmatch(pattern or ".+", str(each[field])) for each in found), field


def test_it_names_the_repository_its_licence_and_files_that_exist():
    repository = INSIGHTS["repository"]
    assert (repository["url"], repository["license"]["expression"]) == (SOURCE, PROJECT["license"])
    files = re.findall(rf"{re.escape(SOURCE)}/blob/main/(\S+)", FILE.read_text())
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert FILE.name in files


def test_the_tools_run_in_workflows_or_tests():
    used = "".join(path.read_text() for path in [*WORKFLOWS, ROOT / "pyproject.toml"]).lower()
    tools = [tool["name"] for tool in INSIGHTS["repository"]["security"]["tools"]]
    assert [name for name in tools if name.lower().split()[-1] not in used] == []
