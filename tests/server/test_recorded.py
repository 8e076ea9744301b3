"""Over HTTP, each recorded request gets the answer and the audit line that the core makes; tests/golden has these answers."""

import re
from pathlib import Path

import orjson

from tests.reviewing import RECORDED, snapshot
from tests.server.program import Program, until
from webhook.audit.writer import Exchange, line
from webhook.review.endpoints import mutate, validate
from webhook.wire.codec import decode, encode


def test_each_recorded_review_has_one_answer_and_one_audit_line(program: Program, audit_file: Path):
    used, expected = snapshot("mixed"), []
    with program.connect() as connection:
        for path, endpoint in (("/mutate", mutate), ("/validate", validate)):
            for file in RECORDED:
                body = file.read_bytes()
                request = decode(body)
                outcome = endpoint(request, used)
                response = connection.post(path, body)
                assert (response.status, response.headers["content-type"]) == (200, "application/json")
                assert response.body == encode(request, outcome.answer())
                expected.append(orjson.loads(line(Exchange(path[1:], 0), request, outcome, used)))
    written = until(lambda: len(found := audit_file.read_bytes().splitlines()) >= len(expected) and found)
    for found, wanted in zip(map(orjson.loads, written), expected, strict=True):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", found["time"])
        assert found["durationUs"] > 0
        assert found == wanted | {"time": found["time"], "durationUs": found["durationUs"]}
