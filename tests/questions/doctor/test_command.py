"""`vgpu-webhook doctor`: its output, exit codes and bad input."""

import json
import shutil
from datetime import UTC, datetime

import pytest

from certs.pki import make_ca
from tests.cli.conftest import shell
from tests.cli.rows import rows
from tests.cluster.apiserver import ApiServer
from tests.cluster.faults import status
from tests.questions.doctor.cluster import HEALTHY, base64, healthy, secret
from tests.questions.doctor.test_live import put
from webhook.questions.doctor.registry import CHECKS

test_command = rows(__file__)

# Checks that need a live cluster. Files without fallback policies do not prove that there are none.
OFFLINE = {"webhook-ready", "fallback-policies", "failed-open"}
OK_LINES = len(CHECKS) - len(OFFLINE)


@pytest.fixture
def directory(tmp_path):
    """The healthy cluster as files, with certificates that are valid today."""
    shutil.copytree(HEALTHY, tmp_path / "cluster")
    now = datetime.now(UTC)
    ca = make_ca("today", now)
    objects = healthy()
    for target in ("MutatingWebhookConfiguration/vgpu-webhook", "ValidatingWebhookConfiguration/vgpu-webhook"):
        for entry in objects[target]["webhooks"]:
            entry["clientConfig"]["caBundle"] = base64(ca.certificate)
        write(tmp_path / "cluster", target.partition("/")[0], objects[target])
    write(tmp_path / "cluster", "secret", secret(ca=ca, start=now))
    return tmp_path / "cluster"


def write(directory, name, *items):
    (directory / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))


def change(directory, file, old, new):
    path = directory / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_healthy_cluster_ends_with_0(run, directory):
    result = run("doctor", "--from", directory, "-v")
    assert result.code == 0, result.out
    *lines, empty, total = result.out.splitlines()
    assert (empty, total) == ("", f"{len(OFFLINE)} not checked, {OK_LINES} ok")
    unchecked = [line.split()[1] for line in lines if line.startswith("?")]
    assert unchecked == ["fallback-policies", "webhook-ready", "failed-open"]
    assert [line[:3] for line in lines] == ["?  "] * len(OFFLINE) + ["ok "] * OK_LINES
    short = run("doctor", "--from", directory).out.splitlines()
    assert short == [*lines[: len(OFFLINE)], "", f"{total} (-v lists them)"]
    assert run("doctor", "--from", directory, "--warnings-as-errors").code == 0


def test_the_worst_of_the_sample_comes_first(run):
    result = run("doctor", "--sample")
    assert result.code == 1
    first = [line.split()[0] for line in result.out.splitlines() if line[:1] not in (" ", "")]
    *results, _ = first
    assert results == sorted(results, key=["broken", "warning", "?"].index)
    assert {"broken", "warning", "?"} == set(results)


def test_json_has_every_check(run, directory):
    result = run("doctor", "--from", directory, "-o", "json")
    (report,) = result.lines
    assert report["counts"] == {"ok": OK_LINES, "warning": 0, "broken": 0, "not checked": len(OFFLINE)}
    assert {line["check"] for line in report["lines"]} == set(CHECKS)
    assert {line["check"] for line in report["lines"] if line["status"] == "not checked"} == OFFLINE
    assert all(line.keys() == {"check", "status", "message", "remedy"} for line in report["lines"])


def test_a_failed_check_ends_with_1_and_names_the_remedy(run, directory):
    change(directory, "config-maps.yaml", "- name: predicates", "- name: binpack")
    result = run("doctor", "--from", directory, "--warnings-as-errors")
    assert result.code == 1
    (index,) = [n for n, line in enumerate(result.out.splitlines()) if line.startswith("broken")]
    assert "never assigns a card" in result.out.splitlines()[index]
    assert result.out.splitlines()[index + 1].strip().startswith("do add `- name: predicates`")


def test_warnings_end_with_3_if_they_are_errors(run, directory):
    change(directory, "config-maps.yaml", "deviceMemoryScaling: 1", "deviceMemoryScaling: 2")
    assert run("doctor", "--from", directory).code == 0
    assert run("doctor", "--from", directory, "--warnings-as-errors").code == 3


def test_an_unreadable_file_ends_with_2_and_the_rest_is_checked(run, directory):
    (directory / "bad.yaml").write_text("a: [")
    result = run("doctor", "--from", directory)
    assert result.code == 2
    assert "bad.yaml: not YAML" in result.err
    assert f"{OK_LINES} ok" in result.out


def test_the_policy_option(run, directory, tmp_path):
    (tmp_path / "policy.yaml").write_text('target: {volcano: "1.14.0"}')
    result = run("doctor", "--from", directory, "--policy", tmp_path / "policy.yaml")
    assert result.code == 1
    assert "the policy expects 1.14.0" in result.out
    (tmp_path / "policy.yaml").write_text("rulez: {}")
    assert run("doctor", "--from", directory, "--policy", tmp_path / "policy.yaml").code == 2


def test_a_live_cluster(run, tmp_path):
    with ApiServer() as api:
        put(api, healthy())
        api.fail(".*/proxy/readyz|/metrics", status(403))
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        result = run("doctor", "--kubeconfig", kubeconfig, "-v")
        assert "ok       volcano-version" in result.out
        assert "needs get on the URL /metrics" in result.out
    result = run("doctor", "--kubeconfig", kubeconfig)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")


def test_without_a_cluster_the_message_names_the_options(tmp_path):
    result = shell("doctor", env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert result.returncode == 2
    assert b"--kubeconfig" in result.stderr
    assert b"Traceback" not in result.stderr
