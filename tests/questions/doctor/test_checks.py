"""Each check has cases with the status ok, a problem, and not checked: changes to a healthy cluster."""

import copy
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import yaml

from certs.pki import make_ca, make_leaf
from tests.cases import each_case
from tests.cli.rows import texts_of
from tests.docs.generated import DOCS
from tests.docs.markdown import spans
from tests.questions.doctor.cluster import (
    HOST,
    NOW,
    authority,
    base64,
    check_results,
    facts_of,
    healthy,
    secret,
    without,
)
from tests.questions.doctor.following import followed
from webhook import names
from webhook.questions.doctor.checks.certificates import hosts, load, trusted
from webhook.questions.doctor.facts import HttpResponse, ObjectKind, Unread
from webhook.questions.doctor.registry import CHECKS, OF_THE_WEBHOOK, examine
from webhook.questions.doctor.setup import CONFIGURATIONS, service
from webhook.questions.doctor.volcano import account_of, assigning_workloads
from webhook.results import Status
from webhook.rules.policy_keys import DEFAULT_TRUSTED_USERS

CASES = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(Path(__file__).parent.glob("cases/*.yaml"))}
EACH = [(check, case) for check, cases in CASES.items() for case in cases]
RESPONSES = ("readiness", "metrics")


def merged(before, change):
    """The result of a JSON merge patch; null removes a key."""
    if not isinstance(change, dict):
        return copy.deepcopy(change)
    result = dict(before) if isinstance(before, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def replaced(value, texts):
    """A value with some texts replaced, in keys, too."""
    if isinstance(value, dict):
        return {replaced(key, texts): replaced(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, texts) for item in value]
    if not isinstance(value, str):
        return texts.get(value, value) if isinstance(value, bool) else value
    for old, new in texts.items():
        value = value.replace(old, new) if isinstance(old, str) else value
    return value


def objects_for(case, objects=None):
    """The objects of a healthy cluster, or of another one, with the changes of the case."""
    objects = healthy() if objects is None else objects
    for place, copy_place in case.get("copy", {}).items():
        namespace = copy_place.split("/")[1]
        objects[copy_place] = merged(objects[place], {"metadata": {"namespace": namespace}})
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
    for pattern, change in case.get("entries", {}).items():  # of both configurations, by their names
        for raw in [raw for raw in objects.values() if "webhooks" in raw]:
            listed = raw["webhooks"]
            raw["webhooks"] = [merged(each, change) if re.match(pattern, each["name"]) else each for each in listed]
    if "secret" in case:
        age, by = (case["secret"].get(key) for key in ("age", "authority"))
        start = NOW - timedelta(days=age or 0) + timedelta(minutes=5 if (age or 0) < 0 else 0)
        given = {key: case["secret"][key] for key in ("days", "hosts") if key in case["secret"]}
        fresh = secret(**given, ca=authority(by) if by else None, start=start)
        objects["Secret/vgpu-webhook/vgpu-webhook-tls"] = fresh
    for place in case.get("remove", []):
        del objects[place]
    return objects


def facts_for(case):
    objects = objects_for(case)
    hidden = case.get("unread", [])
    facts = facts_of(objects, **{name: HttpResponse(**case[name]) for name in RESPONSES if name in case})
    facts = without(facts, *[kind for kind in hidden if kind not in RESPONSES])
    gone = {name: Unread(name, "403 Forbidden", "get on it") for name in RESPONSES if name in hidden}
    return replace(facts, **gone, **case.get("facts", {}))


@each_case("check,case", EACH)
def test_a_check_gives_the_expected_result(check, case):
    results = check_results(check, facts_for(case))
    expected = texts_of(case["expect"])
    assert list(dict.fromkeys(result.status.value for result in results)) == expected
    assert expected == ["ok"] or "ok" not in expected, "what is well is said only where nothing is wrong"
    assert len(results) == case.get("results", len(expected)), "what is said of several objects is said once"
    text = " ".join(f"{result.message} | {result.remedy}" for result in results)
    for part in texts_of(case.get("contains")):
        assert part in text
    assert [part for part in texts_of(case.get("lacks")) if part in text] == []
    for result in results:
        assert bool(result.remedy) is (result.status is not Status.OK), "every problem has a remedy"


def test_a_webhook_that_is_not_installed_is_one_problem():
    own = (*CONFIGURATIONS, ObjectKind.SERVICE, ObjectKind.ENDPOINT_SLICE, ObjectKind.SECRET)
    parts = [place for place in healthy() if place.partition("/")[0] in own or place.endswith("vgpu-webhook-policy")]
    results = examine(facts_of(objects_for({"remove": parts})))
    found = [result.check for result in results if result.status in (Status.BROKEN, Status.WARNING)]
    assert found == ["webhook-configurations"]
    assert {result.check for result in results if "is not installed" in result.message} == {*OF_THE_WEBHOOK, *found}


PROBLEMS = [one for one in EACH if one[1]["expect"] not in ("ok", "not checked") and "unread" not in one[1]]


def problems(checks, objects):
    """What some checks find, by its message."""
    found = [result for check in checks for result in check_results(check, facts_of(objects))]
    return {result.message: result for result in found if result.status in (Status.BROKEN, Status.WARNING)}


FIRST = ("policy", "device-config", "scheduler-config", "node-registers")  # what others say relies on what these read


def random_problems(seed):
    """Two or three problems at the same time; None if one cannot be where another one is."""
    chance, objects = Random(seed), healthy()
    some = chance.sample([each for each in PROBLEMS if each[0] not in FIRST], chance.choice([2, 2, 3]))
    try:
        for _, case in some:
            objects = objects_for(case, objects)
    except (AssertionError, KeyError):
        return None
    return [check for check, _ in some], objects


def test_who_does_what_a_check_says_does_not_read_it_again():
    """Of each problem, and of random ones together; of one alone nor anything else of that check that was not said before."""
    many = filter(None, map(random_problems, range(120)))
    each = [([check], objects_for(case)) for check, case in PROBLEMS]
    count = 0
    for checks, objects in [*each, *many]:
        before = problems(checks, objects)
        for result in before.values():
            if (after := followed(objects, result)) is not None:
                count += 1
                left = problems(checks, after).keys()
                assert result.message not in left, (checks, result)
                assert len(checks) > 1 or left <= before.keys(), (checks, result)
    assert count > 100


@each_case(
    "place,expected",
    [
        ({}, ("vgpu-webhook", "vgpu-webhook")),
        ({"namespace": "gpu-system"}, ("gpu-system", "vgpu-webhook")),
        ({"namespace": "gpu-system", "name": "hook"}, ("gpu-system", "hook")),
    ],
)
def test_the_service_is_in_the_configurations_unless_the_operator_names_it(place, expected):
    assert service(replace(facts_of(healthy()), **place)) == expected


def test_every_check_has_cases_for_ok_a_problem_and_not_checked():
    assert CASES.keys() == CHECKS.keys()
    for check, cases in CASES.items():
        seen = set()
        for case in cases:
            seen |= {*texts_of(case["expect"])}
        assert {"ok", "not checked"} <= seen, check
        assert seen & {"broken", "warning"}, check


def test_all_checks_pass_in_the_healthy_cluster():
    assert {result.status for result in examine(facts_of(healthy()))} == {Status.OK}


def test_nothing_is_checked_in_a_cluster_that_the_doctor_cannot_read():
    nothing = {name: Unread(name, "403 Forbidden", "get on it") for name in RESPONSES}
    facts = replace(without(facts_of(healthy()), *ObjectKind), **nothing)
    assert {result.status for result in examine(facts)} == {Status.UNCHECKED}


@each_case("page", ["troubleshooting.md", "upstream.md"])
def test_checks_that_the_documentation_names_exist(page: str):
    found = re.findall(r"`?doctor`?: ((?:`[a-z-]+`(?:, | and )?)+)", (DOCS / page).read_text())
    named = {check for cell in found for check in spans(cell)}
    assert len(named) > 10
    assert named <= CHECKS.keys()


# --- the certificates that an API server trusts, and the accounts of the upstream manifests -------------------------------


def loaded(*pairs):
    return load(base64(b"".join(pair.certificate for pair in pairs)))


def test_a_certificate_is_trusted_by_its_authority_or_by_itself_while_both_are_valid():
    leaf, other, later = make_leaf(authority(), [HOST], NOW), authority("other"), NOW + timedelta(days=2)
    old = make_ca("old", NOW - timedelta(days=9), days=10)
    aged = make_leaf(old, [HOST], NOW - timedelta(days=8), days=30)
    assert trusted(loaded(leaf), loaded(other, authority()), NOW)
    assert not trusted(loaded(leaf), loaded(other), NOW)
    assert not trusted(loaded(leaf), loaded(make_ca("vgpu-webhook", NOW)), NOW), "another one with the same name"
    assert trusted(loaded(leaf), loaded(leaf), NOW)
    assert [trusted(loaded(aged), loaded(old), at) for at in (NOW, later)] == [True, False]


def test_the_dns_names_of_a_certificate_are_read():
    assert hosts(loaded(make_leaf(authority(), [HOST, "10.0.0.1"], NOW))[0]) == [HOST]
    assert hosts(loaded(authority())[0]) == []


def test_an_unreadable_certificate_has_a_reason():
    assert load(None) == "is empty"
    assert load("%") == load("aGVsbG8=") == "is not a certificate in PEM"
    assert load("A" * (2 << 20)) == "is too large"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert load(base64(broken)) == "is not a certificate in PEM"


RECORDED = yaml.safe_load((Path(__file__).parents[2] / "data" / "upstream-accounts.yaml").read_text())
ASSIGNING = {names.SERVICE_ACCOUNT + recorded["account"] for recorded in RECORDED if recorded["assigns"]}


def workload(recorded, name, image):
    namespace, _, account = recorded["account"].partition(":")
    spec = {"serviceAccountName": account, "containers": [{"image": image}]}
    metadata = {"name": name, "namespace": namespace}
    return {"kind": recorded["kind"], "metadata": metadata, "spec": {"template": {"spec": spec}}}


def test_the_default_has_the_accounts_that_assign_devices_and_no_other():
    """The scheduler and the plugin of vGPUs may run in each other's namespace."""
    assert set(DEFAULT_TRUSTED_USERS) >= ASSIGNING
    assert len(set(DEFAULT_TRUSTED_USERS)) == len(DEFAULT_TRUSTED_USERS)
    assert {user.rpartition(":")[2] for user in DEFAULT_TRUSTED_USERS} == {u.rpartition(":")[2] for u in ASSIGNING}
    assert {user.split(":")[2] for user in DEFAULT_TRUSTED_USERS} == {"volcano-system", "kube-system"}


@each_case("recorded", RECORDED, ids=lambda recorded: recorded["account"] + " " + recorded["file"])
def test_a_workload_is_recognized_by_its_image_or_its_name(recorded):
    kind, copied = ObjectKind(recorded["kind"]), f"mirror.example/{recorded['image']}:1@sha256:0"
    for name, image in ((recorded["name"], "mirror.example/base:1"), ("x", copied)):
        found = assigning_workloads(facts_of({"": workload(recorded, name, image)}), kind, ("volcano",))
        expected = [names.SERVICE_ACCOUNT + recorded["account"]] if recorded["assigns"] else []
        assert list(map(account_of, found)) == expected
