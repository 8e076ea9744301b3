"""A slice lies on one card, so it cannot have more memory than a card.

Reads:    the memory of the regular containers; the fleet's eligible cards, MIG instances and NPUs
Refuses:  more memory than any of them has
Why:      the scheduler does not lower the request: it skips every card, and the pod stays pending.
"""

from webhook.rules.base import Validation
from webhook.rules.refusals import refusals
from webhook.rules.settings import Level

ID = "memory-above-card"

RULE = Validation(
    id=ID,
    level=Level.DENY,
    summary="more memory than any eligible card, MIG instance or NPU has",
    check=refusals(ID),
    fleet=True,
    verdict=True,
)
