"""The manifests of docs/request.md are right, as they stand; tests/golden records what is found in each: nothing."""

from typing import Any

import yaml

from tests.docs.commands import README
from tests.docs.generated import DOCS
from tests.docs.markdown import blocks
from tests.reviewing import ALL_FAMILIES, request, snapshot
from webhook.review.endpoints import review

PAGE = (DOCS / "request.md").read_text()
BLOCKS = [yaml.safe_load(block.text) for block in blocks(PAGE, "yaml")]
MANIFESTS = [block for block in BLOCKS if "kind" in block]
(JUPYTERHUB,) = [block for block in BLOCKS if "kind" not in block]


def test_the_manifests_have_different_names_and_are_counted():
    assert len({manifest["metadata"]["name"] for manifest in MANIFESTS}) == len(MANIFESTS) == 17
    assert "\n\nSeventeen manifests" in PAGE
    assert "one of [seventeen manifests](docs/request.md)" in README.read_text()


def test_half_a_card_is_half_of_any_card():
    half = next(manifest for manifest in MANIFESTS if manifest["metadata"]["name"] == "half-a-card")
    outcome = review(request(half), snapshot("rtx4090"))
    (edit,) = [edit for edit in outcome.operations if edit["path"].endswith("limits/volcano.sh~1vgpu-memory")]
    assert edit["value"] == str(24564 // 2)


def notebook(values: dict[str, Any], profile: int | None) -> dict[str, Any]:
    """The pod that the hub of zero-to-jupyterhub makes (jupyterhub/files/hub/jupyterhub_config.py, kubespawner/objects.py)."""
    override = {} if profile is None else values["singleuser"]["profileList"][profile].get("kubespawner_override", {})
    limits = override.get("extra_resource_limits", {"volcano.sh/vgpu-number": "1"} if profile is None else {})
    blocks_metadata = {
        "name": "block-cloud-metadata",
        "image": "quay.io/jupyterhub/k8s-network-tools",
        "securityContext": {"privileged": True, "runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"]}},
    }
    keeps = values["singleuser"].get("cloudMetadata", {}).get("blockWithIptables", True)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "jupyter-alice", "annotations": override.get("extra_annotations", {})},
        "spec": {
            "schedulerName": override.get("scheduler_name", "jhub-user-scheduler"),
            "initContainers": [blocks_metadata] if keeps else [],
            "containers": [{"name": "notebook", "image": "notebook", "resources": {"limits": limits}}],
        },
    }


PUBLISHED = [*MANIFESTS, *(notebook(JUPYTERHUB, profile) for profile in range(2))]


def test_a_notebook_of_the_charts_defaults_is_told_their_settings():
    found = review(request(notebook({"singleuser": {}}, None)), snapshot(*ALL_FAMILIES)).violations
    told = {violation.rule: violation.message for violation in found}
    assert "kubespawner_override" in told["foreign-scheduler"]
    assert "singleuser.cloudMetadata.blockWithIptables: false" in told["privileged-device"]
