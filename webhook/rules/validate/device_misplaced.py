"""A device is requested by a container, and nowhere else.

Finds:    a device that is requested for the pod or the Job, in `limits` outside `resources`, or in `metadata.annotation`
Why:      nothing reads it there, so the pod starts without the device.

The API server drops fields that it does not know, so most of these are only seen in files: `review` and `scan` look for them.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from webhook.rules.api import EVERY_POD, Context, Finding, Findings, ReviewedPod, warn, wording

AMOUNTS = ("limits", "requests")

# What is beside the field `resources` of an object that is no container, and where the container is instead.
_BESIDE = {"model": "model", "containers": "containers[]", "template": "template.spec.containers[]"}


@warn(families=EVERY_POD, needs={"spec.resources"})
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Look beside the containers."""
    return beside_containers(pod.view.spec, "spec", context.cluster.config.resources.exact)


def beside_containers(spec: Mapping[str, Any], path: str, resources: Collection[str]) -> Iterator[Finding]:
    """The field `resources` of an object that is no container: of a pod, of a Job, of KServe's predictor."""
    resources_beside = spec.get("resources")
    where = next((there for key, there in _BESIDE.items() if key in spec), "")
    if where and isinstance(resources_beside, dict):
        for part in AMOUNTS:
            yield from find_devices(
                resources_beside.get(part), resources, f"{path}.resources.{part}", f"{path}.{where}.resources.{part}"
            )


def find_devices(amounts: Any, resources: Collection[str], path: str, where: str) -> Iterator[Finding]:
    """The devices among the keys at a path, which belong elsewhere."""
    for name in amounts if isinstance(amounts, dict) else ():
        if name in resources:
            shown = wording.unquoted(name)
            yield Finding(
                f"{path}[{shown}]", f"{shown} stands in {path}, where nothing reads it; write it under {where}"
            )
