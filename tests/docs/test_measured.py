"""A run adds its row to a table of measurements."""

from tests.docs.measured import add_row

EMPTY = "a\n<!-- pods: x -->\n<!-- end of pods -->\nb\n"


def test_a_row_is_added_and_a_new_count_becomes_a_column():
    page = add_row(EMPTY, "pods", {"Volcano": "1.16.0", "seed": "1"}, {"started": 3})
    page = add_row(page, "pods", {"Volcano": "1.15.1", "seed": "1"}, {"started": 2, "refused, BOUND": 1})
    assert page == EMPTY.replace(
        "x -->\n",
        "x -->\n| Volcano | seed | started | refused, BOUND |\n| --- | --- | --- | --- |\n"
        "| 1.15.1 | 1 | 2 | 1 |\n| 1.16.0 | 1 | 3 | 0 |\n",
    )


def test_the_row_of_the_same_run_is_replaced():
    once = add_row(EMPTY, "pods", {"Volcano": "1.16.0", "seed": "1"}, {"started": 3})
    again = add_row(once, "pods", {"Volcano": "1.16.0", "seed": "1"}, {"started": 4})
    assert again == once.replace("| 3 |", "| 4 |")
    assert add_row(again, "pods", {"Volcano": "1.16.0", "seed": "2"}, {"started": 3}).count("1.16.0") == 2
