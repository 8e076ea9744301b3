"""A rule that raises is a bug: the response is HTTP 500, so the failurePolicy applies, and the metric and the log report it."""

import json
from dataclasses import replace

import pytest

from tests.review.test_review import USUAL
from tests.server.reviews import review
from webhook.policy.policy import Policy
from webhook.rules.choices import Level
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.server.admission import Admission
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState


class AuditLog:
    """An audit log that keeps its lines, and says whether they are written."""

    def __init__(self, *, written: bool = True) -> None:
        self.lines: list[bytes] = []
        self.written = written

    def write(self, line: bytes) -> bool:
        self.lines.append(line)
        return self.written


def fail(*_):
    raise ZeroDivisionError("a mistake in a rule")


@pytest.fixture
def broken():
    """A snapshot in which one repair and one check of every pod raise."""
    repair = replace(next(rule for rule in MUTATIONS if rule.id == "scheduler-name"), propose=fail)
    check = replace(next(rule for rule in VALIDATIONS if not rule.needs and not rule.knows), check=fail)

    class BrokenPolicy(Policy):
        def of(self, namespace):
            return replace(super().of(namespace), active=((check, Level.DENY),))

    found = replace(USUAL, policy=BrokenPolicy())
    object.__setattr__(found, "mutations", (repair,))
    return found


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_a_rule_that_raises_gets_http_500_and_is_logged(path, broken, caplog):
    metrics, audit_log = Metrics(), AuditLog()
    admission = Admission(ServerState(broken), [audit_log], metrics)
    status, response = admission.answer(path, json.dumps(review()).encode(), client_verified=True)
    assert status == 500
    found = json.loads(response)
    assert (found["kind"], found["code"], found["reason"]) == ("Status", 500, "InternalError")
    assert "allowed" not in response.decode(), "no verdict: never a silent allow"
    assert "ZeroDivisionError" not in response.decode(), "the caller gets no internals"
    line = f'vgpu_webhook_bad_requests_total{{code="500",endpoint="{path[1:]}"}} 1.0'
    assert line in metrics.exposition().decode()
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert "a mistake in a rule" in caplog.text
    assert audit_log.lines == [], "no decision was made"
