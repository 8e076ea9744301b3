"""`vgpu-webhook replay`: its output, exit codes and errors, also for the log of a running webhook."""

import json
from pathlib import Path
from typing import Any

from tests import fork_server
from tests.audit import sample
from tests.audit.recording import record
from tests.cli.rows import rows
from tests.reviewing import RECORDED, request
from tests.server.program import Program
from tests.server.reviews import DENIED, review
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLES, load, or_samples

LOG = SAMPLES / "audit.jsonl"
INPUTS = ("--sample",)
LINES = [json.loads(line) for line in LOG.read_bytes().splitlines()]


def log_of(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


test_command = rows(
    __file__,
    edited=LOG.read_text().replace("write 100 or less", "write a hundred or less"),
    omitted=log_of(*({**line, "request": {"omitted": "too large"}} for line in LINES)),
)


def test_the_sample_log_is_current():
    """If it fails, run `python -m tests.audit.sample` to write the log again."""
    assert list(map(json.loads, sample.lines())) == LINES


def test_what_if_the_split_count_changes(run, write):
    policy = write("policy.yaml", {"target": {"devicePlugin": "1.11.0"}})  # which serves several containers
    base = SnapshotInputs.of(load(or_samples({"policy": policy}))).snapshot()
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}
    containers = [{"name": f"c{n}", "resources": {"limits": limits}} for n in range(60)]
    spec = {"schedulerName": "volcano", "containers": containers}
    log = write("log", record(request({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}), base).decode())
    assert run("replay", *INPUTS, "--policy", policy, log).code == 0
    result = run("replay", *INPUTS, "--policy", policy, "--what-if", "split=4", "-o", "json", log)
    change, summary = result.lines
    assert (result.code, change["direction"], change["verdict"]) == (1, "allowed -> refused", "changed")
    assert {finding["rule"] for finding in change["after"]["findings"] if finding["level"] == "deny"}
    assert summary["summary"]["otherDigests"] == []


def test_hostile_lines_are_shown_escaped(run, tmp_path: Path):
    hostile, log = "\x1b[2J\u202eevil", tmp_path / "log"
    finding = {**LINES[1]["findings"][0], "rule": hostile, "message": hostile, "path": hostile}
    names = dict.fromkeys(("id", "uid", "user", "namespace", "name"), hostile)
    findings = [finding, *LINES[1]["findings"][1:]]
    log.write_text(log_of({**LINES[1], **names, "findings": findings, "digests": {"config": hostile}}))
    for output in ("table", "json"):
        result = run("replay", *INPUTS, "-o", output, log)
        assert result.code == 1
        assert "evil" in result.out
        assert all(line.isprintable() for line in result.out.splitlines())


def test_the_log_of_a_running_webhook_is_reproduced(run, tmp_path: Path):
    log, state = tmp_path / "audit.jsonl", tmp_path / "state"
    options = ["--standalone", "--state-dir", str(state), "--audit-log", str(log), "--audit-max-bytes", "100Ki"]
    program = Program(options, tmp_path / "stderr", state / "ca.crt", starts=fork_server.Popen)
    try:
        program.wait_ready()
        sent = 0
        with program.connect() as connection:
            documents = [json.loads(file.read_bytes()) for file in RECORDED] + [review(), review(spec=DENIED)]
            for document in documents:
                for path in ("/mutate", "/validate"):
                    sent += connection.post(path, document).status == 200
    finally:
        program.close()
    assert (tmp_path / "audit.jsonl.1").exists()
    summary = run("replay", *INPUTS, "-o", "json", log).lines[-1]["summary"]
    assert (summary["verdicts"], summary["otherDigests"]) == ({"same": sent}, [])
    assert sent > 100


def test_excluded_mutations_still_apply(run):
    """A pod is validated as the new inputs repair it, even if its /mutate line is filtered out."""
    options = ("--set", "schedulerName=other", "--set", "schedulerNames=[other]", "-o", "json")
    for filters in ((), ("--endpoint", "validate")):
        lines = run("replay", *INPUTS, *options, *filters, LOG).lines[:-1]
        found = [line["name"] for line in lines if line["endpoint"] == "validate"]
        assert found == ["inference"], "its manifest requests `volcano`"
