"""Updates the golden responses."""

from tests.golden.cases import RESPONSES, recorded, responses_to, to_text

for case in recorded():
    (RESPONSES / f"{case.name}.json").write_text(to_text(responses_to(case)))
