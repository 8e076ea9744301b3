"""The modules that the core loads, and names that are unique. `make check` enforces the import layers."""

import ast
import graphlib
import json
import subprocess
import sys
import tokenize
from io import StringIO
from pathlib import Path

import grimp
import pytest

import certs
import webhook
from tests.server.program import DATA, Authority

PACKAGE = Path(webhook.__file__).parent
CERTS = Path(certs.__file__).parent
NO_CODE = {getattr(tokenize, name) for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")}

OUTSIDE_THE_CORE = {
    "aiohttp", "certs", "flask", "gunicorn", "kubernetes", "prometheus_client", "requests", "sqlalchemy", "urllib3", "uvloop",
    "webhook.audit", "webhook.cli", "webhook.cluster", "webhook.console", "webhook.existing_objects", "webhook.inputs",
    "webhook.live", "webhook.manifests", "webhook.output", "webhook.questions", "webhook.server", "webhook.settings",
    "webhook.suites", "yaml",
}  # fmt: skip


def test_the_core_loads_nothing_from_outside():
    """Runs in a new interpreter. Import-linter only reads import statements; this test also finds indirect imports."""
    modules = {"webhook.review.endpoints", "webhook.wire.codec", "webhook.rules.registry"}
    script = f"import json, sys; import {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    loaded = set(json.loads(output))
    assert modules <= loaded
    assert loaded & OUTSIDE_THE_CORE == set()


def test_the_admission_server_loads_at_most_14850_lines_of_code(tmp_path):
    """Without blank lines, comments and docstrings, once it has reviewed pods and a setting."""
    authority, reviews = Authority(tmp_path), sorted((DATA / "reviews").glob("*.json"))
    script = """if True:
        import sys
        from pathlib import Path
        import webhook.cli.main, webhook.cli.serve
        from webhook.server.wiring import Options, Service
        from webhook.settings.sources import or_samples
        certificate, key, *reviews = map(Path, sys.argv[1:])
        service = Service(Options(certificate, key, or_samples({}), audit_logs=[str(key.with_name("audit"))]))
        for body in map(Path.read_bytes, reviews):
            for path in ("/mutate", "/validate", "/settings"):
                service.admission.answer(path, body, client_verified=True)
        print(*[module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in ("webhook", "certs")])
    """
    command = [sys.executable, "-c", script, authority.certificate, authority.key, *reviews]
    files = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert len((tmp_path / "audit").read_text().splitlines()) > len(reviews)
    assert 14_600 < sum(map(lines_of_code, files)) <= 14_850


def lines_of_code(file: str) -> int:
    """The lines of a file that are no comments, docstrings or blank."""
    source = Path(file).read_text()
    docstrings = {line for each in docstrings_of(ast.parse(source)) for line in range(each.lineno, each.end_lineno + 1)}
    tokens = [each for each in tokenize.generate_tokens(StringIO(source).readline) if each.type not in NO_CODE]
    return len({line for each in tokens for line in range(each.start[0], each.end[0] + 1)} - docstrings)


def docstrings_of(tree: ast.Module) -> list[ast.expr]:
    places = [each for each in ast.walk(tree) if isinstance(each, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return [each.body[0].value for each in places if ast.get_docstring(each, clean=False) is not None]


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
    docstrings = docstrings_of(tree)
    literals = [each for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    found = [each.value for each in literals if domain in each.value and each not in docstrings]
    return [text for text in found if text != domain]
