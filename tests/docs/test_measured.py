"""A run adds its row to a table of measurements."""

from tests.docs.measured import add_row

EMPTY = "a\n<!-- pods: x -->\n<!-- end of pods -->\nb\n"


def test_a_row_is_added_or_replaced_and_a_new_count_becomes_a_column():
    page = EMPTY
    for version, counts in (
        ("1.16.0", {"started": 4}),
        ("1.16.0", {"started": 3}),
        ("1.15.1", {"started": 2, "BOUND": 1}),
    ):
        page = add_row(page, "pods", {"Volcano": version, "seed": "1"}, counts)
    table = "| Volcano | seed | started | BOUND |\n| --- | --- | --- | --- |\n| 1.15.1 | 1 | 2 | 1 |\n| 1.16.0 | 1 | 3 | 0 |\n"
    assert page == EMPTY.replace("x -->\n", f"x -->\n{table}")
    assert add_row(page, "pods", {"Volcano": "1.16.0", "seed": "2"}, {"started": 3}).count("1.16.0") == 2
