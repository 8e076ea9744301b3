"""The ledger of what `make test` cannot show: when each was shown last, and what has changed since. `make ledger` prints it.

`tests/ledger.yaml` has a row for each: what it shows, its command, the paths that it covers, and its last run for each version
of what it runs beside. The command writes its run there. Nothing fails because a run is old.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.docs.markdown import set_part
from webhook.texts import markdown_cell

FILE = Path(__file__).with_suffix(".yaml")
HEAD = "# What `make test` cannot show: see tests/ledger.py. The commands write `runs`; the rest is written by hand.\n"
CHANGED = "+"  # after a commit: there were changes to what is covered
NEVER = "never run"
NOTHING = "–"  # noqa: RUF001
NO_GIT = (OSError, subprocess.CalledProcessError)  # it is not installed, or this is no checkout of this user


class Run(NamedTuple):
    """A run: beside what (`""`: nothing that has versions), of which commit, on which day, with which result."""

    beside: str
    commit: str
    day: str
    figure: str


class Row(NamedTuple):
    """Something that is shown by hand; `covers` are paths below the root, and `runs` the last ones."""

    name: str
    shows: str
    command: str
    covers: Sequence[str]
    runs: Sequence[Run]


def rows(file: Path = FILE) -> list[Row]:
    return [
        Row(name, row["shows"], row["command"], row["covers"], [Run(**run) for run in row["runs"]])
        for name, row in yaml.safe_load(file.read_text()).items()
    ]


def record(name: str, figure: str, beside: str = "", file: Path = FILE) -> None:
    """Write a run of the commit that is checked out, in the place of an earlier one beside the same; also in docs/proof.md.

    Raises:
        KeyError: the ledger has no such row.
    """
    ledger = yaml.safe_load(file.read_text())
    row = ledger[name]
    try:
        changed = _git(file, "status", "--short", "--", *row["covers"])
        commit = _git(file, "rev-parse", "--short=8", "HEAD").strip() + CHANGED * bool(changed)
    except NO_GIT as error:
        sys.stderr.write(f"not written into the ledger: git cannot name the commit ({error})\n")
        return
    run = Run(beside, commit, datetime.now(UTC).date().isoformat(), figure)
    row["runs"] = [*(other for other in row["runs"] if other["beside"] != beside), run._asdict()]
    row["runs"].sort(key=lambda each: each["beside"])
    file.write_text(HEAD + yaml.safe_dump(ledger, sort_keys=False, width=120, allow_unicode=True))
    page = file.parents[1] / "docs" / "proof.md"
    page.write_text(set_part(page.read_text(), "ledger", table(file)))


def figure(reporter: pytest.TerminalReporter) -> str:
    """The result of a run of pytest."""
    counts = {name: len(reporter.stats.get(name, ())) for name in ("passed", "failed", "error", "skipped")}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _git(file: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=file.parents[1], capture_output=True, text=True, check=True).stdout


def changes_since(row: Row, run: Run, file: Path = FILE) -> int | None:
    """How many commits have changed what is covered since a run; None if git does not know its commit."""
    try:
        return int(_git(file, "rev-list", "--count", f"{run.commit.rstrip(CHANGED)}..HEAD", "--", *row.covers))
    except NO_GIT:  # or a shallow clone, or a commit that never landed
        return None


def ages(file: Path = FILE) -> Iterator[str]:
    """A line for each run, and for each row without one."""
    for row in rows(file):
        if not row.runs:
            yield f"{row.name:11} {NEVER}: {row.command}"
        for run in row.runs:
            since = changes_since(row, run, file)
            age = "commit not known here" if since is None else f"{since} commits since" if since else "up to date"
            beside = f" ({run.beside})" if run.beside else ""
            again = "" if since == 0 else f"  again: {row.command}"
            yield f"{row.name:11} {age:21} {run.day} {run.commit:9} {run.figure}{beside}{again}"


def table(file: Path = FILE) -> str:
    """The ledger in docs/proof.md."""
    lines = [("what", "command", "beside", "last run", "commit", "result"), ("---",) * 6]
    for row in rows(file):
        first = (f"**{row.name}**: {row.shows}", f"`{row.command}`")
        runs = [(run.beside or NOTHING, run.day, run.commit, run.figure) for run in row.runs]
        runs = runs or [(NOTHING, NEVER, NOTHING, NOTHING)]
        lines += [(*(first if number == 0 else ("", "")), *run) for number, run in enumerate(runs)]
    return "".join(f"| {' | '.join(markdown_cell(cell) for cell in line)} |\n" for line in lines)


def main() -> None:
    """Print the ledger, or write a run of a command that cannot do it itself."""
    parser = argparse.ArgumentParser(prog="python -m tests.ledger", description=__doc__.partition("\n")[0])
    parser.add_argument("--record", nargs=2, metavar=("ROW", "FIGURE"), help="write a run")
    parser.add_argument("--beside", default="", help="what it ran beside, with its version")
    chosen = parser.parse_args()
    if chosen.record:
        record(*chosen.record, chosen.beside)
        return
    sys.stdout.writelines(f"{line}\n" for line in ages())


if __name__ == "__main__":
    main()
