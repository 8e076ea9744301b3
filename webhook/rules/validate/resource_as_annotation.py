"""An amount of a device is a resource of a container.

Finds:    the name of a device resource as an annotation or a label
Why:      nothing reads it there, so the pod gets another amount than its author means.
"""

from webhook.devices.dialects import AMOUNTS, ANNOTATIONS
from webhook.rules.api import EVERY_POD, Context, Family, Finding, Findings, ReviewedPod, warn
from webhook.rules.dialects import ANNOTATED, DIALECT, dialect_names
from webhook.rules.isolation import is_reserved

DETAIL = "{key} is a resource, and nothing reads it here; write {ours} under resources.limits of a container"


@warn(
    families=EVERY_POD,
    needs={"metadata.annotations[<resource>]", "metadata.labels[<resource>]"},
    reads=(ANNOTATED, DIALECT),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find names of resources among annotations and labels."""
    view, roles, every = pod.view, pod.config.roles, pod.config.resources.exact
    for field, written, known in (("annotations", view.annotations, every), ("labels", view.labels, roles.keys())):
        if written and not known.isdisjoint(written):
            read_elsewhere = dialect_names(pod, context) | ANNOTATIONS
            for key in sorted(known & written.keys()):
                if field == "annotations" and is_reserved(key, pod):
                    continue
                # Of NPUs, the scheduler writes such an annotation: reserved-annotation.
                if roles[key][0] != Family.ASCEND if key in roles else key not in read_elsewhere:
                    theirs = None if key in roles else AMOUNTS.get(key)
                    ours = "it" if theirs is None else pod.config.vgpu.role_names[theirs[1]]
                    yield Finding(f"metadata.{field}[{key}]", DETAIL.format(key=key, ours=ours))
