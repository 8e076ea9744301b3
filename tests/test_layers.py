"""The modules that the core loads, and names that are unique. `make check` enforces the import layers."""

import ast
import graphlib
import json
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import certs
import webhook

PACKAGE = Path(webhook.__file__).parent
CERTS = Path(certs.__file__).parent

OUTSIDE_THE_CORE = {
    "aiohttp",
    "certs",
    "flask",
    "gunicorn",
    "kubernetes",
    "prometheus_client",
    "requests",
    "sqlalchemy",
    "urllib3",
    "uvloop",
    "webhook.audit",
    "webhook.cli",
    "webhook.console",
    "webhook.questions",
    "webhook.cluster",
    "webhook.manifests",
    "webhook.inputs",
    "webhook.existing",
    "webhook.live",
    "webhook.suites",
    "webhook.emit",
    "webhook.server",
    "webhook.settings",
    "yaml",
}


def test_the_core_loads_nothing_from_outside():
    """Runs in a new interpreter. Import-linter only reads import statements; this test also finds indirect imports."""
    modules = {"webhook.review.endpoints", "webhook.wire.codec", "webhook.rules.registry"}
    script = f"import json, sys; import {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(output))
    assert modules <= loaded
    assert loaded & OUTSIDE_THE_CORE == set()


def test_no_two_files_import_each_other():
    """Nor longer circles. An import for type checkers, or inside a function, counts."""
    graph = grimp.build_graph("webhook", "certs", cache_dir=None)
    order = graphlib.TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    order.prepare()  # raises CycleError, which names the circle


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text()) for root in (PACKAGE, CERTS) for file in root.rglob("*.py")}


def test_names_under_volcano_sh_are_in_one_module(trees: dict[Path, ast.Module]):
    found = {file: tree for file, tree in trees.items() if PACKAGE in file.parents and "volcano.sh" in file.read_text()}
    assert [file for file, tree in found.items() if names_under("volcano.sh/", tree)] == [PACKAGE / "names.py"]


def test_no_two_public_classes_share_a_name(trees: dict[Path, ast.Module]):
    places: dict[str, list[str]] = {}
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def names_under(domain: str, tree: ast.Module) -> list[str]:
    """The string literals with a name under a domain, without docstrings and the bare domain."""
    nodes = [*ast.walk(tree)]
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    literals = [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    return [text for text in literals if domain in text and text != domain]
