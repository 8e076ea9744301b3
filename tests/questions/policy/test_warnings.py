"""The warnings of `vgpu-webhook policy check`, and policies without warnings."""

from datetime import date
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.review.test_repairs_off import SWITCHED_OFF
from webhook.policy.policy import default_policy, parse_policy
from webhook.policy.schema import NamespaceEntry
from webhook.policy.warnings import CHECKS_OF_REPAIRS, MAX_COMPARED, warnings_of


def check_policy(**document):
    return [(warning.path, warning.message) for warning in warnings_of(parse_policy(document, "the test's policy"))]


def entries(*entries):
    """Warnings of entries; an entry without rules gets one, so that each entry has an effect."""
    return check_policy(namespaces=[{"rules": {"card-count": "warn"}} | entry for entry in entries])


def globs(*matches):
    return entries(*({"match": list(match)} for match in matches))


def test_a_sensible_policy_has_no_warnings():
    assert warnings_of(default_policy()) == []
    assert globs(["team-*"], ["team-a", "team-b?"], ["kube-[a-z]*"]) == []
    assert check_policy(rules={"card-count": "deny"}) == []  # a policy may repeat a default


# --- entries without effect -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "earlier, later",
    [
        ("team-a", "team-a"),
        ("team-*", "team-*"),
        ("team-[ab]", "team-[ab]"),
        ("team-a", "team-*"),
        ("team-a*", "team-*"),
        ("team-?", "team-*"),
        ("team-?", "*"),
        ("team-a", "team-?"),
        ("a*b*c", "a*c"),
    ],
)
def test_an_entry_that_a_later_one_overrides_has_a_warning(earlier, later):
    path, message = globs([earlier], ["z", "?"], [later])[0]
    assert path == "namespaces.0"
    assert message == (
        f"it never decides: a later entry matches the same, and the last one decides: {earlier!r} (namespaces.2); move the "
        "narrower entry down, or remove it"
    )


@pytest.mark.parametrize(
    "earlier, later",
    [("team-*", "team-a"), ("team-*", "team-?"), ("a", "b"), ("*", "a*"), ("x[ab]", "x*b"), ("a*c", "a*b*c")],
)
def test_an_entry_that_a_later_one_overrides_in_part_has_no_warning(earlier, later):
    assert globs([earlier], [later]) == []


def test_globs_that_match_every_namespace_are_recognized():
    matching = [glob for glob in ("*", "**", "", "?", "a*", "*-*") if NamespaceEntry(match=[glob]).matches_all]
    assert matching == ["*", "**"]


pieces = st.text("ab*?-[]!", max_size=6)


@given(pieces, pieces, st.text("ab-", max_size=6))
@example("x[ab]", "x*b]", "xa")  # brackets are compared literally
def test_an_entry_that_decides_is_never_reported_as_overridden(narrow, wide, namespace):
    if any("(namespaces.1)" in message for _, message in globs([narrow], [wide])) and fnmatchcase(namespace, narrow):
        assert fnmatchcase(namespace, wide)


def test_overridden_globs_of_an_entry_are_named():
    ((path, message),) = globs(["a", "b", "a"], ["a"])
    assert path == "namespaces.0"
    assert message.startswith("it does not decide for all of its globs: ")
    assert "'a' (namespaces.1); " in message


def test_the_number_of_named_globs_is_bounded():
    ((_, message),) = globs(list("abcde"), list("abcde"))
    assert "'a' (namespaces.1), 'b' (namespaces.1), 'c' (namespaces.1) and 2 more; " in message


def test_of_very_many_globs_only_equal_ones_are_reported():
    many = [f"n{index}" for index in range(MAX_COMPARED)]
    assert len(globs(["a1"], many, ["a*"])) == 0
    assert len(globs(["a1"], many[2:], ["a*"])) == 1
    assert len(globs(["a1"], many, ["a1"])) == 1


# --- globs that match nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "glob, message",
    [
        ("Team-*", "'Team-*' matches nothing: no namespace has 'T' in its name; write 'team-*'"),
        ("team_a", "'team_a' matches nothing: no namespace has '_' in its name; write a-z, 0-9 and -, with"),
        ("team-.*", "'team-.*' matches nothing: no namespace has '.' in its name; write a-z"),
        ("!team-a", "'!team-a' matches nothing: no namespace has '!' in its name; write a-z"),
        ("{a,b}", "'{a,b}' matches nothing: no namespace has '{' in its name; write a-z"),
        ("kube-system ", "'kube-system ' matches nothing: no namespace has ' ' in its name; write a-z"),
        ("team-[ab", "'team-[ab' matches nothing: no namespace has '[' in its name; write a-z"),
        ("", "'' matches nothing: no name is empty; write a-z"),
        ("A" * 200, f"'{'A' * 69}…' matches nothing: "),
    ],
)
def test_a_glob_that_matches_nothing_has_a_warning(glob, message):
    ((path, actual),) = globs(["fine", glob])
    assert path == "namespaces.0.match"
    assert actual.startswith(message)


# --- entries and levels that change nothing -------------------------------------------------------------------------


def test_an_entry_that_changes_nothing_has_a_warning():
    idle = "it changes nothing: the same holds in every namespace; remove it, or give it other rules or exempt: true"
    same = {"match": ["b"], "rules": {"card-count": "deny"}}
    assert check_policy(namespaces=[{"match": ["a"]}, same]) == [("namespaces.0", idle), ("namespaces.1", idle)]
    for other in ({"exempt": True}, {"enforcement": "warn"}, {"repairs": {"toleration": "off"}}):
        assert check_policy(namespaces=[{"match": ["a"], **other}]) == []


def test_an_exception_to_an_earlier_entry_has_no_warning():
    assert check_policy(namespaces=[{"match": ["a*"], "rules": {"card-count": "warn"}}, {"match": ["ab"]}]) == []
    assert check_policy(namespaces=[{"match": ["a*"], "exempt": True}, {"match": ["ab"]}]) == []


def test_an_exempt_entry_with_rules_has_a_warning():
    assert entries({"match": ["a"], "exempt": True}) == [
        ("namespaces.0", "it has rules, yet exempt: true lets every pod pass; remove one of the two")
    ]
    for key, value in (("enforcement", "warn"), ("repairs", {"toleration": "off"}), ("limits", {"number": {"max": 1}})):
        ((_, message),) = check_policy(namespaces=[{"match": ["a"], "exempt": True, key: value}])
        assert message == f"it has {key}, yet exempt: true lets every pod pass; remove one of the two"


def test_a_policy_that_exempts_all_namespaces_has_a_warning():
    all_exempt = {"match": ["*"], "exempt": True, "rules": {}}
    assert entries(all_exempt) == [
        (
            "namespaces.0",
            "it exempts every namespace, so no pod is repaired or checked; add an entry below it for those that shall be",
        )
    ]
    assert len(entries(all_exempt, {"match": ["a"], "exempt": True, "rules": {}})) == 1
    assert entries(all_exempt, {"match": ["a"]}) == []


def test_a_denial_that_an_autoscaled_fleet_softens_has_a_warning():
    rules = {"card-count": "deny", "fits-no-node": "warn", "number-zero": "deny"}
    namespaces = [{"match": ["a"], "rules": {"split-count": "deny", "host-access": "deny"}}]
    assert check_policy(rules=rules, namespaces=namespaces) == []
    warnings = check_policy(rules=rules, namespaces=namespaces, fleet={"autoscaled": True})
    assert [path for path, _ in warnings] == ["namespaces.0.rules.split-count", "rules.card-count"]
    assert warnings[0][1] == (
        "it warns instead of denying, because fleet.autoscaled is true and a larger node may come; write warn, or set "
        "fleet.autoscaled: false"
    )


def test_an_exception_that_ended_or_changes_nothing_has_a_warning():
    common = {"namespace": "a", "names": ["x"], "reason": "r", "owner": "o"}
    used = [
        common | {"rules": ["card-count"], "until": "2026-10-01"},
        common | {"rules": ["quota-memory"], "until": "2026-12-31"},
        common | {"rules": ["quota-memory", "card-count"], "until": "2026-11-25"},
    ]
    policy = parse_policy({"exceptions": used}, "the test's policy")
    assert [(warning.path, warning.message) for warning in warnings_of(policy, date(2026, 11, 25))] == [
        ("exceptions.0", "it ended on 2026-10-01, so findings have their levels again; remove it, or move until"),
        ("exceptions.1", "it changes nothing: its rules neither deny nor warn in namespace a; remove it"),
    ]


@pytest.mark.parametrize("users", [[], ["admin"], ["volcano-scheduler"]])
def test_a_policy_without_a_trusted_service_account_has_a_warning(users):
    ((path, message),) = check_policy(trustedUsers=users)
    assert path == "trustedUsers"
    assert message.startswith("no service account is listed, so what Volcano's scheduler assigns is refused")
    assert check_policy(trustedUsers=[*users, "system:serviceaccount:volcano:scheduler"]) == []
    assert check_policy(trustedUsers=users, rules={"reserved-annotation": "warn"}) == []


def test_warnings_are_sorted_by_the_number_of_the_entry():
    warnings = globs(*([f"_{index}"] for index in range(12)))
    assert [path for path, _ in warnings] == [f"namespaces.{index}.match" for index in range(12)]


# --- repairs that are off -------------------------------------------------------------------------------------------


def test_a_repair_that_is_off_without_a_denying_check_has_a_warning():
    assert check_policy(repairs={"scheduler-name": "off"}) == [], "foreign-scheduler refuses such pods"
    warnings = check_policy(
        repairs={"scheduler-name": "off", "default-memory": "off"}, rules={"foreign-scheduler": "warn"}
    )
    assert warnings == [
        (
            "repairs.scheduler-name",
            (
                "the repair scheduler-name is off while foreign-scheduler, the check for pods that need it, is lowered from "
                "deny to warn: such pods are admitted as they are, and do not run as meant; set foreign-scheduler to deny, or "
                "switch the repair on"
            ),
        )
    ]


@pytest.mark.parametrize(
    "entry, path",
    [
        ({"repairs": {"toleration": "off"}, "rules": {"toleration-missing": "audit"}}, "repairs.toleration"),
        ({"rules": {"limits-missing": "off"}}, "rules.limits-missing"),
        ({"rules": {"card-count": "warn"}}, None),
        ({"repairs": {"limits-from-requests": "on"}, "rules": {"limits-missing": "off"}}, None),
    ],
)
def test_an_entry_that_lowers_the_check_of_a_repair_that_is_off_has_a_warning(entry, path):
    warnings = check_policy(repairs={"limits-from-requests": "off"}, namespaces=[{"match": ["a"]} | entry])
    assert [where for where, _ in warnings] == ([f"namespaces.0.{path}"] if path else [])


def test_each_repair_has_its_check():
    check_of_repair = {rule: check for rule, (_, checks) in SWITCHED_OFF.items() for check in checks}
    assert check_of_repair == CHECKS_OF_REPAIRS
