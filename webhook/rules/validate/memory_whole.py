"""A count without memory takes whole cards; with a part of the cores, the others of each card stay unusable.

Finds:    a part of the cores without memory: whole cards whose other cores stay unusable
Why:      the scheduler takes all memory of each card, so that no other container gets the cores that are left.

A count alone, or with 100 cores, asks for whole cards plainly: nothing is found. Neither is with `defaultCores` of the device
config, which the author did not write.
"""

from webhook.devices.model import CARD_CORES
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, Role, warn, wording
from webhook.texts import counted

DETAIL = (
    "{who} requests {resource} {number} and no memory, which takes {cards}; with {cores} {part}, {left} of the 100 cores of "
    "each stay unusable; write {memory} for a share, or {cores} 100 for whole cards"
)


@warn(families=VGPU_ONLY, needs={Role.CORES}, reads=("nodes", "deviceConfig.defaultCores"))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find requests for whole cards that most likely mean a share."""
    for request in pod.slices:
        part, default = request.cores or 0, request.config.default_cores
        sized = request.memory or request.percentage is not None
        if 0 < part < CARD_CORES and part != default and request.number and not sized:
            known = pod.eligible.cards if context.cluster.knows_nodes else ()
            sizes = sorted({card.capacity for card in known})
            whole = counted(request.number, "whole card")
            yield Finding.of_resource(
                DETAIL,
                request.container,
                request.config.number_name,
                number=request.number,
                cards=f"{whole} of {wording.sizes(sizes, context.cluster.config)}" if sizes else whole,
                cores=request.config.cores_name,
                part=part,
                left=CARD_CORES - part,
                memory=request.config.memory_name,
            )
