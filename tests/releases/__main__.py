"""`make releases ORACLES=DIR`: compare with the allocation code of each release in DIR, and write the table of docs/proof.md.

A program in DIR is named after its release, such as 1.15.1; docs/proof.md says how to build one.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from tests.deploy.files import ROOT
from tests.docs.generated import set_part
from tests.releases.compare import ADMITTED, DOUBT, PODS, REFUSED, TIGHT, Comparison, compare
from webhook.volcano.target import Version, parse_version

PAGE = ROOT / "docs" / "proof.md"
PART = "releases"
SHOWN = 20  # differences of a release
COLUMNS = {
    ADMITTED: "admitted and placed",
    TIGHT: "`fits-tightly` and not placed",
    REFUSED: "refused and not placed",
    DOUBT: "in doubt",
}


def programs(directory: Path) -> list[tuple[Version, Path]]:
    """The programs of a directory with the versions of their releases, the oldest first."""
    found = [file for file in directory.iterdir() if file.is_file() and os.access(file, os.X_OK)]
    return sorted((parse_version(file.name), file) for file in found)


def table(found: dict[str, Comparison], seed: int) -> str:
    """A row for each release."""
    head = ["Volcano", "seed", "pods", *COLUMNS.values(), "differences"]
    lines = [head, ["---"] * len(head)]
    for release, one in found.items():
        counts = [one.counts.total(), *(one.counts[word] for word in COLUMNS), len(one.differences)]
        lines.append([release, str(seed), *(f"{count:,}" for count in counts)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Compare with every program; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.releases", description=__doc__)
    parser.add_argument("directory", type=Path, help="of the programs")
    parser.add_argument("--seed", type=int, default=1, help="of the random fleets and pods")
    parser.add_argument("--fleets", type=int, default=500, help=f"how many, each with {PODS} pods")
    parser.add_argument("--write", type=Path, default=PAGE, help="the page with the table")
    chosen = parser.parse_args()
    if not chosen.directory.is_dir() or not programs(chosen.directory):
        sys.exit(f"{chosen.directory} has no program of a release; docs/proof.md says how to build one")
    found = {}
    for version, program in programs(chosen.directory):
        name = program.name.removeprefix("v")
        found[name] = compare(program, ".".join(map(str, version)), chosen.seed, chosen.fleets)
        print(f"{name}: {len(found[name].differences)} differences; {dict(found[name].counts)}", flush=True)
        for difference in found[name].differences[:SHOWN]:
            print(json.dumps({"release": name, **difference}))
    chosen.write.write_text(set_part(chosen.write.read_text(), PART, table(found, chosen.seed)))
    return int(any(one.differences for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
