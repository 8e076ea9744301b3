"""Base, components and overlays are complete, have no unused file, and are in the right order."""

from pathlib import Path

import pytest

from tests.deploy.files import CHART, DEPLOY, KUSTOMIZATIONS, OVERLAYS, built, kustomization, one, pod_specs

FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and not path.is_relative_to(CHART))
CONFIGURATIONS = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


def referenced(directory: Path) -> set[Path]:
    """The files and directories that a kustomization names."""
    text = kustomization(directory)
    files = [*text.get("resources", []), *text.get("components", []), *text.get("configurations", [])]
    files += [patch["path"] for patch in text.get("patches", []) if "path" in patch]
    files += [
        entry.rpartition("=")[2] for generator in text.get("configMapGenerator", []) for entry in generator["files"]
    ]
    return {(directory / file).resolve() for file in files}


def test_every_named_file_exists_and_every_file_is_named():
    named = {DEPLOY, *OVERLAYS}.union(*map(referenced, KUSTOMIZATIONS))
    assert [path for path in named if not path.exists()] == []
    files = {path for path in FILES if path.name != "kustomization.yaml"}
    for_api_servers = set((DEPLOY / "components").glob("*/api-server/*"))
    for_the_image = {DEPLOY / name for name in ("Dockerfile", "build-requirements.txt", "requirements.txt")}
    assert files - named == for_the_image | for_api_servers
    assert {directory for directory in KUSTOMIZATIONS if directory not in named} == set()


@pytest.mark.parametrize("directory", OVERLAYS, ids=lambda directory: directory.name)
def test_the_webhook_configurations_are_created_and_deleted_first(directory: Path):
    """`kubectl delete -k` uses this order, so that the API server no longer calls the pods while they end."""
    assert kustomization(directory)["sortOptions"] == {"order": "fifo"}
    found = built(directory)
    assert [document["kind"] for document in found[:2]] == CONFIGURATIONS
    assert found[2]["kind"] == "Namespace"
    assert all("finalizers" not in document["metadata"] for document in found)


def test_the_default_creates_its_certificates():
    assert {"Deployment", "Job", "CronJob"} == pod_specs(built(DEPLOY)).keys()
    assert one(built(DEPLOY), "ConfigMap", "vgpu-webhook-policy")["data"].keys() == {"policy.yaml"}
