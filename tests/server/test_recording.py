"""Decisions are recorded after their answers, those of one turn of the event loop in one write; none is lost at the end."""

import asyncio
import json
from pathlib import Path

from tests.review.test_review import USUAL
from tests.server.conftest import SETTINGS, Start
from tests.server.reviews import admission_response, review
from tests.server.test_rule_that_raises import AuditLog
from tests.settings.test_review import config_map
from webhook.server.admission import MAX_UNRECORDED, Admission, Sender
from webhook.server.metrics import Metrics
from webhook.server.state import ServerState


def begin_review(admission: Admission, number: int, statuses: list[int]) -> None:
    body = json.dumps(review(f"u-{number}")).encode()
    admission.review("/mutate", body, lambda status, _: statuses.append(status), Sender(""))


def test_the_lines_of_one_turn_are_written_together_after_the_answers():
    log, metrics = AuditLog(), Metrics()
    admission = Admission(ServerState(USUAL), [log], metrics)

    async def turns(*sizes: int) -> None:
        for size in sizes:
            before = len(log.lines)
            for number in range(size):
                begin_review(admission, number, statuses)
            assert len(log.lines) - before == size // MAX_UNRECORDED, "nothing is written before the answers are sent"
            await asyncio.sleep(0)

    statuses: list[int] = []
    asyncio.run(turns(3, MAX_UNRECORDED + 1))
    assert statuses == [200] * (MAX_UNRECORDED + 4)
    uids = [[json.loads(line)["uid"] for line in lines.splitlines()] for lines in log.lines]
    assert [len(found) for found in uids] == [3, MAX_UNRECORDED, 1]
    assert uids[0] == ["u-0", "u-1", "u-2"]
    total = MAX_UNRECORDED + 4
    assert f'outcome="repaired"}} {total}.0' in metrics.exposition().decode()


def test_while_lines_wait_each_decision_is_recorded_at_once():
    """Else the reader of a pipe gets 64 KiB for each batch, however fast it reads."""
    log = AuditLog(written=False)
    admission = Admission(ServerState(USUAL), [log], Metrics())

    async def turn() -> None:
        for number in range(4):
            begin_review(admission, number, [])
            if number == 1:
                await asyncio.sleep(0)

    asyncio.run(turn())
    assert [len(lines.splitlines()) for lines in log.lines] == [2, 1, 1]


def test_neither_a_full_file_nor_sigterm_loses_a_line(start: Start, tmp_path: Path):
    file = tmp_path / "audit.jsonl"
    program = start(*SETTINGS, "--audit-log", str(file), "--audit-max-bytes", "32Ki")
    with program.connect() as connection:
        for number in range(50):
            admission_response(connection.post("/mutate", review(f"u-{number}")))
        program.process.terminate()
        assert program.process.wait() == 0
    text = Path(f"{file}.1").read_text() + file.read_text()
    assert [json.loads(line)["uid"] for line in text.splitlines()] == [f"u-{n}" for n in range(50)]


def test_an_exception_that_has_ended_is_named_when_the_policy_is_written():
    text = "exceptions: [{namespace: a, names: [b], rules: [card-count], until: 2026-01-01, reason: c, owner: d}]"
    raw = config_map("vgpu-webhook/vgpu-webhook-policy", "policy.yaml", text)
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    body = json.dumps(review(kind=kind, namespace="vgpu-webhook", name="vgpu-webhook-policy", object=raw)).encode()
    admission = Admission(ServerState(USUAL), [], Metrics())
    _, answer = admission.answer("/settings", body, client_verified=False)
    (warning,) = json.loads(answer)["response"]["warnings"]
    assert "exceptions.0: it ended on 2026-01-01" in warning
