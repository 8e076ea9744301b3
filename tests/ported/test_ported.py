"""The test tables of HAMi and Volcano, evaluated by this webhook.

Each YAML file has the tables of one or a few of their test files. `tests` has their test functions, with rows:

    name      upstream's name of the row
    pod, type, walk, mig, chip
              the case, exactly one; engine.py evaluates it
    upstream  the result that upstream's test expects
    webhook   the result of this webhook, if it differs, and
    because   the reason for the difference
    rules     the rules that repaired or reported something; absent: none
    volcano   the result of Volcano's own rule, if upstream is HAMi

or, if the row does not apply to this webhook, `applies: false`, the case in words as `input`, and a `reason`.
`common` has defaults for all rows: device config, policy and node.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.cases import each_case
from tests.ported.engine import EVALUATIONS, REVIEWED, evaluate

Json = dict[str, Any]

# The number of rows of each file, and how many of them run, so that no row is lost.
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
EVALUATED_KEYS = COMMON | EVALUATIONS.keys() | {"webhook", "because", "rules", "volcano"}
OTHER_KEYS = COMMON | {"input", "applies", "reason"}


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
def test_row(row: Json):
    expected = dict(row.get("webhook", row["upstream"]))
    if REVIEWED & row.keys():
        expected["rules"] = row.get("rules", [])
    if "volcano" in row:
        expected["accepts"] = row["volcano"]
    assert evaluate(row, expected) == expected


def test_every_row_is_counted():
    assert {file: (len(rows), sum(map(_applies, rows))) for file, rows in ROWS.items()} == COUNTS


@each_case("file", ROWS)
def test_every_row_is_evaluated_or_has_a_reason(file: str):
    for row in ROWS[file]:
        assert row.keys() <= (EVALUATED_KEYS if _applies(row) else OTHER_KEYS), row
        if _applies(row):
            assert len(EVALUATIONS.keys() & row) == 1, row
        else:
            assert row["input"], row
            assert row["reason"], row
    assert max(Counter((row["test"], row["name"]) for row in ROWS[file]).values()) == 1


@each_case("file", ROWS)
def test_a_row_has_a_reason_exactly_if_the_results_differ(file: str):
    for row in filter(_applies, ROWS[file]):
        assert ("because" in row) == ("webhook" in row), row
        if "webhook" in row:
            assert row["webhook"].keys() == row["upstream"].keys(), row
            assert row["webhook"] != row["upstream"], row
            assert row["because"], row
