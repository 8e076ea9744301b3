"""A card has 100 cores, so a request for more never fits.

Refuses:  more than 100 vGPU cores: cores are a percentage of a card
Why:      the scheduler skips a card if used plus requested cores exceed 100.
"""

from webhook.devices.model import CARD_CORES
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, Role, deny

DETAIL = f"{{who}} requests {{resource}} {{cores}}, but it is a percentage of one card; write {CARD_CORES} or less"


@deny(families=VGPU_ONLY, needs={Role.CORES})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find cores above 100."""
    for request in pod.slices:
        if request.cores is not None and request.cores > CARD_CORES:
            yield Finding.of_resource(DETAIL, request.container, request.config.cores_name, cores=request.cores)
