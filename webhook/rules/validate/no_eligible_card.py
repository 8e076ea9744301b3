"""Mode, gputype or UUID leave no node enough cards.

Reads:    the annotations, the counts of the regular containers; the fleet
Refuses:  a pod whose annotations no node satisfies
Why:      the scheduler skips every card that an annotation excludes, and the pod stays pending.
"""

from webhook.rules.base import Validation
from webhook.rules.refusals import refusals
from webhook.rules.settings import Level

ID = "no-eligible-card"

RULE = Validation(
    id=ID,
    level=Level.DENY,
    summary="mode, gputype or uuid leave no node enough cards; no node has such devices at all",
    check=refusals(ID),
    fleet=True,
    verdict=True,
)
