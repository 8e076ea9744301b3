"""How many small mistakes the tests find: `python -m tests.mutants --count 40 --seed 1`, in the core or in other packages.

A mutant is a copy of the project with one change: a comparison, a condition, `and` or `or`, a sign or a small number. It is
killed if a test fails. The others are printed: each is a missing test, dead code, or a change without an effect.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.ledger import record
from tests.questions import is_removed

ROOT = Path(__file__).parent.parent
CORE = ("devices", "volcano", "rules", "pod", "wire", "policy", "review")
OTHERS = ("server", "audit", "questions")
# The tests of the core, those that mostly find a mistake first; the mutant's own package comes before them.
_EVERY = (
    "rules", "wire", "pod", "devices", "golden", "ported", "review", "policy", "questions/review/test_oracle.py", "volcano",
    "questions/scan", "questions/why", "questions/usage", "questions/policy", "test_outside_family.py",
)  # fmt: skip
_BESIDE = {"audit": ("questions/decisions", "questions/replay"), "server": ("policy",)}  # where their tests are, too
SECONDS = 1800  # of one run; a mutant that does not end is listed, and counts neither as killed nor as survived

_PAIRS = (ast.Eq, ast.NotEq), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = dict([*_PAIRS, *(pair[::-1] for pair in _PAIRS)])


def _there(parts: Iterable[str]) -> list[str]:
    """Without those of questions that were removed."""
    return [part for part in parts if not (part.startswith("questions/") and is_removed(part.split("/")[1]))]


class Mutant(NamedTuple):
    """One change of one file: `old` at an offset of the text becomes `new`."""

    path: Path
    line: int
    start: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} -> {self.new}"

    def applied(self) -> str:
        """The text of the file with the change."""
        text = (ROOT / self.path).read_text()
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every change of a file, in its order."""
    text = (ROOT / path).read_text()
    lines = text.splitlines(keepends=True)
    for node in _mutable(ast.parse(text)):
        new, old = _changed(node), ast.get_source_segment(text, node)
        if new is not None and old is not None:
            before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
            yield Mutant(path, node.lineno, len("".join(lines[: node.lineno - 1]) + before), old, new)


def _mutable(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that decide. Annotations do not run; limits of work, one more or less, are no mistake."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _decides_nothing(child):
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from _mutable(child)


def _decides_nothing(node: ast.AST) -> bool:
    """Whether it is a limit of work, or the assertion of `zip` that what it is given has one length."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("MAX_")
        case ast.keyword(arg="strict"):
            return True
    return False


def _changed(node: ast.expr) -> str | None:
    """The expression with its mistake; None if there is none to make."""
    match node:
        case ast.Compare(ops=[operator]):
            return ast.unparse(ast.Compare(node.left, [_FLIPPED[type(operator)]()], node.comparators))
        case ast.BoolOp(op=operator):
            flipped = ast.Or() if isinstance(operator, ast.And) else ast.And()
            return f"({ast.unparse(ast.BoolOp(flipped, node.values))})"
        case ast.UnaryOp(op=ast.Not()):
            return f"bool({ast.unparse(node.operand)})"
        case ast.IfExp():
            return f"({ast.unparse(ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse))})"
        case ast.BinOp(op=ast.Add() | ast.Sub() as operator, right=ast.Constant(value=int())):
            flipped_sign = ast.Sub() if isinstance(operator, ast.Add) else ast.Add()
            return f"({ast.unparse(ast.BinOp(node.left, flipped_sign, node.right))})"
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int(value)) if abs(value) <= 100:
            return str(value + 1)
    return None


def end_of(mutant: Mutant) -> str:
    """What the tests make of it: `killed`, `survived` or, if they did not end in time, `no end`."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "checkout"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", ".mypy_cache", ".hypothesis")
        )
        (copy / mutant.path).write_text(mutant.applied())
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", *[f"tests/{part}" for part in suites_of(mutant)]]
        environment = os.environ | {"PYTHONPATH": str(copy)}
        try:
            done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "no end"
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout.decode() + done.stderr.decode())  # no test ran
    return "killed" if done.returncode else "survived"


def suites_of(mutant: Mutant) -> list[str]:
    """The tests to run, those of the mutant's own package first."""
    package, *rest = mutant.path.with_suffix("").parts[1:]
    if package in CORE:
        return sorted(_there(_EVERY), key=lambda part: part != package)
    own = [f"questions/{rest[0]}"] if package == "questions" and len(rest) > 1 else []
    return [*own, package, *_there(_BESIDE.get(package, ()))]


def main() -> None:
    """Make some mutants, and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--others", dest="core", action="store_false", help="in server, audit and questions")
    parser.add_argument("--path", default="", help="only files whose path contains this")
    options = parser.parse_args()
    parts = CORE if options.core else OTHERS
    files = [path.relative_to(ROOT) for part in parts for path in sorted((ROOT / "webhook" / part).rglob("*.py"))]
    every = [mutant for path in files if options.path in str(path) for mutant in mutants_of(path)]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    others = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, end in zip(chosen, pool.map(end_of, chosen), strict=True):
            print(f"{end:8}", mutant, flush=True)
            others += [f"{end}: {mutant}"] if end != "killed" else []
    figure = f"{len(chosen) - len(others)} of {len(chosen)} killed"
    print(f"{figure}, of {len(every)} that can be made", *others, sep="\n")
    if not options.path:
        record("mutants", f"{figure}, seed {options.seed}", ", ".join(parts))


if __name__ == "__main__":
    main()
