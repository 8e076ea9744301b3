"""No assignment of all containers exists on any node.

Reads:    the requests of the regular containers; the fleet
Refuses:  a pod that no node can take even when it is empty, for a reason that no other rule names
Why:      memory, cores, exclusive cards or node totals rule out every placement, and the pod stays pending.
"""

from webhook.rules.base import Validation
from webhook.rules.refusals import refusals
from webhook.rules.settings import Level

ID = "fits-no-node"

RULE = Validation(
    id=ID,
    level=Level.DENY,
    summary="no assignment of all containers exists on any node (memory, cores, exclusivity, node totals)",
    check=refusals(ID),
    fleet=True,
    verdict=True,
)
