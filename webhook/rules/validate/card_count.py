"""One vGPU is a slice of one card, and a container never gets two slices of one card.

Reads:    the counts of the regular containers; the fleet
Refuses:  a count above the cards of every node in the requested mode; more gpushare cards or NPUs than any node has
Why:      the allocatable 80 of an eight-card node counts slices; a container can use eight of them.
"""

from webhook.rules.base import Validation
from webhook.rules.refusals import refusals
from webhook.rules.settings import Level

ID = "card-count"

RULE = Validation(
    id=ID,
    level=Level.DENY,
    summary="more vGPUs in a container than any node has physical cards; more gpushare cards or NPUs than any node has",
    check=refusals(ID),
    fleet=True,
    verdict=True,
)
