"""Measurements in the documentation, between the markers of a part."""

from collections.abc import Mapping, Sequence

from tests.docs.generated import DOCS
from tests.docs.markdown import set_part, shown, tables


def add_row(page: str, part: str, key: Mapping[str, str], counts: Mapping[str, int]) -> str:
    """The page with a row in the table of a part; a row with the same key, the first columns, is replaced.

    A new count becomes the last column, and what a row does not count is 0.
    """
    head, rows = [*key, *counts], []
    if found := tables(shown(page)[part]):
        (old_head, *old_rows), *_ = found
        head = [*old_head, *(name for name in counts if name not in old_head)]
        rows = [dict(zip(old_head, row, strict=True)) for row in old_rows]
    rows = [row for row in rows if any(row[name] != value for name, value in key.items())]
    rows.append({**key, **{name: str(count) for name, count in counts.items()}})
    lines = [head, ["---"] * len(head)]
    lines += [
        [row.get(name, "0") for name in head] for row in sorted(rows, key=lambda row: [row[name] for name in key])
    ]
    return set_part(page, part, "".join(f"| {' | '.join(line)} |\n" for line in lines))


def write_part(part: str, lines: Sequence[str]) -> None:
    """Replace a part of docs/proof.md."""
    page = DOCS / "proof.md"
    page.write_text(set_part(page.read_text(), part, "".join(f"{line}\n" for line in lines)))
