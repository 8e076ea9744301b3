"""The scheduler compares the mode byte by byte.

Refuses:  `volcano.sh/vgpu-mode` that is not exactly `hami-core`, `mig` or `mps`
Why:      any other value matches no node's mode, so the pod stays pending.
"""

from webhook.devices.vgpu.eligibility import MODES, near_mode
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, annotations, deny, names, wording

DETAIL = f"{names.VGPU_MODE} is {{mode}}, which equals no node's mode; {{advice}}"
WRITE_ONE = f"write {', '.join(MODES[:-1])} or {MODES[-1]}"


@deny(families=VGPU_ONLY, needs=annotations(names.VGPU_MODE))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find unknown modes."""
    mode = pod.view.annotation(names.VGPU_MODE)
    if mode is not None and mode not in MODES:
        meant = near_mode(mode)
        advice = f"did you mean {wording.quoted(meant)}?" if meant else WRITE_ONE
        detail = DETAIL.format(mode=wording.quoted(mode), advice=advice)
        yield Finding(wording.annotation_path(names.VGPU_MODE), detail)
