"""The mode of an Ascend pod must be exactly hami-core.

Reads:    the annotation huawei.com/vnpu-mode
Finds:    a mode that differs from hami-core only in case, spaces or dashes
Why:      the scheduler reads every other value as a hard split: it cuts NPUs by templates and rounds memory up.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.ascend.feasibility import is_hami_core
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.eligibility import near_mode
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import ASCEND_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = f"{names.VNPU_MODE} is {{mode}}, which is read as a hard split; did you mean {wording.quoted(names.MODE_HAMI_CORE)}?"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find a misspelt hami-core."""
    written = pod.view.annotation(names.VNPU_MODE)
    if written is not None and near_mode(written) == names.MODE_HAMI_CORE and not is_hami_core(pod.view):
        yield Finding(wording.annotation_path(names.VNPU_MODE), DETAIL.format(mode=wording.quoted(written)))


RULE = Validation(
    id="ascend-mode-unread",
    level=Level.WARN,
    summary="`huawei.com/vnpu-mode` that differs from `hami-core` only in case, spaces or dashes: it is read as a hard split",
    check=check,
    families=ASCEND_ONLY,
    fields=ANNOTATIONS,
)
