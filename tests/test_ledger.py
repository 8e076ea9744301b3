"""The ledger: what a command writes, and how old it is then."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ledger import FILE, ages, record, rows

ROWS = """\
e2e: {shows: all, command: make e2e, covers: [webhook], runs: []}
storm: {shows: nothing is lost, command: make storm, covers: [deploy], runs: []}
"""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [each for each in os.environ if each.startswith("GIT_")]:
        monkeypatch.delenv(name)  # of a hook or a rebase: git would write into that repository
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
    for figure, beside in (("1 failed", "v1.36.3"), ("253 passed", "v1.37.2"), ("2 passed", "v1.36.3")):
        record("e2e", figure, beside, ledger)  # replaces the run beside the same version
    assert [run.figure for row in rows(ledger) for run in row.runs] == ["2 passed", "253 passed"]
    assert "| v1.37.2 |" in (ledger.parents[1] / "docs" / "proof.md").read_text()
    _, run, never = ages(ledger)
    assert ("up to date" in run, never.split(maxsplit=1)[1]) == (True, "never run: make storm")
    commit(ledger, "deploy/base.yaml")
    commit(ledger, "webhook/other.py")
    _, run, _ = ages(ledger)
    assert "1 commits since" in run
    assert run.endswith("253 passed (v1.37.2)  again: make e2e")
    ledger.write_text(ledger.read_text().replace(rows(ledger)[0].runs[1].commit, "0badc0de"))
    assert "commit not known here" in next(ages(ledger))


def test_a_run_with_changes_of_what_it_covers_says_so(ledger: Path):
    (ledger.parents[1] / "deploy" / "base.yaml").write_text("")
    record("e2e", "1 passed", "", ledger)
    record("storm", "6 of 6", "", ledger)
    assert [run.commit.endswith("+") for row in rows(ledger) for run in row.runs] == [False, True]


@pytest.mark.parametrize("installed", [True, False])
def test_without_git_a_run_is_not_written_and_its_age_is_not_known(
    installed: bool, ledger: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The run has passed, and stays so."""
    record("e2e", "1 passed", "", ledger)
    before = ledger.read_text()
    if installed:
        shutil.rmtree(ledger.parents[1] / ".git")
    else:
        monkeypatch.setenv("PATH", "")
    record("e2e", "2 passed", "", ledger)
    assert (ledger.read_text(), "git cannot name the commit" in capsys.readouterr().err) == (before, True)
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
