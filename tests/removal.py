"""Remove each question from a copy of the repository, and check what is left: `python -m tests.removal [QUESTION]…`.

A question is removed by its package, its line in QUESTIONS, its page of the documentation and its tests, together with the
questions that are about it, as the contract in pyproject.toml lists them. Tests elsewhere that need a question say so
(`tests.questions.needs`): they are skipped here, and who removes it for good takes them out. What else fails then, knows of
it. The tests of the documentation are imported and not run: they find what other pages show of the question.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.ledger import record
from tests.questions import REMOVED
from webhook.questions import QUESTIONS

ROOT = Path(__file__).parents[1]
LIST = "webhook/questions/__init__.py"
# Tests that may use a question: those of the layers above, and of what is delivered. Of the others, all modules are imported.
TESTS = (
    "questions",
    "console",
    "cli",
    "audit",
    "deploy",
    "golden",
    "fuzz",
    "review",
    "policy",
    *(file.name for file in ROOT.glob("tests/test_*.py")),
)
CHECKS = (
    ("ruff", "check", "--quiet", "--extend-ignore=I", "."),  # imports of a question that is gone are sorted otherwise
    ("mypy",),
    ("lint-imports", "--no-cache"),
    ("pytest", "-q", "-p", "no:xdist", "--collect-only"),
    ("pytest", "-q", "--tb=line", *[f"tests/{name}" for name in TESTS]),
)


def together(question: str) -> list[str]:
    """A question, and those that are about it, by the contract that lets them import it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each.get("modules") == ["webhook.questions.*"]]
    found = [question]
    for importer, _, imported in [each.partition(" -> ") for each in contract["ignore_imports"]]:
        about, subject = [name.split(".")[2].replace("_", "-") for name in (importer, imported)]
        found += [about] * (subject == question)
    return found


def remove(question: str, copy: Path) -> None:
    package = question.replace("-", "_")
    for folder in ("webhook/questions", "tests/questions"):
        shutil.rmtree(copy / folder / package, ignore_errors=True)
    (copy / "docs" / f"{question}.md").unlink(missing_ok=True)
    listed = copy / LIST
    listed.write_text(re.sub(rf'(?m)^    "{question}": .*\n', "", listed.read_text()))


def failures(copy: Path, removed: list[str]) -> list[str]:
    """What fails in a copy without some questions, with the end of what each check prints."""
    found = []
    programs = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(copy),
        "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache"),
        REMOVED: " ".join(removed),
    }
    for name, *options in CHECKS:
        command = [str(programs / name), *options]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            found.append(f"{name}:\n" + "\n".join(done.stdout.splitlines()[-60:]))
    return found


def main(questions: list[str]) -> int:
    """Try it with these questions, or with all."""
    failed = 0
    for question in questions or QUESTIONS:
        with tempfile.TemporaryDirectory() as directory:
            files = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x", "-C", directory], input=files, check=True)
            removed = together(question)
            for each in removed:
                remove(each, Path(directory))
            found = failures(Path(directory), removed)
        print(
            f"{', '.join(removed)}: {'removed' if not found else 'still known elsewhere'}", *found, sep="\n", flush=True
        )
        failed += bool(found)
    if not questions:
        record("removal", f"{len(QUESTIONS) - failed} of {len(QUESTIONS)} questions can be removed")
    return int(failed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    chosen = parser.parse_args().questions
    if unknown := set(chosen) - set(QUESTIONS):
        parser.error(f"no such question: {', '.join(sorted(unknown))}")
    sys.exit(main(chosen))
