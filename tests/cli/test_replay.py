"""`vgpu-webhook replay` as a user runs it, and of what a real webhook recorded."""

import json
from pathlib import Path

import pytest

from tests.audit import sample
from tests.audit.recording import record
from tests.cli.conftest import Ran
from tests.reviewing import request
from tests.server.program import Program
from tests.server.reviews import DENIED, RECORDED, review
from webhook.settings.files import SAMPLES, SettingsPaths

LOG = SAMPLES / "audit.jsonl"
INPUTS = ("--fleet", SAMPLES / "fleet.yaml", "--device-config", SAMPLES / "device-config.yaml")


def test_the_sample_log_is_what_the_webhook_would_write():
    """If not, `python -m tests.audit.sample` writes it anew."""
    kept, fresh = ([json.loads(line) for line in lines] for lines in (LOG.read_bytes().splitlines(), sample.lines()))
    assert kept == fresh


def test_the_old_inputs_change_nothing(run):
    ran = run("replay", *INPUTS, LOG)
    assert (ran.code, ran.out, ran.err) == (0, "16 decisions replayed: 16 same\n", "")


def test_what_if_a_rule_denied(run):
    ran = run("replay", *INPUTS, "--set", "rules.host-access=deny", LOG)
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "allowed -> denied  1",
        "  in team-speech (1)",
        "  by ben@example.org (1)",
        "  for one: Pod debug in team-speech, 2026-11-20 09:35:00 UTC, decision " + _id("debug", "validate"),
        "    warn -> deny  host-access  hostPID: true lets the pod reach the other tenants of its cards; remove it",
        "",
        "16 decisions replayed: 15 same, 1 changed",
        "  1 allowed -> denied",
    ]


def test_what_if_in_some_namespaces_only(run):
    directions = "directions"
    ran = run("replay", *INPUTS, "-o", "json", "--set", "namespaces.team-vision.rules.card-count=warn", LOG)
    assert ran.lines[-1]["summary"][directions] == {"new warnings": 1, "denied -> allowed": 3}
    ran = run("replay", *INPUTS, "-o", "json", "--set", "namespaces.other.rules.card-count=warn", LOG)
    assert (ran.code, len(ran.lines)) == (0, 1)


def test_what_if_the_split_count_were_another(run, write):
    base = SettingsPaths(INPUTS[3], fleet=INPUTS[1]).load().inputs().snapshot()
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}
    many = [{"name": f"c{n}", "resources": {"limits": limits}} for n in range(60)]
    spec = {"schedulerName": "volcano", "containers": many}
    log = write("log", record(request({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}), base).decode())
    assert run("replay", *INPUTS, log).code == 0
    ran = run("replay", *INPUTS, "--what-if", "split=4", "-o", "json", log)
    change, summary = ran.lines
    assert (ran.code, change["direction"], change["verdict"]) == (1, "allowed -> denied", "changed")
    assert {finding["rule"] for finding in change["after"]["findings"] if finding["level"] == "deny"}
    assert summary["summary"]["otherDigests"] == []


def test_other_inputs_are_listed(run):
    ran = run("replay", LOG)
    assert ran.code == 1
    assert "16 made with another fleet (" in ran.out
    assert ") than the one given (unknown)" in ran.out
    assert "16 made with another device config (" in ran.out
    assert "another policy" not in ran.out


def test_decisions_that_are_not_reproduced_are_counted(run, tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(LOG.read_bytes().replace(b"write 100 or less", b"write a hundred or less"))
    ran = run("replay", *INPUTS, log)
    assert ran.code == 1
    assert "15 same, 1 not reproduced" in ran.out
    assert "by another version of the webhook, or nodes have other names or labels now" in ran.out


def test_decisions_without_their_pod_are_counted(run, tmp_path: Path):
    log = tmp_path / "log"
    records = [{**json.loads(line), "request": {"omitted": "too large"}} for line in LOG.read_bytes().splitlines()]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    ran = run("replay", *INPUTS, log)
    assert ran.code == 0
    assert "16 not replayable: the line was too long to hold the pod" in ran.out


def test_filters(run):
    assert _summary(run("replay", *INPUTS, "-o", "json", "--denied", LOG))["decisions"] == 4


@pytest.mark.parametrize(
    "options, message",
    [
        (["--set", "rules.nothing=deny"], "no rule is called 'nothing'"),
        (["--set", "rules"], "write KEY=VALUE"),
        (["--policy", "none.yaml"], "none.yaml: No such file"),
        (["--what-if", "split=4"], "with --fleet FILE"),
        (["none.jsonl"], "none.jsonl: No such file"),
    ],
)
def test_bad_input(run, options: list[str], message: str):
    ran = run("replay", *options, LOG)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("value", ["split=0", "split=x", "split", "memory=4", "split=1001"])
def test_bad_what_if(run, value: str):
    assert run("replay", "--what-if", value, LOG).code == 2


def test_hostile_lines_are_shown_escaped(run, tmp_path: Path):
    evil = "\x1b[2J\u202eevil"
    log = tmp_path / "log"
    record = json.loads(LOG.read_bytes().splitlines()[1])
    record |= dict.fromkeys(("id", "uid", "user", "namespace", "name"), evil)
    record["findings"][0] |= {"rule": evil, "message": evil, "path": evil}
    record["digests"] = {"config": evil}
    log.write_text(json.dumps(record) + "\n")
    for output in ("table", "json"):
        ran = run("replay", *INPUTS, "-o", output, log)
        assert ran.code == 1
        assert "evil" in ran.out
        assert all(line.isprintable() for line in ran.out.splitlines())


def test_what_a_real_webhook_records_is_reproduced(run, tmp_path: Path):
    log, state = tmp_path / "audit.jsonl", tmp_path / "state"
    options = ["--standalone", "--state-dir", str(state), "--audit-log", str(log), "--audit-max-bytes", "40000"]
    program = Program([*options, "--audit-keep", "99"], tmp_path / "stderr", state / "ca.crt")
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
    summary = _summary(run("replay", *INPUTS, "-o", "json", log))
    assert summary["verdicts"] == {"same": sent}
    assert sent > 100
    assert summary["otherDigests"] == []


def _summary(ran: Ran) -> dict[str, object]:
    found: dict[str, object] = ran.lines[-1]["summary"]
    return found


def _id(name: str, endpoint: str) -> str:
    records = map(json.loads, LOG.read_bytes().splitlines())
    return next(str(record["id"]) for record in records if (record["name"], record["endpoint"]) == (name, endpoint))


def test_what_is_filtered_away_still_repairs(run):
    """A pod is judged as other inputs would have repaired it, also where its line of /mutate is not requested."""
    tried = ("--set", "schedulerName=other", "--set", "schedulerNames=[other]", "-o", "json")

    def judged(*filters: str) -> list[str]:
        lines = run("replay", *INPUTS, *tried, *filters, LOG).lines[:-1]
        return [line["id"] for line in lines if line["endpoint"] == "validate"]

    assert judged("--endpoint", "validate") == judged() == [_id("inference", "validate")]  # its author wrote `volcano`
