"""Updates the golden responses and texts."""

from tests.golden.cases import OUTCOMES, RESPONSES, WHOLE, outcome, published, recorded, responses_to, to_text
from tests.golden.explanations import EXPLANATIONS, explanations

for case in recorded():
    if case.name in WHOLE:
        (RESPONSES / f"{case.name}.json").write_text(to_text(responses_to(case)))
OUTCOMES.write_text("".join([*map(outcome, recorded()), *published()]))
EXPLANATIONS.write_text(explanations())
