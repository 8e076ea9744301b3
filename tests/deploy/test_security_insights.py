"""SECURITY-INSIGHTS.yml has the fields that version 2 of its schema requires, and agrees with the repository."""

import re

import jsonschema
import yaml

from tests.deploy.files import ROOT, Json
from tests.deploy.test_workflows import PROJECT, WORKFLOWS

FILE = ROOT / "SECURITY-INSIGHTS.yml"
INSIGHTS = yaml.safe_load(FILE.read_text())
SOURCE = PROJECT["urls"]["Source"]


def required(*names: str, **properties: Json) -> Json:
    return {"type": "object", "required": [*names, *properties], "properties": properties}


def several(item: Json) -> Json:
    return {"type": "array", "minItems": 1, "items": item}


# https://github.com/ossf/security-insights-spec, schema.cue: what is required
DATE = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}
VERSION = {"type": "string", "pattern": r"^2\.\d+\.\d+$"}
CONTACTS = several(required("name", "primary"))
KINDS = {"enum": ["fuzzing", "container", "secret", "SCA", "SAST", "other"]}
TOOL = required(
    "name", "results", type=KINDS, rulesets={"type": "array"}, integration=required("adhoc", "ci", "release")
)
SCHEMA = required(
    header=required("url", **{"schema-version": VERSION, "last-updated": DATE, "last-reviewed": DATE}),
    project=required(
        "name",
        administrators=CONTACTS,
        repositories=several(required("name", "url", "comment")),
        **{"vulnerability-reporting": required("reports-accepted", "bug-bounty-available")},
    ),
    repository=required(
        "url",
        "status",
        "accepts-change-request",
        "accepts-automated-change-request",
        license=required("url", "expression"),
        release=required("automated-pipeline", **{"distribution-points": several(required("uri", "comment"))}),
        security=required(assessments=required(self=required("comment")), tools=several(TOOL)),
        **{"core-team": CONTACTS},
    ),
)


def test_it_has_the_required_fields():
    jsonschema.validate(INSIGHTS, SCHEMA)


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
