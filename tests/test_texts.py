"""How texts are made to fit."""

from tests.cases import each_case
from webhook.texts import and_more


@each_case(
    ("names", "most", "count", "text"),
    [
        ([], 3, 0, ""),
        (["a", "b"], 3, 0, "a, b"),
        (["a", "b", "c"], 2, 0, "a, b and 1 more"),
        (["a", "b"], 2, 2_002, "a, b and 2,000 more"),
        (["a", "b", "c"], 1, 5, "a and 4 more"),
    ],
)
def test_the_first_names_and_how_many_more_there_are(names: list[str], most: int, count: int, text: str):
    assert and_more(names, most, count) == text
