from tests.cases import each_case
from tests.golden.answering import ANSWERS, Recorded, answer, recorded, spelled

CASES = list(recorded())


@each_case("case", CASES, ids=[case.name for case in CASES])
def test_the_answer_is_the_recorded_one(case: Recorded):
    expected = (ANSWERS / f"{case.name}.json").read_text()
    assert spelled(answer(case)) == expected, "if this was meant: python -m tests.golden, and read the difference"


def test_no_answer_is_left_over():
    assert {file.name for file in ANSWERS.iterdir()} == {f"{case.name}.json" for case in CASES}
