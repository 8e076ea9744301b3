"""The pods of a gang fit the empty fleet, yet the scheduler places too few of them.

Finds:    a gang that only another order of its pods, or another choice of cards, would start
Why:      the scheduler takes the first cards that fit and takes nothing back, neither on a node nor between nodes.

For several tasks every order of the pods that the scheduler may have is tried on every node. If that takes too long, the
rule finds nothing.
"""

from webhook.devices.vgpu.gang import StartsTightly
from webhook.rules.api import Context, Finding, Findings, Workload, warn


@warn(fleet=True)
def check(workload: Workload, context: Context) -> Findings:
    """Name the role, and how many of its pods the scheduler places; or count the roles."""
    judged = workload.judged
    if judged is None or not isinstance(judged.verdict, StartsTightly):
        return
    role, placed = judged.roles[0], judged.verdict.placed
    if placed is None:
        pods = f"{judged.request.minimum} vGPU pods of {len(judged.roles)} tasks"
        missed = "does not place them together"
    else:
        pods = f"{judged.gang.needed(role)} pods of {workload.role_name(role)}"
        missed = f"places only {placed} of them"
    yield Finding(
        judged.gang.path,
        f"the {pods} fit the empty fleet, but the scheduler's order {missed}; request another number of vGPUs per pod, or "
        "fewer pods at once",
    )
