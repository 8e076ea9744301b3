from tests.cases import each_case
from tests.golden.cases import RESPONSES, Recorded, recorded, responses_to, to_text

CASES = list(recorded())


@each_case("case", CASES, ids=[case.name for case in CASES])
def test_the_responses_equal_the_golden_file(case: Recorded):
    expected = (RESPONSES / f"{case.name}.json").read_text()
    assert to_text(responses_to(case)) == expected, "after an intended change: python -m tests.golden"


def test_every_golden_file_has_a_request():
    assert {file.name for file in RESPONSES.iterdir()} == {f"{case.name}.json" for case in CASES}
