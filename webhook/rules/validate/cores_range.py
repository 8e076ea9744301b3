"""A card has 100 cores, so a request for more never fits.

Reads:    the vgpu cores of the regular containers
Refuses:  cores above 100
Why:      the scheduler skips a card if used plus requested cores exceed 100.
"""

from collections.abc import Iterator

from webhook.devices.model import CARD_CORES
from webhook.devices.requests import DevicePod
from webhook.rules import wording
from webhook.rules.base import Validation
from webhook.rules.context import VGPU_ONLY, Context, Finding
from webhook.rules.settings import Level

DETAIL = f"{{who}} requests {{resource}} {{cores}}, but it is a percentage of one card; write {CARD_CORES} or less"


def check(pod: DevicePod, _context: Context) -> Iterator[Finding]:
    """Find cores above 100."""
    for request in pod.slices:
        if request.cores is not None and request.cores > CARD_CORES:
            yield wording.find_resource(DETAIL, request.container, request.config.cores_name, cores=request.cores)


RULE = Validation(
    id="cores-range",
    level=Level.DENY,
    summary="more than 100 vGPU cores: cores are a percentage of a card",
    check=check,
    families=VGPU_ONLY,
)
