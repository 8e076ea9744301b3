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


@pytest.mark.parametrize("module", ["webhook.review.endpoints", "webhook.wire.codec", "webhook.rules.registry"])
def test_the_core_loads_nothing_from_outside(module: str):
    """Runs in a new interpreter. Import-linter only reads import statements; this test also finds indirect imports."""
    script = f"import json, sys; import {module}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(output))
    assert module in loaded
    assert loaded & OUTSIDE_THE_CORE == set()


def test_no_two_files_import_each_other():
    """Nor longer circles. An import for type checkers, or inside a function, counts."""
    graph = grimp.build_graph("webhook", "certs", cache_dir=None)
    order = graphlib.TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    order.prepare()  # raises CycleError, which names the circle


def test_names_under_volcano_sh_are_in_one_module():
    others = [file for file in PACKAGE.rglob("*.py") if file != PACKAGE / "names.py"]
    assert {str(file): literals for file in others if (literals := names_under("volcano.sh/", file))} == {}


def test_no_two_public_classes_share_a_name():
    places: dict[str, list[str]] = {}
    for file in [*PACKAGE.rglob("*.py"), *CERTS.rglob("*.py")]:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def names_under(domain: str, file: Path) -> list[str]:
    """The string literals with a name under a domain, without docstrings and the bare domain."""
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
    return [text for text in literals if domain in text and text != domain]
