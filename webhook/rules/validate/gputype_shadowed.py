"""If a pod has both gputype annotations, the scheduler reads only one.

Reads:    the annotations nvidia.com/use-gputype and nvidia.com/nouse-gputype
Finds:    both on one pod
Why:      the scheduler ignores nouse-gputype if use-gputype exists, whatever its value.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = f"{names.NOUSE_GPUTYPE} is never read beside {names.USE_GPUTYPE}; keep one of them"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find pods with both keys."""
    annotations = pod.view.annotations
    if names.USE_GPUTYPE in annotations and names.NOUSE_GPUTYPE in annotations:
        yield Finding(wording.annotation_path(names.NOUSE_GPUTYPE), DETAIL)


RULE = Validation(
    id="gputype-shadowed",
    level=Level.WARN,
    summary="both gputype annotations: the scheduler then ignores nouse-gputype",
    check=check,
    families=VGPU_ONLY,
    fields=ANNOTATIONS,
)
