"""The Helm chart: `python -m tests.deploy.chart` generates the resource files of the kustomization from it.

A template in `templates/base` or `templates/components` generates the file of the same path in deploy/.
"""

import json
import pickle
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.files import CHART, DEPLOY, ROOT, Json
from webhook.devices.dialects import DIALECTS
from webhook.manifests.configurations import as_yaml, configurations
from webhook.policy.json_schema import json_schema
from webhook.policy.policy import parse_policy
from webhook.settings.snapshot import default_device_config

NAME = NAMESPACE = "vgpu-webhook"
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

# The values that install what an overlay installs.
VALUES: dict[str, Json] = {
    "deploy": {},
    "all-pods": {"allPods": True},
    "cert-manager": {"certificates": {"source": "cert-manager"}},
    "client-ca": {"clientCA": "vgpu-webhook-client-ca"},
    "console": {"console": {"enabled": True}},
    "events": {"events": True},
    "high-availability": {"highAvailability": True},
    "monitoring": {"monitoring": {"enabled": True}},
    "fallback": {"fallback": True},
    "reports": {"reports": {"enabled": True}},
    "store": {"store": {"enabled": True}},
    "store-pods": {"store": {"enabled": True, "readPods": True}},
}
# Files that name the version, and how.
VERSIONED = [
    CHART / "Chart.yaml",
    DEPLOY / "Dockerfile",
    DEPLOY / "components" / "console" / "deployment.yaml",
    DEPLOY / "components" / "store" / "deployment.yaml",
    *sorted(ROOT.glob("README*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
SCHEMA = CHART / "values.schema.json"
TRANSLATED = CHART / "files" / "dialects.yaml"
_POLICY_FILE = re.compile(r'(?m)^(?P<key> {4}"policyFile": ).*,$')
_NAMED = re.compile(r"(?m)(?P<where>vgpu-webhook:|^(?:appV|v)ersion: )\d+\.\d+\.\d+")


def rendered(values: Json | None = None, namespace: str = NAMESPACE, **release: Any) -> dict[str, str]:
    """The texts that Helm renders from the templates, by path.

    Raises:
        helm_python.HelmError: the values are refused.
    """
    return dict(_rendered(json.dumps(values or {}), namespace, **release))


@cache
def _rendered(values: str, namespace: str, **release: Any) -> dict[str, str]:
    texts = _chart().render(json.loads(values), name=NAME, namespace=namespace, **release)
    return {path.removeprefix("vgpu-webhook/templates/"): text for path, text in texts.items()}


@cache
def _chart() -> Any:
    from helm_python import Chart

    return Chart.load(CHART)


def objects(values: Json | None = None, namespace: str = NAMESPACE, **release: Any) -> list[Json]:
    found: list[Json] = pickle.loads(_objects(json.dumps(values or {}), namespace, **release))
    return found


@cache
def _objects(values: str, namespace: str, **release: Any) -> bytes:
    """Pickled, as each caller gets a copy."""
    texts = _rendered(values, namespace, **release)
    found = [yaml.safe_load_all(text) for path, text in texts.items() if path.endswith(".yaml")]
    return pickle.dumps([document for documents in found for document in documents if document])


def made_files() -> Iterator[tuple[Path, str]]:
    """The generated files: resources of the kustomization, and files with the version or the schema of the policy."""
    yield TRANSLATED, _translated()
    yield SCHEMA, _POLICY_FILE.sub(lambda found: f"{found['key']}{_policy_schema()},", SCHEMA.read_text())
    for file in VERSIONED:
        yield file, _NAMED.sub(rf"\g<where>{VERSION}", file.read_text())
    for template in sorted((CHART / "templates").glob("*/**/*.yaml")):
        path = template.relative_to(CHART / "templates")
        overlay = "cert-manager" if path.parts[0] == "base" else path.parts[1]  # base creates no certificates
        text = rendered(VALUES.get(overlay))[str(path)].strip() + "\n"
        # kustomize replaces the variables after it has changed names and namespace
        yield DEPLOY / path, text.replace(f"- {NAME}.{NAMESPACE}.svc", "- $(SERVICE).$(NAMESPACE).svc")


def _translated() -> str:
    """The entries that are added if the policy translates a dialect, whichever it is, with their annotations."""
    old, new = printed({}), printed(dict.fromkeys(DIALECTS, "translate"))
    found = {after["kind"]: _added(before, after) for before, after in zip(old, new, strict=True)}
    header = "# The entries that are added if the policy translates dialects: made by tests/deploy/chart.py.\n"
    return header + yaml.safe_dump(found, sort_keys=False, width=2**31)


def printed(dialects: Json) -> list[Json]:
    """What `vgpu-webhook manifests` prints with these dialects in the policy."""
    policy = parse_policy({"dialects": dialects}, "policy")
    return list(yaml.safe_load_all(as_yaml(configurations(default_device_config(), policy))))


def _added(old: Json, new: Json) -> Json:
    annotations = old["metadata"]["annotations"]
    return {
        "webhooks": [entry for entry in new["webhooks"] if entry not in old["webhooks"]],
        "annotations": {key: text for key, text in new["metadata"]["annotations"].items() if key not in annotations},
    }


def _policy_schema() -> str:
    schema = json_schema()
    del schema["$schema"]
    return json.dumps(_undescribed(schema)).replace("#/$defs/", "#/definitions/policyFile/$defs/")


def _undescribed(schema: Any) -> Any:
    """A schema without what explains: Helm only checks values, and so the file changes less often."""
    if isinstance(schema, dict):
        explains = ("default", "description", "examples", "title")
        return {key: _undescribed(value) for key, value in schema.items() if key not in explains}
    return [_undescribed(item) for item in schema] if isinstance(schema, list) else schema


if __name__ == "__main__":
    for _path, _text in made_files():
        _path.write_text(_text)
