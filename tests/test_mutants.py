"""tests/mutants.py changes one expression at a time, and runs tests that exist."""

from pathlib import Path

import pytest

from tests.mutants import CORE, OTHERS, ROOT, TESTS, Mutant, mutants_of, suites_of


@pytest.mark.parametrize("part", TESTS)
def test_the_tests_of_the_core_exist(part: str):
    assert (ROOT / "tests" / part).exists()


@pytest.mark.parametrize("part", [*CORE, *OTHERS])
def test_the_tests_of_each_mutant_exist_and_its_own_come_first(part: str):
    for path in sorted((ROOT / "webhook" / part).rglob("*.py")):
        parts = suites_of(Mutant(path.relative_to(ROOT), 1, 0, "", ""))
        missing = [each for each in parts if not (ROOT / "tests" / each).exists()]
        assert missing == []
        assert parts[0].startswith(part)


def test_a_mutant_changes_one_expression():
    path = Path("webhook/durations.py")
    text = (ROOT / path).read_text().splitlines()
    for mutant in mutants_of(path):
        pairs = enumerate(zip(text, mutant.applied().splitlines(), strict=False), 1)
        assert next(number for number, (old, new) in pairs if old != new) == mutant.line
