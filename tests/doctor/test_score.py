"""Points for good practices: the installed objects have all of them, and a change loses some."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor.cluster import RENDER, facts_of, healthy, without
from webhook.doctor.facts import HttpResponse, ObjectKind, Unread
from webhook.doctor.score import MOST, PRACTICES, score
from webhook.render.doctor import score_as_json, show_score
from webhook.render.terminal import Terminal

OURS = ("MutatingWebhookConfiguration/vgpu-webhook", "ValidatingWebhookConfiguration/vgpu-webhook")


def points(objects):
    return {each.practice: each.points for each in score(facts_of(objects), RENDER)}


def test_the_installed_objects_have_every_point():
    assert points(healthy()) == dict.fromkeys(PRACTICES, MOST)


RULE = {"apiGroups": ["*"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]}

# The practice that a change of every entry breaks, the change, and the remaining points.
CHANGES = [
    ("small-timeout", {"timeoutSeconds": 10}, 1),
    ("small-timeout", {"timeoutSeconds": 30}, 0),
    ("limited-scope", {"rules": [RULE]}, 0),
    ("limited-scope", {"rules": [RULE | {"apiGroups": [""], "resources": ["pods"], "operations": ["*"]}]}, 1),
    ("control-plane-excluded", {"rules": [RULE | {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}]}, 0),
    ("match-conditions", {"matchConditions": []}, 0),
    ("all-versions", {"matchPolicy": "Exact"}, 0),
    ("no-side-effects", {"sideEffects": "NoneOnDryRun"}, 1),
    ("no-side-effects", {"sideEffects": "Some"}, 0),
    ("system-namespaces-excluded", {"namespaceSelector": {}}, 0),
    ("no-opt-out", {"objectSelector": {"matchLabels": {"skip": "no"}}}, 0),
    ("no-opt-out", {"namespaceSelector": {"matchLabels": {"gpu": "yes"}}}, 1),
    ("fail-closed-narrowly", {"matchConditions": [], "failurePolicy": "Fail"}, 0),
    ("order-independent", {"reinvocationPolicy": "Never"}, 1),
    ("rules-as-rendered", {"rules": []}, 0),
    ("trusted-certificate", {"clientConfig": {"caBundle": ""}}, 0),
]


@pytest.mark.parametrize("practice, change, left", CHANGES)
def test_a_change_loses_points(practice, change, left):
    objects = healthy()
    for place in OURS:
        for entry in objects[place]["webhooks"]:
            entry.update(change)
    scores = {each.practice: each for each in score(facts_of(objects), RENDER)}
    assert scores[practice].points == left
    assert scores[practice].remedy


def test_a_repair_without_a_check_loses_points():
    objects = healthy()
    objects[OURS[1]]["webhooks"] = [e for e in objects[OURS[1]]["webhooks"] if not e["name"].startswith("pods.")]
    assert points(objects)["final-state-validated"] == MOST  # the entry for assignments still checks pods
    for entry in objects[OURS[1]]["webhooks"]:
        entry["failurePolicy"] = "Ignore"
    assert points(objects)["final-state-validated"] == 0


def test_without_configurations_there_are_no_points_for_conditions():
    objects = {place: raw for place, raw in healthy().items() if place not in OURS}
    assert points(objects)["match-conditions"] == 0


def test_an_unreadable_practice_is_not_counted():
    facts = replace(
        without(facts_of(healthy()), ObjectKind.ROLE, ObjectKind.ENDPOINT_SLICE),
        metrics=Unread("metrics of the API server", "403 Forbidden", "get on the URL /metrics"),
    )
    scores = score(facts, RENDER)
    unread = {each.practice for each in scores if each.points is None}
    expected = {
        "high-availability",
        "failures-counted",
        "configurations-protected",
        "keys-protected",
        "namespace-protected",
    }
    assert unread == expected
    total = json.loads(score_as_json(scores))
    assert (total["score"], total["of"]) == (MOST * (len(PRACTICES) - len(unread)),) * 2


def test_requests_that_bypassed_the_webhook_lose_a_point():
    body = 'apiserver_admission_webhook_fail_open_count{name="pods.vgpu-webhook.svc"} 3\n'
    facts = facts_of(healthy(), metrics=HttpResponse(200, body))
    assert {each.practice: each.points for each in score(facts, RENDER)}["failures-counted"] == 1


def test_every_practice_can_lose_points():
    by_check = {"high-availability", "repairs-stay", "certificate-renewed", "failures-counted"}
    by_check |= {
        "configurations-protected",
        "keys-protected",
        "namespace-protected",
    }  # their checks have cases
    assert {name for name, _, _ in CHANGES} | by_check | {"final-state-validated"} == set(PRACTICES)


def test_the_documentation_lists_every_practice():
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page[page.index("### Score") :], re.MULTILINE) == list(PRACTICES)


def test_the_score_is_printed_with_its_remedies(capsys):
    terminal = Terminal(sys.stdout, {})
    scores = score(without(facts_of(healthy()), ObjectKind.ENDPOINT_SLICE), RENDER)
    show_score([replace(scores[0], points=1, remedy="a remedy"), scores[1]], terminal)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("1  small-timeout ")
    assert printed[1].strip() == "do a remedy"
    assert "not read: endpointslices" in printed[2]
    assert printed[-1] == "1 of 2 points"
