"""`make releases ORACLES=DIR`: compare with the allocation code of each release in DIR, and write the table of docs/proof.md.

A program in DIR is named after its release, such as 1.15.1; docs/proof.md says how to build one. Rows of other releases stay.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

from tests.deploy.files import ROOT
from tests.docs.markdown import set_part, shown, tables
from tests.ledger import record as record_run
from tests.releases.compare import ADMITTED, DOUBT, FLEETS, PODS, REFUSED, TIGHT, Comparison, compare
from tests.releases.recorded import RECORDED, record
from webhook.volcano.target import Version, format_version, parse_version

PAGE = ROOT / "docs" / "proof.md"
PART = "releases"
SHOWN = 20  # differences of a release
COLUMNS = {
    ADMITTED: "admitted and placed",
    TIGHT: "`fits-tightly` and not placed",
    REFUSED: "refused and not placed",
    DOUBT: "in doubt",
}
HEAD = ["Volcano", "family", "seed", "pods", *COLUMNS.values(), "would be bound without devices", "differences"]
FAMILIES = list(FLEETS)


def programs(directory: Path) -> list[tuple[Version, Path]]:
    """The programs of a directory with the versions of their releases, the oldest first."""
    found = [file for file in directory.iterdir() if file.is_file() and os.access(file, os.X_OK)]
    return sorted((parse_version(file.name), file) for file in found)


def row(release: str, family: str, seed: int, one: Comparison) -> list[str]:
    """The cells of the table for a family in a release."""
    counts = [one.counts.total(), *(one.counts[word] for word in COLUMNS), one.skipped, len(one.differences)]
    return [release, family, str(seed), *(f"{count:,}" for count in counts)]


def table(page: str, new: list[list[str]]) -> str:
    """The page's table with new rows, in the place of those about the same family in the same release."""
    old = [each for found in tables(shown(page)[PART]) for each in found[1:] if len(each) == len(HEAD)]
    rows = {(each[0], each[1]): each for each in (*old, *new)}
    ordered = sorted(rows.values(), key=lambda each: (parse_version(each[0]), each[0], FAMILIES.index(each[1])))
    return "".join(f"| {' | '.join(line)} |\n" for line in (HEAD, ["---"] * len(HEAD), *ordered))


def main() -> int:
    """Compare with every program; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.releases", description=__doc__)
    parser.add_argument("directory", type=Path, help="of the programs")
    parser.add_argument("--seed", type=int, default=1, help="of the random fleets and pods")
    parser.add_argument("--fleets", type=int, default=500, help=f"how many of each family, each with {PODS} pods")
    parser.add_argument("--family", action="append", choices=FAMILIES, help="only this one")
    parser.add_argument("--write", type=Path, default=PAGE, help="the page with the table")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} anew instead of comparing")
    chosen = parser.parse_args()
    if not chosen.directory.is_dir() or not programs(chosen.directory):
        sys.exit(f"{chosen.directory} has no program of a release; docs/proof.md says how to build one")
    if chosen.record:
        RECORDED.write_text(record(programs(chosen.directory), chosen.seed))
        return 0
    rows, differs = [], False
    compared: defaultdict[str, list[Comparison]] = defaultdict(list)
    for version, program in programs(chosen.directory):
        name = program.name.removeprefix("v")
        for family in chosen.family or FAMILIES:
            one = compare(program, format_version(version), chosen.seed, chosen.fleets, family)
            print(
                f"{name}, {family}: {len(one.differences)} differences; {dict(one.counts)}, {one.skipped} skipped",
                flush=True,
            )
            for difference in one.differences[:SHOWN]:
                print(json.dumps({"release": name, **difference}))
            rows.append(row(name, family, chosen.seed, one))
            compared[name].append(one)
            differs = differs or bool(one.differences)
    for name, each in compared.items() if not chosen.family and chosen.write == PAGE else ():
        pods = sum(one.counts.total() for one in each)
        record_run("releases", f"{pods:,} pods, {sum(len(one.differences) for one in each)} differ", f"Volcano {name}")
    page = chosen.write.read_text()
    chosen.write.write_text(set_part(page, PART, table(page, rows)))
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
