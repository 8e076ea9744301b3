"""The health page and its operations."""

import gzip
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

import pytest

from certs.pki import CLOCK_SKEW, make_ca, make_leaf
from tests.clock import Clock
from tests.console.audit_lines import read
from tests.console.conftest import Fixed, client_of, sample_parts
from tests.console.pages import get_json
from tests.console.rows import page_rows
from tests.questions import needs
from tests.server.program import until
from webhook.audit.follower import LogFollower
from webhook.cluster.watcher import SettingsWatcher
from webhook.errors import ClusterError
from webhook.questions.doctor.certificate import check_certificate
from webhook.questions.doctor.examiner import Examiner
from webhook.questions.doctor.facts import Facts
from webhook.questions.doctor.gather import facts_from_files
from webhook.questions.doctor.operation import WORST_FIRST, Examined
from webhook.questions.doctor.registry import examine
from webhook.settings.sources import SAMPLES, SettingStatus, SourceStatus, or_samples

test_page = page_rows(__file__)

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\u202e"


@cache
def gather_samples():
    return facts_from_files([SAMPLES / "cluster"], Facts())


def console(settings=None, decisions=None, **examined):
    return client_of(settings, decisions, doctor=Examined(**examined))


health = partial(get_json, path="/health")


def doctor_results(client, **query):
    """Of a check that has ended, unless the query has a limit: the console itself waits for 20 s."""
    ask = partial(get_json, client, "/health/doctor", **query)
    return until(lambda: (found := ask()) and ("wait" in query or not found["looking"]) and found)


def part(found, name):
    return next(each for each in found["parts"] if each["check"] == name)


# --- the certificate ----------------------------------------------------------------------------------------------


def test_a_certificate_is_shown_with_its_names_and_dates(tmp_path):
    names = [f"name-{at}.example" for at in range(30)]
    (tmp_path / "tls.crt").write_bytes(make_leaf(make_ca("any", NOW), names, NOW, days=90).certificate)
    found = check_certificate(tmp_path / "tls.crt", NOW + timedelta(hours=1))
    assert (found.names[0], len(found.names), found.more_names) == ("name-0.example", 20, 10)
    assert (found.not_after, found.days_left, found.result.status) == (NOW + timedelta(days=90), 89, "ok")
    assert found.not_before == NOW - CLOCK_SKEW
    assert "name-0.example" in console(certificate=tmp_path / "tls.crt").get("/health").text
    assert check_certificate(tmp_path / "tls.crt", NOW + timedelta(days=100)).days_left == -10
    (tmp_path / "tls.crt").write_bytes(make_ca(HOSTILE, NOW).certificate)
    page = console(certificate=tmp_path / "tls.crt").get("/health").text
    assert "<script>alert" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("content", [b"nonsense", b"x" * (2 << 20), None], ids=["no PEM", "too large", "no file"])
def test_an_invalid_certificate_is_broken(tmp_path, content):
    if content is not None:
        (tmp_path / "tls.crt").write_bytes(content)
    client = console(certificate=tmp_path / "tls.crt")
    found = health(client)
    statuses = [found["certificate"]["result"]["status"], part(found, "certificate")["status"], found["status"]]
    assert statuses == ["broken"] * 3
    assert part(found, "certificate")["remedy"]
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: Path(path).symlink_to("/dev/zero")])
def test_the_check_does_not_wait_for_a_certificate_that_is_not_a_regular_file(tmp_path, make):
    make(tmp_path / "tls.crt")
    found = health(console(certificate=tmp_path / "tls.crt"))
    assert "not a regular file" in part(found, "certificate")["message"]


# --- settings, audit log, all parts -------------------------------------------------------------------------------


class WithProblems(Fixed):
    def statuses(self):
        return (
            SettingStatus("device config", SourceStatus("the API server", None, 3.5), NOW, "abc"),
            SettingStatus("policy", SourceStatus(HOSTILE, f"cannot be used {HOSTILE}", 7_300.0), NOW, "abd"),
            SettingStatus("fleet", SourceStatus("fleet.yaml"), NOW, "abe"),
        )


def test_sources_show_their_age_and_their_problem():
    client = console(WithProblems(sample_parts()))
    found = health(client)
    config, policy, fleet = found["sources"]
    assert (config["source"]["age"], config["source"]["problem"], config["digest"]) == (3.5, None, "abc")
    assert config["since"] == "2026-07-01T12:00:00Z"
    assert policy["source"]["problem"].startswith("cannot be used")
    assert fleet["source"]["age"] is None
    assert part(found, "policy")["status"] == found["status"] == "warning"
    assert part(found, "device config")["status"] == "ok"
    page = client.get("/health").text
    assert "cannot be used" in page
    assert "2 h ago" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_parts_are_listed_worst_first(tmp_path):
    (tmp_path / "tls.crt").write_bytes(make_ca("old", NOW - timedelta(days=400), days=100).certificate)
    client = console(WithProblems(sample_parts()), certificate=tmp_path / "tls.crt")
    found = health(client)
    statuses = [each["status"] for each in found["parts"]]
    assert statuses == ["broken", "warning", "not checked", "not checked", "ok", "ok"]
    page = client.get("/health").text
    assert "Something is broken" in page
    assert page.index("✕") < page.index("▲") < page.index("✓")


def test_the_audit_log_shows_its_time_span_and_foreign_lines(tmp_path):
    file = tmp_path / "audit.jsonl"
    file.write_bytes((SAMPLES / "audit.jsonl").read_bytes() + b"what is this\n" * 3)
    follower = read(file)
    client, count = console(decisions=follower), follower.store.extent().count
    found = health(client)
    log = found["auditLog"]
    assert (log["count"], log["skipped"]["foreign"], log["progress"], log["problem"]) == (count, 3, 1.0, None)
    assert log["extent"]["oldest"] <= log["extent"]["newest"]
    message = f"{count:,} decisions"
    assert part(found, "audit log") == {"check": "audit log", "status": "ok", "message": message, "remedy": ""}
    assert "3 foreign" in client.get("/health").text


@pytest.mark.parametrize("name,problem", [("", ".1.gz: the compressed data ends early"), (".missing", ".missing")])
def test_a_log_that_cannot_be_read_is_a_warning(tmp_path, name, problem):
    file = tmp_path / "audit.jsonl"
    file.write_bytes((SAMPLES / "audit.jsonl").read_bytes())
    (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    found = health(console(decisions=read(Path(f"{file}{name}"))))
    assert part(found, "audit log")["status"] == "warning"
    assert f"{file}{problem}" in found["auditLog"]["problem"]


# --- the doctor ---------------------------------------------------------------------------------------------------


class Gatherer:
    """Gathers facts from the samples, counts its calls, and can be blocked."""

    def __init__(self, error=None, blocked=False):
        self.calls, self.error, self.unblocked = 0, error, threading.Event()
        if not blocked:
            self.unblocked.set()

    def __call__(self):
        self.calls += 1
        self.unblocked.wait()
        if self.error is not None:
            raise self.error
        return gather_samples()


def test_the_results_are_those_of_the_command_and_the_worst_come_first():
    client = console(examiner=Examiner("samples", gather_samples))
    found = doctor_results(client)
    results = examine(gather_samples())
    expected = {(each.check, each.message): (each.status.value, each.remedy) for each in results}
    assert {(each["check"], each["message"]): (each["status"], each["remedy"]) for each in found["lines"]} == expected
    assert len(found["lines"]) == len(results)
    order = [WORST_FIRST.index(each["status"]) for each in found["lines"]]
    assert order == sorted(order)
    assert sum(found["counts"].values()) == len(found["lines"])
    assert found["looking"] is False
    assert part(health(client), "doctor")["status"] == "broken"
    page = client.get("/health?wait=20").text
    assert [line["check"] for line in found["lines"] if f"<code>{line['check']}</code>" not in page] == []
    section = page[page.index("Results of the doctor") :]
    assert section.index("✕</span> broken") < section.index("▲</span> warning") < section.index("✓</span> ok")
    assert "Check again" in section


@needs("usage")
@needs("rules")
@needs("decisions")
def test_sample_data_is_named_and_its_faults_are_not_the_clusters():
    client = console(SettingsWatcher(or_samples({}), None), examiner=Examiner(str(SAMPLES / "cluster"), gather_samples))
    doctor_results(client)
    found = part(health(client), "doctor")
    assert found["status"] == health(client)["status"] == "not checked"
    assert found["message"].startswith("a sample cluster: ")
    assert "Sample data</strong>, not that of a cluster: device config, fleet, list of" in client.get("/fleet").text
    assert "list of quotas, cluster." in client.get("/health").text
    assert "Sample data: your cluster is not checked" in client.get("/health").text
    assert "No problem found" not in client.get("/health").text
    assert "Sample data" not in client.get("/rules").text + client.get("/decisions").text
    log = LogFollower(str(SAMPLES / "audit.jsonl"))
    assert "not that of a cluster: audit log." in console(decisions=log).get("/decisions").text
    assert "Sample data" not in console(Fixed(sample_parts())).get("/fleet").text


def test_the_doctor_runs_again_on_request_and_when_its_result_is_old():
    gather, clock = Gatherer(), Clock()
    client = console(examiner=Examiner("samples", gather, clock))
    anew = {"refresh": "true"}
    for later, query, calls in ((0, {}, 1), (0, anew, 1), (11, {}, 1), (0, anew, 2), (61, {}, 3)):
        clock.now += later
        assert doctor_results(client, **query)["lines"]
        assert health(client)["doctor"]["lines"]
        assert gather.calls == calls


def test_a_page_does_not_wait_for_a_slow_check():
    gather = Gatherer(blocked=True)
    client = console(examiner=Examiner("samples", gather, Clock()))
    page = client.get("/health").text
    assert 'data-looking="/health?wait=20"' in page
    assert 'href="/health?wait=20"' in page
    found = doctor_results(client, wait="0.2")
    assert (found["looking"], found["at"], found["lines"]) == (True, None, [])
    assert part(health(client), "doctor")["message"] == "still checking"
    assert until(lambda: gather.calls) == 1
    gather.unblocked.set()
    assert doctor_results(client)["lines"]
    assert "data-looking" not in client.get("/health").text


def test_an_older_result_is_shown_while_the_doctor_runs():
    gather, clock = Gatherer(), Clock()
    client = console(examiner=Examiner("samples", gather, clock))
    lines = doctor_results(client)["lines"]
    clock.now += 11
    gather.unblocked.clear()
    found = doctor_results(client, refresh="true", wait="0")
    assert (found["looking"], found["lines"]) == (True, lines)
    assert "Its last results are below" in client.get("/health").text
    gather.unblocked.set()
    assert (doctor_results(client)["looking"], gather.calls) == (False, 2)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ClusterError(f"https://dead: no answer in time {HOSTILE}"), "no answer in time"),
        (KeyError(HOSTILE), "a bug in the doctor"),
    ],
)
def test_a_failed_doctor_does_not_hide_the_rest_of_the_page(error, problem):
    gather = Gatherer(error)
    client = console(examiner=Examiner("samples", gather, Clock()))
    found = doctor_results(client)
    assert (found["available"], found["lines"]) == (True, [])
    assert problem in found["problem"]
    response = client.get("/health")
    assert response.status_code == 200
    for text in ("The doctor failed", problem, "Settings in use", "This console"):
        assert text in response.text
    assert "<script>alert" not in response.text
    assert part(health(client), "doctor")["status"] == "warning"
    assert gather.calls == 1


def test_a_failed_run_is_repeated_sooner():
    gather, clock = Gatherer(ClusterError("dead")), Clock()
    client = console(examiner=Examiner("samples", gather, clock))
    assert doctor_results(client)["problem"] == "dead"
    clock.now += 11
    gather.error = None
    found = doctor_results(client)
    assert found["problem"] is None
    assert found["lines"]


def test_concurrent_requests_share_one_check():
    gather = Gatherer(blocked=True)
    client = console(examiner=Examiner("samples", gather, Clock()))
    with ThreadPoolExecutor(6) as threads:
        found = [threads.submit(lambda: doctor_results(client.application.test_client())) for _ in range(6)]
        gather.unblocked.set()
    assert gather.calls == 1
    assert [bool(each.result()["lines"]) for each in found] == [True] * 6
