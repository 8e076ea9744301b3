"""Mode, gputype or UUID leave no node enough cards.

Refuses:  mode, gputype or uuid leave no node enough cards; no node has such devices at all
Why:      the scheduler skips every card that an annotation excludes, and the pod stays pending.
"""

from webhook.rules.api import Context, Findings, PodFact, ReviewedPod, deny


@deny(fleet=True, needs={PodFact.REFUSED})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Say what no node can give."""
    return pod.refusals(check.id)
