"""The ledger: what a command writes, and how old it is then."""

import subprocess
from pathlib import Path

import pytest

from tests.ledger import FILE, ages, record, rows

ROWS = """\
e2e: {shows: all, command: make e2e, covers: [webhook], runs: []}
storm: {shows: nothing is lost, command: make storm, covers: [deploy], runs: []}
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The ledger of a repository with one commit."""
    for folder in ("tests", "webhook", "deploy", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "docs" / "proof.md").write_text("<!-- ledger: empty -->\n<!-- end of ledger -->\n")
    file = tmp_path / "tests" / "ledger.yaml"
    file.write_text(ROWS)
    git(file, "init", "--quiet")
    commit(file, "webhook/rules.py")
    return file


def git(file: Path, *arguments: str) -> None:
    user = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *user, *arguments], cwd=file.parents[1], check=True)


def commit(file: Path, path: str) -> None:
    (file.parents[1] / path).write_text("")
    git(file, "add", "--all")
    git(file, "commit", "--quiet", "--message", path)


def test_a_run_is_as_old_as_the_changes_of_what_it_covers(ledger: Path):
    record("e2e", "253 passed", "Kubernetes v1.37.2", ledger)
    assert [line.split(maxsplit=1)[1] for line in ages(ledger)][1] == "never run: make storm"
    assert "up to date" in next(ages(ledger))
    commit(ledger, "deploy/base.yaml")
    commit(ledger, "webhook/other.py")
    assert "1 commits since" in next(ages(ledger))
    assert next(ages(ledger)).endswith("253 passed (Kubernetes v1.37.2)  again: make e2e")


def test_a_run_replaces_the_one_beside_the_same_version_only(ledger: Path):
    for figure, beside in (("1 failed", "v1.36.3"), ("2 passed", "v1.37.2"), ("3 passed", "v1.36.3")):
        record("e2e", figure, beside, ledger)
    (row, _) = rows(ledger)
    assert [(run.beside, run.figure) for run in row.runs] == [("v1.36.3", "3 passed"), ("v1.37.2", "2 passed")]
    assert "| v1.36.3 |" in (ledger.parents[1] / "docs" / "proof.md").read_text()


def test_a_run_with_changes_of_what_it_covers_says_so(ledger: Path):
    (ledger.parents[1] / "deploy" / "base.yaml").write_text("")
    record("e2e", "1 passed", "", ledger)
    record("storm", "6 of 6", "", ledger)
    assert [run.commit.endswith("+") for row in rows(ledger) for run in row.runs] == [False, True]


def test_a_commit_that_is_not_here_has_no_age(ledger: Path):
    ledger.write_text(
        ROWS.replace("runs: []", "runs: [{beside: '', commit: 0badc0de, day: 2026-01-01, figure: ok}]", 1)
    )
    assert "commit not known here" in next(ages(ledger))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_row_covers_what_exists_and_its_command_exists(row):
    root = FILE.parents[1]
    assert [path for path in row.covers if not (root / path).exists()] == []
    program, *words = row.command.split()
    if program == "make":
        assert f"\n{words[0]}:" in (root / "Makefile").read_text()
    else:
        module = root / words[1].replace(".", "/")
        assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()
