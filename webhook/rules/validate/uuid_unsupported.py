"""Volcano reads the UUID annotations from 1.16 on.

Reads:    the annotations volcano.sh/vgpu-use-gpuuuid and volcano.sh/vgpu-nouse-gpuuuid; policy target.volcano
Finds:    both, if the target is older
Why:      the pod would run on any card, although its author excludes some.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level
from webhook.volcano.target import format_version

DETAIL = "Volcano {version} ignores {key}: any card may be taken; it is read from 1.16 on"
KEYS = (names.USE_GPUUUID, names.NOUSE_GPUUUID)


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find annotations that the target version ignores."""
    target = context.settings.target
    if target.reads_uuids:
        return
    for key in KEYS:
        if key in pod.view.annotations:
            version = format_version(target.volcano)
            yield Finding(wording.annotation_path(key), DETAIL.format(version=version, key=key))


RULE = Validation(
    id="uuid-unsupported",
    level=Level.WARN,
    summary="GPU UUID annotations on a Volcano before 1.16, which ignores them",
    check=check,
    families=VGPU_ONLY,
    fields=ANNOTATIONS,
)
