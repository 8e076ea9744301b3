"""The pods of a gang fit the empty fleet, yet the scheduler places too few of them.

Reads:    minAvailable of a Volcano Job, group-min-member of a workload; the pods of its templates; the fleet
Refuses:  a gang that only another choice of cards would start
Why:      the scheduler takes the first cards that fit and takes nothing back, neither on a node nor between nodes.
"""

from collections.abc import Iterator

from webhook.devices.vgpu.gang import StartsTightly
from webhook.rules.base import WORKLOADS_ONLY, Finding, Level, Validation, no_findings
from webhook.rules.workloads import Workload


def check(workload: Workload) -> Iterator[Finding]:
    """Name the role, and how many of its pods the scheduler places."""
    judged = workload.judged
    if judged is not None and isinstance(judged.verdict, StartsTightly):
        role = judged.roles[judged.verdict.role]
        yield Finding(
            judged.gang.path,
            f"the {judged.gang.needed(role)} pods of {workload.role_name(role)} fit the empty fleet, but the scheduler's order "
            f"places only {judged.verdict.placed} of them; request another number of vGPUs per pod, or fewer pods at once",
        )


RULE = Validation(
    id="gang-fits-tightly",
    level=Level.WARN,
    summary="a gang fits the empty fleet, yet the scheduler's greedy order places too few of its pods",
    check=no_findings,
    check_workload=check,
    families=WORKLOADS_ONLY,
    fleet=True,
)
