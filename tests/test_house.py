"""The house: what stands where, and what the core may know."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import webhook

PRODUCT = Path(webhook.__file__).parent
ROOT = PRODUCT.parent

TOP_LEVEL = {
    "LICENSE",
    "Makefile",
    "README.md",
    "README.zh-CN.md",
    "certs",
    "constraints.txt",
    "deploy",
    "pyproject.toml",
    "tests",
    "webhook",
}

CORE = ("errors", "names", "texts", "pod", "devices", "rules", "wire", "outcome.py", "review.py")
DOORS = {
    "aiohttp",
    "certs",
    "flask",
    "gunicorn",
    "kubernetes",
    "prometheus_client",
    "requests",
    "urllib3",
    "uvloop",
    "webhook.audit",
    "webhook.cli",
    "webhook.console",
    "webhook.doctor",
    "webhook.kube",
    "webhook.manifests",
    "webhook.offline",
    "webhook.policy",
    "webhook.render",
    "webhook.server",
    "webhook.settings",
    "yaml",
}
IMPURE = {"asyncio", "logging", "os", "random", "socket", "subprocess", "threading", "time"}


def test_the_top_level_holds_what_the_design_names_and_nothing_else():
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout knows which files are the project's")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    found = {file.partition("/")[0] for file in listed}
    assert {entry for entry in found if not entry.startswith(".")} <= TOP_LEVEL
    assert {"LICENSE", "Makefile", "README.md", "pyproject.toml", "tests", "webhook"} <= found


@pytest.mark.parametrize("module", ["webhook.review", "webhook.wire.codec", "webhook.rules.registry"])
def test_the_core_brings_in_no_door(module: str):
    """In a fresh interpreter: import-linter reads import statements, this sees what really comes."""
    script = f"import json, sys; import {module}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(output))
    assert module in loaded
    assert loaded & DOORS == set()


def test_no_core_module_names_what_is_impure():
    """The libraries of the core may use a clock or a socket; the core itself never does."""
    for file in _sources():
        if file.relative_to(PRODUCT).parts[0].removesuffix(".py") in {name.removesuffix(".py") for name in CORE}:
            assert _imported(file) & (IMPURE | DOORS) == set(), file


def test_every_name_under_volcano_sh_is_spelled_in_one_place():
    spelled = {}
    for file in _sources():
        if file != PRODUCT / "names.py":
            spelled[str(file.relative_to(ROOT))] = _literals_with(file, names_under="volcano.sh/")
    assert {file: found for file, found in spelled.items() if found} == {}


def _sources() -> list[Path]:
    return sorted(PRODUCT.rglob("*.py"))


def _imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} | {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, node.module.partition(".")[0], ".".join(node.module.split(".")[:2])}
    return found


def _literals_with(file: Path, names_under: str) -> list[str]:
    """The string literals that spell a name under a domain; docstrings excepted, the bare domain too."""
    tree = ast.parse(file.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    literals = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    return [text for text in literals if names_under in text and text != names_under]
