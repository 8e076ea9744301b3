"""The log of the server: as text or as JSON, filtered by level, with the lines of gunicorn."""

import json
import logging
import os
import signal
import subprocess
from pathlib import Path

import pytest

from certs.pki import replace
from tests.server.conftest import SETTINGS, Start
from tests.server.live import QUICK
from tests.server.program import until
from tests.server.reviews import admission_response, review
from webhook.server.logs import FORMATS, JsonFormatter, configure_logging


@pytest.fixture
def restored():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def logged(capsys, *settings, **exc):
    configure_logging(*settings)
    logging.getLogger("webhook.x").warning("a\n%s", "\x1b", **exc)
    logging.getLogger("webhook.x").info("b")
    return capsys.readouterr().err


@pytest.mark.usefixtures("restored")
def test_each_json_line_is_one_object(capsys):
    try:
        int("no")
    except ValueError:
        first, second = map(json.loads, logged(capsys, "info", "json", exc_info=True).splitlines())
    assert first.keys() == {"time", "level", "logger", "message", "exception"}
    assert (first["level"], first["logger"], first["message"]) == ("warning", "webhook.x", "a\n\x1b")
    assert first["exception"].endswith("'no'")
    assert second.keys() == {"time", "level", "logger", "message"}


@pytest.mark.usefixtures("restored")
def test_no_text_of_a_message_forges_a_line_or_prevents_it(capsys):
    """Such as the key of a ConfigMap, or a path that is no UTF-8."""
    text = "p\udcff\n2026-11-28 00:00:00,000 ERROR forged\x1b[31m"
    for form in FORMATS:
        configure_logging("info", form)
        logging.getLogger("webhook.x").warning("%s", text)
    as_text, as_json = capsys.readouterr().err.splitlines()
    assert as_text.endswith(r" WARNING p\udcff\n2026-11-28 00:00:00,000 ERROR forged\x1b[31m")
    assert json.loads(as_json)["message"] == text.replace("\udcff", r"\udcff")


@pytest.mark.usefixtures("restored")
def test_lines_below_the_level_are_left_out(capsys):
    assert "INFO b" in logged(capsys)
    assert "INFO b" not in logged(capsys, "warning")


def test_the_time_is_utc():
    record = logging.LogRecord("x", logging.INFO, "", 0, "m", (), None)
    record.created = 1_800_000_000.5
    assert json.loads(JsonFormatter().format(record))["time"] == "2027-01-15T08:00:00.500Z"


def test_every_line_of_a_server_is_json(start: Start):
    program = start(*SETTINGS, "--log-format", "json", "--log-level", "debug")
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait() == 0
    lines = [json.loads(line) for line in program.log_path.read_text().splitlines()]
    assert any(line["message"].startswith("serving on https://") for line in lines)


def test_without_an_audit_log_and_at_level_error_nothing_is_written(start: Start):
    program = start(*SETTINGS, "--log-level", "error", "--audit-log", "", stdout=subprocess.PIPE)
    with program.connect() as connection:
        admission_response(connection.post("/mutate", review()))
        assert 'vgpu_webhook_build_info{python="' in connection.request("GET", "/metrics").body.decode()
    assert (program.log(), program.close()) == ("", b"")


def test_a_key_of_the_policy_forges_no_line(start: Start, tmp_path: Path):
    policy = tmp_path / os.fsdecode(b"p\xff")
    policy.write_text("{}")
    program = start("--policy", str(policy), "--audit-log", "", "--log-format", "json", pace=QUICK)
    replace(policy, rb'"x\nERROR forged\u001b[31m": 1', 0o644)
    page = until(lambda: "last good" in (text := program.readyz()) and text)
    assert r"p\udcff: " in page
    assert r"x\nERROR forged\x1b[31m" in page
    # The page says so before the log does.
    said = until(lambda: "policy changed, but cannot be used" in (text := program.log()) and text)
    logged = [json.loads(line)["message"] for line in said.splitlines()]
    assert any("policy changed, but cannot be used" in message and r"p\udcff: " in message for message in logged)
