"""A card has a limited number of slices.

Reads:    the counts of the regular containers; the split counts of the fleet's eligible cards
Refuses:  a pod whose containers together need more slices than any node's cards allow
Why:      each container takes a slice of each of its cards, and the node has too few.
"""

from webhook.rules.base import Validation
from webhook.rules.refusals import refusals
from webhook.rules.settings import Level

ID = "split-count"

RULE = Validation(
    id=ID,
    level=Level.DENY,
    summary="the containers together need more slices than the cards' split counts allow, or more NPUs than any node has",
    check=refusals(ID),
    fleet=True,
    verdict=True,
)
