"""In MIG mode a slice is a whole instance, and a little too much memory takes a far larger one.

Finds:    memory for which each eligible card in MIG mode gives an instance with half more or above, though it has smaller ones
Why:      half of a card of 81,920 MiB is more than its 3g.40gb has: the scheduler gives the whole card, and reports nothing.

Where a card that is not in MIG mode can have the slice, too, only an instance that is all of its card is found: a pod without a
mode is not about MIG, and an instance that is somewhat larger does it no harm. The mode hami-core keeps it on such cards.
"""

from webhook.devices.vgpu.fleet import memory_of
from webhook.rules.api import VGPU_ONLY, ClusterFact, Context, Finding, Findings, ReviewedPod, Role, names, warn

GIVES = "{who} requests {resource} {memory}, for which {card} gives its MIG instance {given} with {size}{all}; "
REQUEST = "request {most} or less for {smaller}"
ONLY = GIVES + REQUEST
MIXED = f"{GIVES}write {names.VGPU_MODE}: {names.MODE_HAMI_CORE} to keep the pod off cards in MIG mode, or {REQUEST}"


@warn(families=VGPU_ONLY, fleet=True, needs={Role.MEMORY}, knows={ClusterFact.MIG})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Compare what is requested with the instance that it takes."""
    if all(card.geometries is None for card in pod.eligible.cards):
        return
    for request in pod.slices:
        memory = request.memory
        instance = pod.eligible.instance(request.number or 0, memory) if memory else None
        if instance is None or not memory:
            continue
        card, given, mixed = instance
        whole = given.memory == card.capacity
        if 2 * given.memory < 3 * memory or (mixed and not whole):
            continue
        others = [card.instance(one.memory) for open_to in card.geometries or () for one in open_to.instances]
        smaller = max([one for one in others if one is not None and one.memory < memory], key=memory_of, default=None)
        if smaller is not None:
            yield Finding.of_resource(
                MIXED if mixed else ONLY,
                request.container,
                request.config.memory_name,
                memory=memory,
                card=card.product,
                given=given.name,
                size=given.memory,
                all=", all of the card" if whole else "",
                most=smaller.memory,
                smaller=smaller.name,
            )
