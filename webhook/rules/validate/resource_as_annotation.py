"""An amount of a device is a resource of a container.

Reads:    the names of a pod's annotations and labels; the names of the device config
Finds:    one that is the name of a device resource
Why:      nothing reads it there, so the pod gets another amount than its author means.
"""

from webhook.rules.api import Context, Family, Finding, Findings, Level, ReviewedPod, Validation

DETAIL = "{key} is a resource, and nothing reads it here; write it under resources.limits of a container"


@Validation(Level.WARN, "the name of a device resource as an annotation or a label", fields={"annotations", "labels"})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find names of resources among annotations and labels."""
    view, roles = pod.view, pod.config.roles
    for field, found in (("annotations", view.annotations), ("labels", view.labels)):
        if found and not roles.keys().isdisjoint(found):
            for key in sorted(roles.keys() & found.keys()):
                if roles[key][0] != Family.ASCEND:  # the scheduler writes such an annotation: reserved-annotation
                    yield Finding(f"metadata.{field}[{key}]", DETAIL.format(key=key))
