"""If a pod has both gputype annotations, the scheduler reads only one.

Finds:    both gputype annotations: the scheduler then ignores nouse-gputype
Why:      the scheduler ignores nouse-gputype if use-gputype exists, whatever its value.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, annotations, names, warn, wording

DETAIL = f"{names.NOUSE_GPUTYPE} is never read beside {names.USE_GPUTYPE}; keep one of them"


@warn(families=VGPU_ONLY, needs=annotations(names.USE_GPUTYPE, names.NOUSE_GPUTYPE))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find pods with both keys."""
    annotations = pod.view.annotations
    if names.USE_GPUTYPE in annotations and names.NOUSE_GPUTYPE in annotations:
        yield Finding(wording.annotation_path(names.NOUSE_GPUTYPE), DETAIL)
