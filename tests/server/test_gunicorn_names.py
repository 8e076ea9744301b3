"""Only public names of gunicorn are used, so that its next release changes nothing."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import webhook
from tests.cases import each_case
from webhook.console.serving import Console, ConsoleWorker
from webhook.gunicorn import OneWorker
from webhook.server.gunicorn import AdmissionWorker, Server
from webhook.server.logs import ServerLog

PACKAGE = Path(webhook.__file__).parent


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "gunicorn":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "gunicorn")


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def test_the_imported_names_are_public():
    found = {name for file in PACKAGE.rglob("*.py") for name in imported(file.read_text())}
    assert found
    assert not [name for name in found if any(map(private, name.split(".")))]


@each_case("ours", [OneWorker, AdmissionWorker, Server, ServerLog, ConsoleWorker, Console])
def test_no_private_name_of_a_base_class_is_used_or_overridden(ours: type):
    bases = [base for base in ours.__mro__ if base.__module__.partition(".")[0] == "gunicorn"]
    assert bases
    theirs = {
        name
        for base in bases
        for node in ast.walk(ast.parse(inspect.getsource(base)))
        for name in [getattr(node, "attr", getattr(node, "name", None))]
        if name is not None and private(name)
    }
    tree = ast.parse(inspect.getsource(ours))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert (used | defined) & theirs == set()
