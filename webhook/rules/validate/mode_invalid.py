"""The scheduler compares the mode byte by byte.

Reads:    the annotation volcano.sh/vgpu-mode
Refuses:  anything but hami-core, mig and mps
Why:      any other value matches no node's mode, so the pod stays pending.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.requests import DevicePod
from webhook.devices.vgpu.eligibility import MODES, near_mode
from webhook.pod.view import ANNOTATIONS
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = f"{names.VGPU_MODE} is {{mode}}, which equals no node's mode; {{advice}}"
WRITE_ONE = f"write {', '.join(MODES[:-1])} or {MODES[-1]}"


def check(pod: DevicePod, context: Context) -> Iterator[Finding]:
    """Find unknown modes."""
    mode = pod.view.annotation(names.VGPU_MODE)
    if mode is not None and mode not in MODES:
        meant = near_mode(mode)
        advice = f"did you mean {wording.quoted(meant)}?" if meant else WRITE_ONE
        detail = DETAIL.format(mode=wording.quoted(mode), advice=advice)
        yield Finding(wording.annotation_path(names.VGPU_MODE), detail)


RULE = Validation(
    id="mode-invalid",
    level=Level.DENY,
    summary=f"`{names.VGPU_MODE}` that is not exactly `hami-core`, `mig` or `mps`",
    check=check,
    families=VGPU_ONLY,
    fields=ANNOTATIONS,
)
