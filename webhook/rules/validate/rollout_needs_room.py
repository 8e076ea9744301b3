"""The replicas of a Deployment run beside each other, and an update starts a new one before it ends an old one.

Finds:    replicas that the empty fleet cannot hold, or whose update needs room that it lacks
Why:      some replicas stay pending for ever; or the first update never ends, since the new pod waits for the cards of the old.

By default, maxUnavailable is a quarter of the replicas, rounded down: 0 for up to three.
"""

from webhook.devices.vgpu.gang import NeverStarts
from webhook.pod.rollout import ROLLOUT, read_rollout
from webhook.rules.api import Context, Finding, Findings, Workload, warn
from webhook.texts import counted

REPLICAS = "{who} has {replicas}, but the empty fleet {held}; request fewer{beside}, or fewer vGPUs per pod"
# Otherwise an update of as many as the fleet holds has no room; the second is for gangs.
BESIDE = (" and let maxUnavailable be 1", " and use strategy Recreate")
UPDATE = (
    "an update of {who} starts a pod beside its {replicas} before it ends one, but the empty fleet has no room for it; let "
    "maxUnavailable be 1, or use strategy Recreate"
)
UPDATE_GANG = (
    "an update of {who} starts {minimum} pods together beside {left} that run, but the empty fleet has no room for them; use "
    "strategy Recreate"
)


@warn(fleet=True, reads=(ROLLOUT,))
def check(workload: Workload, _context: Context) -> Findings:
    """Count the replicas, and one more."""
    if workload.group != "apps" or not workload.roles or not workload.requests_devices:
        return
    if workload.pods[workload.roles[0].template].spreads:
        return  # spread-exceeds-cards
    pods = workload.roles[0].replicas
    rollout = read_rollout(workload.raw["spec"], pods) if workload.kind == "Deployment" and pods else None
    minimum = 1 if workload.gang is None else workload.gang.minimum
    if workload.judged is not None and isinstance(workload.judged.verdict, NeverStarts):
        return  # gang-too-large
    most = pods
    if rollout is not None and minimum <= min(sum(rollout), pods):  # else gang-never-complete
        most = max(pods, pods - rollout.unavailable + minimum)
    if most < 2 or not isinstance(workload.judge_replicas(most), NeverStarts):
        return  # a pod that fits nowhere has findings of its own
    replicas = counted(pods, "replica")
    verdict = workload.judge_replicas(pods) if pods > 1 else None
    if isinstance(verdict, NeverStarts):
        held = "has no room for them together" if verdict.most is None else f"holds at most {verdict.most}"
        left = read_rollout(workload.raw["spec"], verdict.most) if rollout is not None and verdict.most else None
        beside = BESIDE[minimum > 1] if left is not None and left.unavailable < minimum else ""
        yield Finding("spec.replicas", REPLICAS.format(who=workload.who, replicas=replicas, held=held, beside=beside))
    else:
        detail = UPDATE.format(who=workload.who, replicas=replicas)
        if minimum > 1:
            detail = UPDATE_GANG.format(who=workload.who, minimum=minimum, left=most - minimum)
        yield Finding("spec.strategy", detail)
