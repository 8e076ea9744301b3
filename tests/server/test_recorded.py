"""The server reviews every recorded request and writes an audit line for each."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from tests.server.program import Program, until
from tests.server.reviews import RECORDED, admission_response, denying_rules
from webhook.audit.decision import Decision

KEYS = {to_camel(each.name) for each in fields(Decision)} - {"repairs", "exceptions"}


def test_each_recorded_review_has_one_audit_line(program: Program, audit_file: Path):
    reviewed = []
    with program.connect() as connection:
        for path in ("/mutate", "/validate"):
            for file in RECORDED:
                body = file.read_bytes()
                verdict = admission_response(connection.post(path, body))
                request = json.loads(body)["request"]
                assert verdict["uid"] == request["uid"]
                reviewed.append((path, request, verdict))
    assert len(RECORDED) > 50
    lines = until(lambda: _lines(audit_file, len(reviewed)))
    for (path, request, verdict), line in zip(reviewed, lines, strict=True):
        assert set(line) == (KEYS | {"repairs"} if line["patch"] else KEYS)
        assert (line["uid"], line["endpoint"], line["allowed"]) == (request["uid"], path[1:], verdict["allowed"])
        assert (line["operation"], line["user"]) == (request["operation"], request["userInfo"]["username"])
        assert (line["dryRun"], line["clientVerified"]) == (bool(request.get("dryRun")), False)
        assert bool(line["patch"]) == ("patch" in verdict)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["time"])
        assert 0 <= line["durationUs"] < 10_000_000
        assert set(line["digests"]) == {"config", "policy", "fleet"}
        if "auditAnnotations" in verdict:
            assert line["id"] == verdict["auditAnnotations"]["decision-id"]
            denials = [finding["rule"] for finding in line["findings"] if finding["level"] == "deny"]
            rules = denying_rules(verdict)
            assert rules == denials[: len(rules)]
    assert {verdict["allowed"] for _, _, verdict in reviewed} == {True, False}


def _lines(file: Path, least: int) -> list[dict[str, Any]]:
    lines = file.read_text().splitlines()
    return [json.loads(line) for line in lines] if len(lines) >= least else []
