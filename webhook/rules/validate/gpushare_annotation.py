"""A list of unhealthy cards has no effect on a pod.

Finds:    `gpu-unhealthy-ids` annotated on a pod: it excludes no card
Why:      the scheduler reads it on nodes only, so the pod may still get such a card.
"""

from webhook.rules.api import EVERY_POD, Context, Finding, Findings, ReviewedPod, annotations, names, warn, wording

DETAIL = f"the annotation {names.GPU_UNHEALTHY_IDS} is read on nodes, not on pods, and excludes no card here; remove it"


@warn(families=EVERY_POD, needs=annotations(names.GPU_UNHEALTHY_IDS))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find the annotation."""
    if names.GPU_UNHEALTHY_IDS in pod.view.annotations:
        yield Finding(wording.annotation_path(names.GPU_UNHEALTHY_IDS), DETAIL)
