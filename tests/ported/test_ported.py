"""HAMi's and Volcano's own test tables, asked of this webhook.

Each YAML file holds the tables of one or a few of their test files. Under `tests` stand their test functions, with rows:

    name      as upstream calls the row
    pod, type, walk, mig, chip
              the question, exactly one; asking.py says what is asked of the engine
    upstream  what upstream's test expects
    webhook   what this webhook answers, where that is something else, and
    because   why it is meant to
    rules     the rules that changed or found something; absent: none
    volcano   what Volcano's own rule gives, where upstream is HAMi

or, where there is nothing to ask this webhook, `applies: false`, the question in words as `input`, and a `reason`.
What stands under `common` stands in every row, and may be device config, policy and node.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.cases import each_case
from tests.ported.engine import QUESTIONS, REVIEWED, answer

Json = dict[str, Any]

# Rows of each file, and how many of them run: a row that vanishes, or is not asked any more, is noticed.
COUNTS = {
    "hami-ascend": (34, 29),
    "hami-nvidia-admission": (23, 19),
    "hami-nvidia-fit": (16, 16),
    "hami-nvidia-requests": (22, 22),
    "hami-nvidia-types": (12, 12),
    "hami-other-vendors": (44, 0),
    "hami-quota": (19, 0),
    "hami-webhook": (7, 7),
    "volcano-ascend": (33, 27),
    "volcano-deviceshare": (24, 2),
    "volcano-mig": (9, 7),
    "volcano-vgpu": (50, 28),
}

COMMON = {"test", "name", "upstream", "deviceConfig", "policy", "node"}
ASKED = COMMON | QUESTIONS.keys() | {"webhook", "because", "rules", "volcano"}
IDLE = COMMON | {"input", "applies", "reason"}


def _read() -> dict[str, list[Json]]:
    documents = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(Path(__file__).parent.glob("*.yaml"))}
    return {
        file: [
            {**document.get("common", {}), "test": test, **row}
            for test, rows in document["tests"].items()
            for row in rows
        ]
        for file, document in documents.items()
    }


ROWS = _read()


def _applies(row: Json) -> bool:
    return row.get("applies", True)


@each_case("row", [row for rows in ROWS.values() for row in rows if _applies(row)])
def test_row(row: Json, tmp_path: Path):
    expected = dict(row.get("webhook", row["upstream"]))
    if REVIEWED & row.keys():
        expected["rules"] = row.get("rules", [])
    if "volcano" in row:
        expected["accepts"] = row["volcano"]
    assert answer(row, expected, tmp_path) == expected


def test_every_row_is_counted():
    assert {file: (len(rows), sum(map(_applies, rows))) for file, rows in ROWS.items()} == COUNTS


@each_case("file", ROWS)
def test_every_row_is_checked_or_has_a_reason(file: str):
    for row in ROWS[file]:
        assert row.keys() <= (ASKED if _applies(row) else IDLE), row
        if _applies(row):
            assert len(QUESTIONS.keys() & row) == 1, row
        else:
            assert row["input"], row
            assert row["reason"], row
    assert max(Counter((row["test"], row["name"]) for row in ROWS[file]).values()) == 1


@each_case("file", ROWS)
def test_a_row_has_a_reason_exactly_where_the_answers_differ(file: str):
    for row in filter(_applies, ROWS[file]):
        assert ("because" in row) == ("webhook" in row), row
        if "webhook" in row:
            assert row["webhook"].keys() == row["upstream"].keys(), row
            assert row["webhook"] != row["upstream"], row
            assert row["because"], row
