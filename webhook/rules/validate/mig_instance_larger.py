"""In MIG mode a slice is a whole instance, and a little too much memory takes a far larger one.

Reads:    the vGPU memory of the regular containers; the fleet's eligible cards; knownMigGeometries
Finds:    memory for which each eligible card gives an instance with half more or above, though it has smaller ones
Why:      half of a card of 81,920 MiB is more than its 3g.40gb has: the scheduler gives the whole card, and reports nothing.
"""

from webhook.devices.vgpu.fleet import memory_of
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Findings, Level, ReviewedPod, Role, Validation, wording

DETAIL = (
    "{who} requests {resource} {memory}, for which {card} gives its MIG instance {given} with {size}; request {most} or "
    "less for {smaller}"
)


@Validation(
    Level.WARN,
    "memory that takes a far larger MIG instance than a little less memory would",
    families=VGPU_ONLY,
    fleet=True,
    needs={Role.MEMORY},
    knows={ClusterFact.MIG},
)
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Compare what is requested with the instance that it takes."""
    cards = pod.eligible.cards
    for card in cards:
        if card.geometries is None:
            return  # a card that is not in MIG mode may take the pod
    for request in pod.slices:
        memory = request.memory or 0
        able = [(card, given) for card in cards if memory and (given := card.instance(memory)) is not None]
        if not able:
            continue
        card, given = min(able, key=lambda one: one[1].memory)
        others = [card.instance(one.memory) for open_to in card.geometries or () for one in open_to.instances]
        smaller = max([one for one in others if one is not None and one.memory < memory], key=memory_of, default=None)
        if smaller is not None and 2 * given.memory >= 3 * memory:
            yield wording.find_resource(
                DETAIL,
                request.container,
                request.config.memory_name,
                memory=memory,
                card=card.product,
                given=given.name,
                size=given.memory,
                most=smaller.memory,
                smaller=smaller.name,
            )
