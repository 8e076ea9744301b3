"""A few cores beside much of a card's memory are most likely meant in another unit.

Finds:    1 to 4 vGPU cores, which are per cent, with a quarter or more of the memory of the smallest such card
Why:      cores are per cent of the computing time of a card, so 1 of them makes the program a hundred times slower.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, Role, warn, wording

MOST = 4  # cores: more are meant as per cent
PART = 4  # of the memory of a card, the quarter is much

DETAIL = (
    "{who} requests {resource} {cores}, which is {cores} % of the computing time of a card, with {memory} of its {card}; for "
    "the same part of both write {share}, or remove it for all the time that others leave"
)


@warn(families=VGPU_ONLY, needs={Role.CORES}, fleet=True)
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find requests for few cores and much memory."""
    cards = [card for card in pod.eligible.cards if card.geometries is None]  # cores do nothing on a MIG instance
    for request in pod.slices:
        memory, cores = request.memory, request.cores
        if not (memory and cores and 1 <= cores <= MOST):
            continue
        card = min([each.capacity for each in cards if each.capacity >= memory], default=0)
        if card and memory * PART >= card:
            yield Finding.of_resource(
                DETAIL,
                request.container,
                request.config.cores_name,
                cores=cores,
                memory=wording.memory(memory, pod.config),
                card=card,
                share=memory * 100 // card,
            )
