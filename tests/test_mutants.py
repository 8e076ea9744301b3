"""The tests that tests/mutants.py runs exist."""

from tests.mutants import CORE, OTHERS, ROOT, Mutant, mutants_of, suites_of


def test_the_tests_of_each_mutant_exist_and_its_own_come_first():
    for part in (*CORE, *OTHERS):
        for path in sorted((ROOT / "webhook" / part).rglob("*.py")):
            suites = suites_of(Mutant(path.relative_to(ROOT), 1, 0, "", ""))
            assert [each for each in suites if not (ROOT / "tests" / each).exists()] == []
            assert suites[0].startswith(part)
    (mutant, *_) = mutants_of(path.relative_to(ROOT))
    assert mutant.applied() != (ROOT / mutant.path).read_text()
