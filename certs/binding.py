"""Makes the API server depend on the webhook. Pure.

The API server never calls a webhook entry without rules. So the manifests leave the rules out of the entries and keep them
in annotations of the configuration: if the webhook never starts, no pod depends on it. `ensure` and `bind` copy the rules
into the entries once the API server has had a response from the webhook. Entries then stay binding: `kubectl apply` and
GitOps tools do not remove fields that the manifests leave out.
"""

from collections.abc import Iterable
from typing import Any

import yaml

from certs.errors import CertsError
from webhook import names

Object = dict[str, Any]


def rules_by_entry(configuration: Object) -> dict[str, Any]:
    """The rules in the annotations, by the name of the entry.

    Raises:
        CertsError: an annotation cannot be read.
    """
    rules = {}
    for key, text in (configuration["metadata"].get("annotations") or {}).items():
        if key.startswith(names.RULES_ANNOTATION):
            try:
                rules[key.removeprefix(names.RULES_ANNOTATION)] = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise CertsError(f"the annotation {key} is not YAML: apply the manifests again") from error
    return rules


def unbound(configuration: Object) -> dict[int, str]:
    """The names of the entries whose rules differ from those in the annotations, by index.

    Raises:
        CertsError: an annotation cannot be read.
    """
    wanted = rules_by_entry(configuration)
    return {
        at: entry["name"]
        for at, entry in enumerate(configuration.get("webhooks") or [])
        if entry["name"] in wanted and entry.get("rules") != wanted[entry["name"]]
    }


def patch(configuration: Object, owner: Object) -> list[Object]:
    """The JSON patch that makes a configuration binding; empty if it is, or has no rules in annotations.

    Args:
        configuration: as read; the patch fails if it has changed since.
        owner: an owner reference to the webhook's Namespace. When the Namespace is deleted, so is the configuration.

    Raises:
        CertsError: an annotation cannot be read.
    """
    metadata, wanted = configuration["metadata"], rules_by_entry(configuration)
    operations = [
        {"op": "add", "path": f"/webhooks/{at}/rules", "value": wanted[name]}
        for at, name in unbound(configuration).items()
    ]
    owners = metadata.get("ownerReferences") or []
    if wanted and owner not in owners:
        others = [other for other in owners if (other["kind"], other["name"]) != (owner["kind"], owner["name"])]
        operations.append({"op": "add", "path": "/metadata/ownerReferences", "value": [*others, owner]})
    if not operations:
        return []
    return [{"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}, *operations]


def same_bundle(configurations: Iterable[Object]) -> bool:
    """Whether all entries trust the same CAs, so that one probe is enough for all."""
    entries = [entry for configuration in configurations for entry in configuration.get("webhooks") or []]
    return len({entry["clientConfig"].get("caBundle", "") for entry in entries}) <= 1
