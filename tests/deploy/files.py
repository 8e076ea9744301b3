"""The files of deploy/: as kubectl combines them, and as they are."""

import pickle
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
import yaml

from certs.binding import rules_by_entry
from tests.parts.compiled import API_SERVER
from webhook.cli.main import program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart"
DEFAULT = (DEPLOY / "base", DEPLOY / "components" / "self-managed-certificates")
KUSTOMIZATIONS = sorted(file.parent for file in DEPLOY.rglob("kustomization.yaml"))
OVERLAYS = [DEPLOY, *sorted((DEPLOY / "overlays").iterdir())]

Json = dict[str, Any]


def kustomization(directory: Path) -> Json:
    return yaml.safe_load((directory / "kustomization.yaml").read_text())


def documents(*directories: Path) -> list[Json]:
    """The objects in the resource files of these directories."""
    return [
        document
        for directory in directories
        for resource in kustomization(directory).get("resources", [])
        if (directory / resource).is_file()
        for document in yaml.safe_load_all((directory / resource).read_text())
    ]


def one(found: Iterable[Json], kind: str, name: str = "vgpu-webhook", namespace: str | None = None) -> Json:
    (document,) = (
        document
        for document in found
        if (document["kind"], document["metadata"]["name"]) == (kind, name)
        and namespace in (None, document["metadata"].get("namespace"))
    )
    return document


def pod_specs(found: Iterable[Json]) -> dict[str, Json]:
    specs = {}
    for document in found:
        spec = document.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template")
        if template is not None:
            specs[document["kind"]] = template["spec"]
    return specs


def roles_of(found: Iterable[Json], account: str) -> set[tuple[str, str]]:
    """The kinds of the bindings of an account, and the names of the roles that they grant."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "vgpu-webhook"}
    return {(each["kind"], each["roleRef"]["name"]) for each in found if subject in each.get("subjects", [])}


def documented_rights(cell: str) -> str:
    """What docs/security.md states that an account may, in the rows whose first cell contains a text."""
    rows = [row.split("|") for row in (ROOT / "docs" / "security.md").read_text().splitlines()]
    return " ".join(row[2] for row in rows if len(row) == 4 and cell in row[1]).lower()


def parsed(command: click.Command, arguments: Iterable[str]) -> SimpleNamespace:
    """The options of a command with these arguments."""
    parent = click.Context(program, **program.context_settings)  # a command keeps the first names of its help option
    return SimpleNamespace(**command.make_context(str(command.name), list(arguments), parent).params)


def built(directory: Path) -> list[Json]:
    """The objects that `kubectl apply -k` would apply, in order."""
    assets = API_SERVER.find()
    kubectl = str(assets / "kubectl") if assets else shutil.which("kubectl")
    if kubectl is None:
        pytest.skip(f"there is no kubectl: install it, or {API_SERVER.help}")
    found: list[Json] = pickle.loads(_kustomized(kubectl, directory))
    return found


@cache
def _kustomized(kubectl: str, directory: Path) -> bytes:
    """Pickled, as each caller gets a copy."""
    done = subprocess.run([kubectl, "kustomize", str(directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pickle.dumps(list(yaml.safe_load_all(done.stdout)))


def bound(configuration: Json) -> Json:
    """The configuration with its annotations' rules in its entries."""
    wanted = rules_by_entry(configuration)
    entries = [
        entry | ({"rules": wanted[entry["name"]]} if entry["name"] in wanted else {})
        for entry in configuration["webhooks"]
    ]
    return configuration | {"webhooks": entries}
