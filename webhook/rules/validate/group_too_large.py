"""The pods of a distributed job must all run; the empty fleet does not hold so many.

Reads:    the numbers of pods of Kubeflow's jobs, Ray clusters, JobSets, a replica of a LeaderWorkerSet and indexed Jobs; the
          pods of their templates; the fleet
Finds:    pods that no placement on the empty fleet starts together
Why:      some of them start, hold their cards and wait for the others, which never come.

Whether the controller makes a PodGroup, so that none starts alone, depends on its own settings. So nothing is refused: that is
`gang-too-large`, for what Volcano itself starts together.
"""

from webhook.devices.vgpu.gang import NeverStarts
from webhook.rules.api import Context, Finding, Findings, Level, Validation, Workload


@Validation(Level.WARN, "pods of a distributed job that the empty fleet cannot hold together", fleet=True)
def check(workload: Workload, _context: Context) -> Findings:
    """Say how many of how many pods the empty fleet holds."""
    judged = workload.judged_group
    if judged is None or not isinstance(judged.verdict, NeverStarts):
        return
    never, gang = judged.verdict, judged.gang
    pods = judged.request.minimum if never.role is None else gang.needed(judged.roles[never.role])
    held = "has no room for them together" if never.most is None else f"holds at most {never.most}"
    yield Finding(
        gang.path,
        f"the {pods} vGPU pods of {workload.who} work together, but the empty fleet {held}; request fewer pods, or fewer vGPUs "
        "per pod",
    )
