"""The mode of an Ascend pod must be exactly hami-core, and Volcano 1.16 or newer.

Finds:    `huawei.com/vnpu-mode` that differs from `hami-core` only in case, spaces or dashes; before Volcano 1.16 also
          `hami-core` itself
Why:      the scheduler reads every other value as a hard split: it cuts NPUs by templates and rounds memory up.
"""

from webhook.devices.ascend.feasibility import is_hami_core
from webhook.devices.vgpu.eligibility import near_mode
from webhook.rules.api import ASCEND_ONLY, Context, Finding, Findings, ReviewedPod, annotations, names, warn, wording
from webhook.volcano.target import VOLCANO_FACTS, format_version

UNREAD = (
    f"{names.VNPU_MODE} is {{mode}}, but Volcano {{version}} does not read it and cuts NPUs by templates; remove it, or "
    f"upgrade Volcano to {format_version(VOLCANO_FACTS['shares_npus'].first)} or newer"
)
DETAIL = f"{names.VNPU_MODE} is {{mode}}, which is read as a hard split; did you mean {wording.quoted(names.MODE_HAMI_CORE)}?"


@warn(families=ASCEND_ONLY, needs=annotations(names.VNPU_MODE), reads=("policy.target",))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find a misspelt hami-core, and one that is not read."""
    written, target = pod.view.annotation(names.VNPU_MODE), context.cluster.target
    if written is None or near_mode(written) != names.MODE_HAMI_CORE:
        return
    detail = DETAIL if target.shares_npus else UNREAD
    if not (target.shares_npus and is_hami_core(pod.view)):
        message = detail.format(mode=wording.quoted(written), version=format_version(target.volcano))
        yield Finding(wording.annotation_path(names.VNPU_MODE), message)
