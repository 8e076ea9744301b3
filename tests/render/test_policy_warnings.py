"""What `vgpu-webhook policy check` warns of, and what it lets be."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.timing import within
from webhook.policy.policy import default_policy, parse_policy
from webhook.policy.warnings import MAX_COMPARED, _within, warnings_of
from webhook.rules.levels import NamespaceRule


def warned(**document):
    return [(found.path, found.message) for found in warnings_of(parse_policy(document, "the test's policy"))]


def entries(*entries):
    """Warnings of entries; those without rules get one, so that each changes something."""
    return warned(namespaces=[{"rules": {"card-count": "warn"}} | entry for entry in entries])


def globs(*matches):
    return entries(*({"match": list(match)} for match in matches))


def test_nothing_to_warn_of():
    assert warnings_of(default_policy()) == []
    assert globs(["team-*"], ["team-a", "team-b?"], ["kube-[a-z]*"]) == []
    assert warned(rules={"card-count": "deny"}) == []  # a default may be written down


# --- entries that do not decide -------------------------------------------------------------------------------------


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
def test_an_entry_that_a_later_one_hides(earlier, later):
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
def test_an_entry_with_something_left_to_decide(earlier, later):
    assert globs([earlier], [later]) == []


def test_brackets_are_compared_as_they_stand():
    assert _within("x[ab]", "x*b]") is False  # it matches xa


def test_what_matches_every_namespace():
    matching = [glob for glob in ("*", "**", "", "?", "a*", "*-*") if NamespaceRule((glob,)).matches_all]
    assert matching == ["*", "**"]


pieces = st.text("ab*?-[]!", max_size=6)


@given(pieces, pieces, st.text("ab-", max_size=6))
def test_no_entry_is_called_hidden_that_decides(narrow, wide, namespace):
    if _within(narrow, wide) and fnmatchcase(namespace, narrow):
        assert fnmatchcase(namespace, wide)


def test_an_entry_that_is_hidden_in_part():
    ((path, message),) = globs(["a", "b", "a"], ["a"])
    assert path == "namespaces.0"
    assert message.startswith("it does not decide for all of its globs: ")
    assert "'a' (namespaces.1); " in message


def test_few_are_named():
    ((_, message),) = globs(list("abcde"), list("abcde"))
    assert "'a' (namespaces.1), 'b' (namespaces.1), 'c' (namespaces.1) and 2 more; " in message


def test_of_very_many_globs_only_equal_ones_are_compared():
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
        ("A" * 100_000, f"'{'A' * 69}…' matches nothing: "),
    ],
)
def test_a_glob_that_matches_nothing(glob, message):
    ((path, found),) = globs(["fine", glob])
    assert path == "namespaces.0.match"
    assert found.startswith(message)


def test_many_brackets_take_no_time():
    assert len(within(1, lambda: globs(["[" * 100_000 + "a"]))) == 1


# --- entries and levels without effect ------------------------------------------------------------------------------


def test_an_entry_that_changes_nothing():
    idle = "it changes nothing: the same holds in every namespace; remove it, or give it other rules or exempt: true"
    same = {"match": ["b"], "rules": {"card-count": "deny"}}
    assert warned(namespaces=[{"match": ["a"]}, same]) == [("namespaces.0", idle), ("namespaces.1", idle)]
    for other in ({"exempt": True}, {"enforcement": "warn"}, {"repairs": {"toleration": "off"}}):
        assert warned(namespaces=[{"match": ["a"], **other}]) == []


def test_an_entry_that_changes_nothing_may_be_an_exception():
    assert warned(namespaces=[{"match": ["a*"], "rules": {"card-count": "warn"}}, {"match": ["ab"]}]) == []
    assert warned(namespaces=[{"match": ["a*"], "exempt": True}, {"match": ["ab"]}]) == []


def test_rules_of_an_exempt_entry():
    assert entries({"match": ["a"], "exempt": True}) == [
        ("namespaces.0", "it has rules, yet exempt: true lets every pod pass; remove one of the two")
    ]
    for key, value in (("enforcement", "warn"), ("repairs", {"toleration": "off"})):
        ((_, message),) = warned(namespaces=[{"match": ["a"], "exempt": True, key: value}])
        assert message == f"it has {key}, yet exempt: true lets every pod pass; remove one of the two"


def test_all_namespaces_exempt():
    all_exempt = {"match": ["*"], "exempt": True, "rules": {}}
    assert entries(all_exempt) == [
        (
            "namespaces.0",
            "it exempts every namespace, so no pod is repaired or checked; add an entry below it for those that shall be",
        )
    ]
    assert len(entries(all_exempt, {"match": ["a"], "exempt": True, "rules": {}})) == 1
    assert entries(all_exempt, {"match": ["a"]}) == []


def test_a_denial_that_an_autoscaled_fleet_softens():
    rules = {"card-count": "deny", "fits-no-node": "warn", "number-zero": "deny"}
    namespaces = [{"match": ["a"], "rules": {"split-count": "deny", "host-access": "deny"}}]
    assert warned(rules=rules, namespaces=namespaces) == []
    found = warned(rules=rules, namespaces=namespaces, fleet={"autoscaled": True})
    assert [path for path, _ in found] == ["namespaces.0.rules.split-count", "rules.card-count"]
    assert found[0][1] == (
        "it warns instead of denying, because fleet.autoscaled is true and a larger node may come; write warn, or set "
        "fleet.autoscaled: false"
    )


@pytest.mark.parametrize("users", [[], ["admin"], ["volcano-scheduler"]])
def test_a_scheduler_that_is_not_trusted(users):
    ((path, message),) = warned(trustedUsers=users)
    assert path == "trustedUsers"
    assert message.startswith("no service account is listed, so what Volcano's scheduler assigns is refused")
    assert warned(trustedUsers=[*users, "system:serviceaccount:volcano:scheduler"]) == []
    assert warned(trustedUsers=users, rules={"reserved-annotation": "warn"}) == []


def test_entries_come_in_the_order_of_their_numbers():
    found = globs(*([f"_{index}"] for index in range(12)))
    assert [path for path, _ in found] == [f"namespaces.{index}.match" for index in range(12)]


# --- repairs that are off ---------------------------------------------------------------------------------------------


def test_a_repair_that_is_off_while_its_check_does_not_deny():
    assert warned(repairs={"scheduler-name": "off"}) == [], "foreign-scheduler refuses such pods"
    found = warned(repairs={"scheduler-name": "off", "default-memory": "off"}, rules={"foreign-scheduler": "warn"})
    assert found == [
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
def test_an_entry_that_adds_the_other_half(entry, path):
    found = warned(repairs={"limits-from-requests": "off"}, namespaces=[{"match": ["a"]} | entry])
    assert [where for where, _ in found] == ([f"namespaces.0.{path}"] if path else [])
