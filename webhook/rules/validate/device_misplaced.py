"""A device is requested by a container, and nowhere else.

Finds:    a device at the level of the pod or the Job, in `limits` outside `resources`, or in `metadata.annotation`
Why:      nothing reads it there, so the pod starts without the device.

The API server drops fields that it does not know, so most of these are only seen in files: `review` and `scan` look for them.
"""

from webhook.rules.api import EVERY_POD, Context, Finding, Findings, Level, ReviewedPod, Validation
from webhook.rules.misplaced import beside_containers


@Validation(
    Level.WARN, "a device that is requested where nothing reads it", families=EVERY_POD, needs={"spec.resources"}
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Look beside the containers."""
    found = beside_containers(pod.view.spec, "spec", context.cluster.config.resources.exact)
    return [Finding(path, detail) for path, detail in found]
