"""When the certificate changes on disk, new connections get the new one, no request fails, and a bad pair is not used."""

import contextlib
import os
import resource
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs import pki
from certs.pki import Pair, replace
from tests.server.conftest import Start
from tests.server.live import QUICK
from tests.server.program import Authority, Program, until
from tests.server.reviews import admission_response, review
from webhook.cluster.file_watcher import WatchedFiles, signature
from webhook.server.tls import ServingTls


@pytest.fixture(scope="module")
def reloading(start: Start) -> Program:
    return start("--audit-log", "", pace=QUICK)


@pytest.fixture(autouse=True)
def valid_pair(authority: Authority, reloading: Program) -> None:
    wait_for_certificate(reloading, authority.renew())
    until(lambda: "last good" not in reloading.readyz())


def wait_for_certificate(program: Program, pair: Pair) -> None:
    leaf = x509.load_pem_x509_certificate(pair.certificate).public_bytes(serialization.Encoding.DER)
    until(lambda: served_certificate(program) == leaf)


def served_certificate(program: Program) -> bytes:
    with program.connect() as connection:
        return connection.certificate


def test_a_new_pair_is_served_while_old_connections_work(reloading: Program, authority: Authority):
    before = reloading.metric("config_reloads_total", source="certificate", result="success")
    with reloading.connect() as old:
        admission_response(old.post("/mutate", review("before")))
        old_certificate = old.certificate
        fresh = authority.renew()
        wait_for_certificate(reloading, fresh)
        assert admission_response(old.post("/mutate", review("after")))["uid"] == "after"
        assert old.certificate == old_certificate != served_certificate(reloading)
    until(lambda: reloading.metric("config_reloads_total", source="certificate", result="success") > before)
    expires = x509.load_pem_x509_certificate(fresh.certificate).not_valid_after_utc
    until(lambda: reloading.metric("certificate_expiry_timestamp_seconds") == expires.timestamp())


def half_written(authority: Authority) -> None:
    leaf = authority.leaf()
    authority.certificate.write_bytes(leaf.certificate)
    authority.key.write_bytes(leaf.key[:100])


def encrypted(authority: Authority) -> None:
    leaf, password = authority.leaf(), serialization.BestAvailableEncryption(b"password")
    key = serialization.load_pem_private_key(leaf.key, None)
    authority.certificate.write_bytes(leaf.certificate)
    authority.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, password)
    )


def valid_from(days: int) -> Callable[[Authority], object]:
    """Put a pair in place that is valid for a week, from so many days from now on."""
    begin = datetime.now(UTC) + timedelta(days=days)

    def put(authority: Authority) -> None:
        leaf = pki.make_leaf(authority.ca, ["localhost"], begin, days=7)
        pki.write(authority.directory, leaf, authority.ca.certificate)

    return put


class Clock:
    """The time in some days."""

    def __init__(self, days: int) -> None:
        self._ahead = timedelta(days=days)

    def now(self, zone: tzinfo) -> datetime:
        return datetime.now(zone) + self._ahead


GARBAGE = b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"
DAMAGES: dict[str, Callable[[Authority], object]] = {
    "of another certificate": lambda authority: replace(authority.key, authority.leaf().key, 0o600),
    "garbage": lambda authority: replace(authority.certificate, GARBAGE, 0o644),
    "missing": lambda authority: authority.key.unlink(),
    "empty": lambda authority: authority.certificate.write_bytes(b""),
    "half written": half_written,
    "encrypted": encrypted,
    "expired": valid_from(days=-8),
    "not valid yet": valid_from(days=1),
    "a directory": lambda authority: (authority.key.unlink(), authority.key.mkdir()),
}


def watched_pair(authority: Authority) -> tuple[ServingTls, WatchedFiles]:
    pair = (authority.certificate, authority.key)
    tls = ServingTls(*pair)
    return tls, WatchedFiles("certificate", pair, tls.load_pair, signature(()))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_pair_is_a_problem_until_there_is_a_good_one(tmp_path: Path, damage: str):
    authority = Authority(tmp_path)
    tls, watched = watched_pair(authority)
    DAMAGES[damage](authority)
    watched.reload()
    assert tmp_path.name in (watched.problem or "")
    if authority.key.is_dir():
        authority.key.rmdir()
    fresh = authority.renew()
    watched.reload()
    assert watched.problem is None
    assert tls.expires == x509.load_pem_x509_certificate(fresh.certificate).not_valid_after_utc


def test_a_bad_pair_is_reported_and_not_used(reloading: Program, authority: Authority):
    last_good = served_certificate(reloading)
    failures = reloading.metric("config_reloads_total", source="certificate", result="failure")
    logged = reloading.log().count("ERROR certificate changed, but cannot be used")
    DAMAGES["of another certificate"](authority)
    text = until(lambda: (page := reloading.readyz()) and "last good one is in use" in page and page)
    line = next(line for line in text.splitlines() if line.startswith("certificate: /"))
    assert authority.directory.name in line
    assert text.startswith("ready\n"), "a bad file does not make the server unready"
    assert served_certificate(reloading) == last_good
    assert admission_response(reloading.post("/mutate", review()))
    until(lambda: reloading.metric("config_reloads_total", source="certificate", result="failure") > failures)
    assert reloading.log().count("ERROR certificate changed, but cannot be used") > logged
    wait_for_certificate(reloading, authority.renew())
    until(lambda: "last good" not in reloading.readyz())
    assert "Traceback" not in reloading.log()


def test_a_pair_is_used_as_soon_as_it_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nor does a pair that is not valid keep out another one."""
    authority = Authority(tmp_path)
    _, watched = watched_pair(authority)
    valid_from(days=1)(authority)
    assert (watched.reload(), watched.reload()) == (False, None)
    monkeypatch.setattr("webhook.server.tls.datetime", Clock(days=2))
    assert watched.reload()
    valid_from(days=-8)(authority)
    monkeypatch.setattr("webhook.server.tls.datetime", Clock(days=20))
    assert watched.reload()


@pytest.mark.parametrize("left", range(3))
def test_a_pair_is_read_again_if_too_few_files_could_be_opened(authority: Authority, left: int):
    _, watched = watched_pair(authority)
    watched.reload()
    authority.renew()
    opened = max(int(each.name) for each in Path("/dev/fd").iterdir())
    limit, taken = resource.getrlimit(resource.RLIMIT_NOFILE), []
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, limit[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(left):
            os.close(taken.pop())
        watched.reload()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        for descriptor in taken:
            os.close(descriptor)
    assert "Too many open files" in (watched.problem or "")
    watched.reload()
    assert watched.problem is None
