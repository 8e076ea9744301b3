"""Writes the golden answers anew."""

from tests.golden.answering import ANSWERS, answer, recorded, spelled

for case in recorded():
    (ANSWERS / f"{case.name}.json").write_text(spelled(answer(case)))
