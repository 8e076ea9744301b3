"""Each check has cases that are well, sick, and hidden: a healthy cluster, and what is changed in it."""

import copy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import yaml

from tests.cases import each_case
from tests.doctor.cluster import NOW, RENDER, authority, facts_of, healthy, secret, without
from webhook.doctor.check import Status
from webhook.doctor.facts import HttpResponse, ObjectKind, Unread
from webhook.doctor.registry import CHECKS, examine

CASES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(Path(__file__).parent.glob("cases/*.yaml"))}
EACH = [(check, case) for check, cases in CASES.items() for case in cases]
ANSWERS = ("readiness", "metrics")


def merged(before, change):
    """A JSON merge patch: null removes."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    found = dict(before) if isinstance(before, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def replaced(value, texts):
    """The same with other texts, keys included."""
    if isinstance(value, dict):
        return {replaced(key, texts): replaced(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, texts) for item in value]
    if not isinstance(value, str):
        return texts.get(value, value) if isinstance(value, bool) else value
    for old, new in texts.items():
        value = value.replace(old, new) if isinstance(old, str) else value
    return value


def facts_for(case):
    """The facts of a healthy cluster, changed as the case says."""
    objects = healthy()
    for place, copied in case.get("copy", {}).items():
        namespace = copied.split("/")[1]
        objects[copied] = merged(objects[place], {"metadata": {"namespace": namespace}})
    for place, texts in case.get("replace", {}).items():
        changed = replaced(objects[place], texts)
        assert changed != objects[place] or texts == {}, f"nothing to replace in {place}"
        objects[place] = changed
    for place, change in case.get("set", {}).items():
        kind, _, name = place.partition("/")
        fresh = {"kind": kind, "metadata": {"name": name}}
        objects[place] = merged(objects.get(place, fresh), change)
    for place, change in case.get("entry", {}).items():
        objects[place]["webhooks"][0] = merged(objects[place]["webhooks"][0], change)
    if "secret" in case:
        told = case["secret"]
        start = NOW - timedelta(days=told.get("age", 0)) + timedelta(minutes=5 if told.get("age", 0) < 0 else 0)
        ca = authority(told["authority"]) if "authority" in told else None
        fresh = secret(told.get("days", 90), told.get("hosts", ["vgpu-webhook.vgpu-webhook.svc"]), ca, start)
        objects["Secret/vgpu-webhook/vgpu-webhook-tls"] = fresh
    for place in case.get("remove", []):
        del objects[place]
    hidden = case.get("unread", [])
    facts = facts_of(objects, **{name: HttpResponse(**case[name]) for name in ANSWERS if name in case})
    facts = without(facts, *[kind for kind in hidden if kind not in ANSWERS])
    gone = {name: Unread(name, "403 Forbidden", "get on it") for name in ANSWERS if name in hidden}
    return replace(facts, **gone)


def lines_of(check, facts):
    return [result for result in examine(facts, RENDER) if result.check == check]


@each_case("check,case", EACH)
def test_a_check_gives_the_expected_result(check, case):
    lines = lines_of(check, facts_for(case))
    expected = case["expect"] if isinstance(case["expect"], list) else [case["expect"]]
    assert list(dict.fromkeys(line.status.value for line in lines)) == expected
    told = " ".join(f"{line.message} | {line.remedy}" for line in lines)
    for words in [case["says"]] if isinstance(case.get("says"), str) else case.get("says", []):
        assert words in told
    for line in lines:
        assert bool(line.remedy) is (line.status is not Status.OK), "what is wrong comes with a remedy"


def test_every_check_has_a_case_that_is_well_one_that_is_sick_and_one_that_is_hidden():
    assert CASES.keys() == CHECKS.keys()
    for check, cases in CASES.items():
        seen = set()
        for case in cases:
            seen |= set(case["expect"] if isinstance(case["expect"], list) else [case["expect"]])
        assert {"ok", "not checked"} <= seen, check
        assert seen & {"broken", "warning"}, check


def test_the_healthy_cluster_is_healthy():
    assert {told.status for told in examine(facts_of(healthy()), RENDER)} == {Status.OK}


def test_of_a_cluster_in_which_nothing_may_be_read_nothing_is_claimed():
    nothing = {name: Unread(name, "403 Forbidden", "get on it") for name in ANSWERS}
    facts = replace(without(facts_of(healthy()), *ObjectKind), **nothing)
    assert {told.status for told in examine(facts, RENDER)} == {Status.UNCHECKED}
