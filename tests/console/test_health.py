"""The page of health, and the operations behind it."""

import gzip
import os
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.console.conftest import Fixed, sample_parts
from webhook.audit.follower import LogFollower
from webhook.console import examiner
from webhook.console.app import create_app
from webhook.console.certificate import check_certificate
from webhook.console.doctor import WORST_FIRST
from webhook.console.examiner import Examiner
from webhook.console.state import ConsoleState
from webhook.doctor.gather import facts_from_files
from webhook.doctor.registry import examine
from webhook.errors import ClusterError
from webhook.manifests.configurations import configurations
from webhook.settings.files import SAMPLES
from webhook.settings.sources import SettingStatus, SourceStatus

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script>\u202e"


def look_at_samples():
    return facts_from_files([SAMPLES / "cluster"], datetime.now(UTC), None)


def console(settings=None, **parts):
    return create_app(ConsoleState(settings or Fixed(sample_parts()), **parts)).test_client()


def health(client, **question):
    answer = client.get("/api/v1/health", query_string=question)
    assert answer.status_code == 200
    return answer.json


def part(found, name):
    return next(each for each in found["parts"] if each["name"] == name)


def write_certificate(path, before, after, names=("vgpu-webhook.vgpu-webhook.svc",), subject="vgpu-webhook"):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(before)
        .not_valid_after(after)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    return path


# --- the certificate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "left", "status", "words"),
    [
        (timedelta(days=10), timedelta(days=355), "ok", "for 355 days"),
        (timedelta(days=350), timedelta(days=15), "ok", "for 15 days"),
        (timedelta(days=352), timedelta(days=13), "warning", "in 13 days"),
        (timedelta(days=76), timedelta(days=14), "ok", "for 14 days"),
        (timedelta(days=82), timedelta(days=8), "warning", "in 8 days"),
        (timedelta(hours=21), timedelta(hours=3), "ok", "for 3 hours"),
        (timedelta(hours=22), timedelta(hours=2), "warning", "in 2 hours"),
        (timedelta(days=366), timedelta(seconds=-1), "broken", "expired"),
        (timedelta(seconds=-60), timedelta(days=365), "broken", "not valid before"),
    ],
)
def test_a_certificate_is_judged_by_what_is_left_of_it(tmp_path, age, left, status, words):
    found = check_certificate(write_certificate(tmp_path / "tls.crt", NOW - age, NOW + left), NOW)
    assert found.status == status
    assert words in found.message
    assert bool(found.remedy) == (status != "ok")
    assert (found.not_before, found.not_after) == (NOW - age, NOW + left)
    assert found.days_left == left.days


def test_a_certificate_shows_its_names(tmp_path):
    names = [f"name-{at}.example" for at in range(30)]
    file = write_certificate(tmp_path / "tls.crt", NOW, NOW + timedelta(days=90), names, subject=HOSTILE)
    found = check_certificate(file, NOW)
    assert (found.names[0], len(found.names), found.more_names) == ("name-0.example", 20, 10)
    page = console(certificate=file).get("/health").text
    assert "name-0.example" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"\x00" * 100, b"-----BEGIN CERTIFICATE-----\n", b"x" * (2 << 20), None]
)
def test_a_file_that_is_no_certificate_is_a_problem(tmp_path, content):
    file = tmp_path / "tls.crt"
    if content is not None:
        file.write_bytes(content)
    found = health(console(certificate=file))
    assert found["certificate"]["status"] == part(found, "certificate")["status"] == found["status"] == "broken"
    assert part(found, "certificate")["remedy"]
    assert console(certificate=file).get("/health").status_code == 200


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: Path(path).symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_waited_for(tmp_path, make):
    make(tmp_path / "tls.crt")
    asked = threading.Thread(
        target=lambda: found.append(health(console(certificate=tmp_path / "tls.crt"))), daemon=True
    )
    found: list = []
    asked.start()
    asked.join(60)
    assert "not a regular file" in part(found[0], "certificate")["message"]


def test_a_certificate_that_is_not_to_be_seen_is_not_checked(client):
    found = health(client)
    assert found["certificate"] is None
    assert part(found, "certificate")["status"] == "not checked"
    assert "--tls-cert FILE" in client.get("/health").text


# --- settings, audit log, the whole -------------------------------------------------------------------------------


class Troubled(Fixed):
    def statuses(self):
        return (
            SettingStatus("device config", SourceStatus("the API server", None, 3.5), NOW, "abc"),
            SettingStatus("policy", SourceStatus(HOSTILE, f"cannot be used {HOSTILE}", 7_300.0), NOW, "abd"),
            SettingStatus("fleet", SourceStatus("fleet.yaml"), NOW, "abe"),
        )


def test_sources_show_since_when_and_what_is_wrong():
    client = console(Troubled(sample_parts()))
    found = health(client)
    config, policy, fleet = found["sources"]
    assert (config["ageSeconds"], config["problem"], config["digest"]) == (3.5, None, "abc")
    assert config["since"] == "2026-07-01T12:00:00Z"
    assert policy["problem"].startswith("cannot be used")
    assert fleet["ageSeconds"] is None
    assert part(found, "policy")["status"] == found["status"] == "warning"
    assert part(found, "device config")["status"] == "ok"
    page = client.get("/health").text
    assert "cannot be used" in page
    assert "2 h ago" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_an_unknown_fleet_needs_a_look():
    parts = sample_parts()
    settings = Fixed(type(parts)(parts.config, parts.policy, None))
    found = health(console(settings))
    assert part(found, "fleet")["status"] == "warning"
    assert "--fleet FILE" in part(found, "fleet")["remedy"]


def test_the_worst_comes_first(tmp_path):
    expired = write_certificate(tmp_path / "tls.crt", NOW - timedelta(days=400), NOW - timedelta(days=300))
    client = console(Troubled(sample_parts()), certificate=expired)
    found = health(client)
    assert [each["status"] for each in found["parts"]] == [
        "broken",
        "warning",
        "not checked",
        "not checked",
        "ok",
        "ok",
    ]
    page = client.get("/health").text
    assert "Something is broken" in page
    assert page.index("✕") < page.index("▲") < page.index("✓")


def test_nothing_wrong_is_said_with_what_was_not_looked_at(client):
    page = client.get("/health").text
    assert "No problem found, but not everything could be checked" in page


def test_the_audit_log_has_its_span_and_what_was_skipped(tmp_path):
    file = tmp_path / "audit.jsonl"
    file.write_bytes((SAMPLES / "audit.jsonl").read_bytes() + b"what is this\n" * 3)
    journal = LogFollower(str(file))
    journal.look()
    client = console(journal=journal)
    found = health(client)
    log = found["auditLog"]
    assert (log["decisions"], log["foreign"], log["progress"], log["problem"]) == (
        journal.store.extent().count,
        3,
        1.0,
        None,
    )
    assert log["oldest"] <= log["newest"]
    assert part(found, "audit log") == {
        "name": "audit log",
        "status": "ok",
        "message": f"{journal.store.extent().count:,} decisions",
        "remedy": "",
    }
    assert "3 foreign" in client.get("/health").text
    journal.stop()


def test_a_rotated_file_that_is_damaged_is_a_warning(tmp_path):
    file = tmp_path / "audit.jsonl"
    file.write_bytes((SAMPLES / "audit.jsonl").read_bytes())
    (tmp_path / "audit.jsonl.1.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    journal = LogFollower(str(file))
    journal.look()
    found = health(console(journal=journal))
    assert part(found, "audit log")["status"] == "warning"
    assert found["auditLog"]["problem"] == f"{file}.1.gz: the compressed data ends early"
    journal.stop()


def test_an_audit_log_that_cannot_be_read_is_a_warning(tmp_path):
    journal = LogFollower(str(tmp_path / "missing.jsonl"))
    journal.look()
    found = health(console(journal=journal))
    assert part(found, "audit log")["status"] == "warning"
    assert "missing.jsonl" in found["auditLog"]["problem"]
    journal.stop()


# --- the doctor ---------------------------------------------------------------------------------------------------


def ask(client, **question):
    answer = client.get("/api/v1/health/doctor", query_string=question)
    assert answer.status_code == 200
    return answer.json


class Look:
    """Looks at the samples, counts how often, and may be held up."""

    def __init__(self, error=None, held=False):
        self.times = 0
        self.error = error
        self.go_on = threading.Event()
        if not held:
            self.go_on.set()

    def __call__(self):
        self.times += 1
        assert self.go_on.wait(30)
        if self.error is not None:
            raise self.error
        return look_at_samples()


def test_without_a_cluster_it_explains_how_to_connect_one(client):
    found = ask(client)
    assert found["available"] is False
    assert "--cluster" in found["problem"]
    assert "--doctor-from DIR" in found["problem"]
    page = client.get("/health").text
    assert "--doctor-from DIR" in page
    assert "data-looking" not in page


def test_it_shows_the_results_of_the_command():
    found = ask(console(doctor=Examiner("samples", look_at_samples)))
    expected = examine(look_at_samples()[0], partial(configurations, all_pods=True))
    assert sorted(
        (each["check"], each["status"], each["message"], each["remedy"]) for each in found["lines"]
    ) == sorted((told.check, told.status.value, told.message, told.remedy) for told in expected)
    order = [WORST_FIRST.index(each["status"]) for each in found["lines"]]
    assert order == sorted(order)
    assert sum(found["counts"].values()) == len(found["lines"])
    assert found["looking"] is False


def test_the_page_groups_its_lines_worst_first():
    client = console(doctor=Examiner("samples", look_at_samples))
    page = client.get("/health?wait=20").text
    found = ask(client)
    for line in found["lines"]:
        assert f"<code>{line['check']}</code>" in page
    section = page[page.index("Results of the doctor") :]
    assert section.index("✕</span> broken") < section.index("▲</span> warning") < section.index("✓</span> ok")
    assert "Check again" in section
    assert part(health(client), "doctor")["status"] == "broken"


def test_a_result_holds_for_a_minute_and_one_look_serves_all():
    look = Look()
    client = console(doctor=Examiner("samples", look))
    for _ in range(5):
        assert ask(client)["lines"]
    assert health(client)["doctor"]["lines"]
    assert ask(client, refresh="true")["lines"]  # sooner than after 10 s
    assert look.times == 1


def test_it_looks_again_on_request_and_when_the_result_is_old(monkeypatch):
    look = Look()
    client = console(doctor=Examiner("samples", look))
    ask(client)
    monkeypatch.setattr(examiner, "REPEAT_SECONDS", 0.0)
    ask(client)
    assert look.times == 1
    ask(client, refresh="true")
    assert look.times == 2
    monkeypatch.setattr(examiner, "FRESH_SECONDS", 0.0)
    ask(client)
    assert look.times == 3


def test_a_page_does_not_wait_for_a_slow_check():
    look = Look(held=True)
    client = console(doctor=Examiner("samples", look))
    page = client.get("/health").text
    assert 'data-looking="/health?wait=20"' in page
    assert 'href="/health?wait=20"' in page
    found = ask(client, wait="0.2")
    assert (found["looking"], found["at"], found["lines"]) == (True, None, [])
    assert part(health(client), "doctor")["message"] == "still checking"
    assert look.times == 1
    look.go_on.set()
    assert ask(client, wait="20")["lines"]
    assert "data-looking" not in client.get("/health").text


def test_an_older_result_stays_while_it_looks_again(monkeypatch):
    look = Look()
    client = console(doctor=Examiner("samples", look))
    lines = ask(client)["lines"]
    monkeypatch.setattr(examiner, "REPEAT_SECONDS", 0.0)
    look.go_on.clear()
    found = ask(client, refresh="true", wait="0")
    assert (found["looking"], found["lines"]) == (True, lines)
    assert "Its last results are below" in client.get("/health").text
    look.go_on.set()
    assert ask(client, wait="20")["looking"] is False


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ClusterError(f"https://dead: no answer in time {HOSTILE}"), "no answer in time"),
        (KeyError(HOSTILE), "a bug in the doctor"),
    ],
)
def test_a_doctor_that_fails_leaves_the_rest_of_the_page(error, words):
    look = Look(error)
    client = console(doctor=Examiner("samples", look))
    found = ask(client)
    assert (found["available"], found["lines"]) == (True, [])
    assert words in found["problem"]
    answer = client.get("/health")
    assert answer.status_code == 200
    for text in ("The doctor failed", words, "Settings in use", "This console"):
        assert text in answer.text
    assert "<script>alert" not in answer.text
    assert part(health(client), "doctor")["status"] == "warning"
    assert look.times == 1


def test_a_failed_look_is_repeated_sooner(monkeypatch):
    look = Look(ClusterError("dead"))
    client = console(doctor=Examiner("samples", look))
    assert ask(client)["problem"] == "dead"
    monkeypatch.setattr(examiner, "FAILED_SECONDS", 0.0)
    look.error = None
    found = ask(client)
    assert found["problem"] is None
    assert found["lines"]


def test_concurrent_requests_share_one_check():
    look = Look(held=True)
    client = console(doctor=Examiner("samples", look))
    found = []
    threads = [threading.Thread(target=lambda: found.append(ask(client.application.test_client()))) for _ in range(6)]
    for thread in threads:
        thread.start()
    look.go_on.set()
    for thread in threads:
        thread.join(30)
    assert look.times == 1
    assert [bool(each["lines"]) for each in found] == [True] * 6


def test_versions_and_uptime_are_shown(client):
    found = health(client)
    assert found["python"].startswith("3.")
    assert found["uptimeSeconds"] > 0
    assert found["version"]
