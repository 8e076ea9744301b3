"""The warnings of `vgpu-webhook policy check`, and policies without warnings."""

from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from tests.review.test_repairs_off import SWITCHED_OFF
from webhook.policy.policy import parse_policy
from webhook.policy.schema import NamespaceEntry
from webhook.policy.warnings import CHECKS_OF_REPAIRS, MAX_COMPARED, warnings_of

TABLE = yaml.safe_load(Path(__file__).with_name("warnings.yaml").read_text())
ROWS = [(title, row) for title, rows in TABLE.items() for row in rows]
CHANGING = {"rules": {"card-count": "warn"}}  # so that an entry has an effect


def warnings(**document):
    policy = parse_policy(document, "the test's policy")
    return [(warning.path, warning.detail) for warning in warnings_of(policy, date(2026, 11, 25))]


def globs(*matches):
    return warnings(namespaces=[{"match": list(match), **CHANGING} for match in matches])


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=[f"{title}: {row}"[:150] for title, row in ROWS])
def test_the_warnings_of_a_policy(row):
    entries = {"namespaces": row.get("entries")}
    found = globs(*row["globs"]) if "globs" in row else warnings(**row.get("policy", entries))
    expected = row.get("warns", {})
    assert [path for path, _ in found] == list(expected)
    assert all(message.startswith(expected[path]) for path, message in found), found


def test_globs_that_match_every_namespace_are_recognized():
    matching = [glob for glob in ("*", "**", "", "?", "a*", "*-*") if NamespaceEntry(match=[glob]).matches_all]
    assert matching == ["*", "**"]


pieces = st.text("ab*?-[]!", max_size=6)


@given(pieces, pieces, st.text("ab-", max_size=6))
@example("x[ab]", "x*b]", "xa")  # brackets are compared literally
def test_an_entry_that_decides_is_never_reported_as_overridden(narrow, wide, namespace):
    if any("(namespaces.1)" in message for _, message in globs([narrow], [wide])) and fnmatchcase(namespace, narrow):
        assert fnmatchcase(namespace, wide)


def test_of_very_many_globs_only_equal_ones_are_reported():
    many = [f"n{index}" for index in range(MAX_COMPARED)]
    assert len(globs(["a1"], many, ["a*"])) == 0
    assert len(globs(["a1"], many[2:], ["a*"])) == 1
    assert len(globs(["a1"], many, ["a1"])) == 1


def test_warnings_are_sorted_by_the_number_of_the_entry():
    found = globs(*([f"_{index}"] for index in range(12)))
    assert [path for path, _ in found] == [f"namespaces.{index}.match" for index in range(12)]


def test_each_repair_has_its_check():
    check_of_repair = {rule: check for rule, (_, checks) in SWITCHED_OFF.items() for check in checks}
    assert check_of_repair == CHECKS_OF_REPAIRS
