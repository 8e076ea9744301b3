"""Volcano reads the UUID annotations from 1.16 on.

Finds:    GPU UUID annotations on a Volcano before 1.16, which ignores them
Why:      the pod would run on any card, although its author excludes some.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, annotations, names, warn, wording
from webhook.volcano.target import format_version

DETAIL = "Volcano {version} ignores {key}: any card may be taken; it is read from 1.16 on"
KEYS = (names.USE_GPUUUID, names.NOUSE_GPUUUID)


@warn(families=VGPU_ONLY, needs=annotations(*KEYS), reads=("policy.target",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find annotations that the target version ignores."""
    target = context.cluster.target
    if target.reads_uuids:
        return
    for key in KEYS:
        if key in pod.view.annotations:
            version = format_version(target.volcano)
            yield Finding(wording.annotation_path(key), DETAIL.format(version=version, key=key))
