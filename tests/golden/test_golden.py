from tests.cases import each_case
from tests.golden.cases import OUTCOMES, RESPONSES, WHOLE, Recorded, outcome, published, recorded, responses_to, to_text
from tests.golden.explanations import EXPLANATIONS, explanations
from tests.questions import needs

CASES = list(recorded())
RENEW = "after an intended change: python -m tests.golden"


def test_the_outcomes_equal_the_recorded_ones():
    assert "".join([*map(outcome, CASES), *published()]) == OUTCOMES.read_text(), RENEW


@each_case("case", [case for case in CASES if case.name in WHOLE], ids=sorted(WHOLE))
def test_the_responses_equal_the_golden_file(case: Recorded):
    assert to_text(responses_to(case)) == (RESPONSES / f"{case.name}.json").read_text(), RENEW


def test_every_golden_file_has_a_request():
    assert {case.name for case in CASES} >= WHOLE


@needs("review")
def test_the_explanations_equal_the_recorded_ones():
    assert explanations() == EXPLANATIONS.read_text(), RENEW
