"""The pods of a distributed job must all run; the empty fleet does not hold so many.

Finds:    pods of a distributed job that the empty fleet cannot hold together
Why:      some of them start, hold their cards and wait for the others, which never come.

Whether the controller makes a PodGroup, so that none starts alone, depends on its own settings. So nothing is refused: that is
`gang-too-large`, for what Volcano itself starts together. Of an elastic job and an autoscaled Ray cluster the least number of
pods counts; pods that run one after the other are no group.
"""

from webhook.devices.vgpu.gang import NeverStarts
from webhook.rules.api import Context, Finding, Findings, Workload, warn, wording

ADVICE = "; request fewer pods, or fewer vGPUs per pod"


@warn(fleet=True)
def check(workload: Workload, _context: Context) -> Findings:
    """Say how many of how many pods the empty fleet holds."""
    judged = workload.group_too_large
    if judged is None or not isinstance(judged.verdict, NeverStarts):
        return
    never, gang, pods = judged.verdict, judged.gang, judged.request.minimum
    held = "has no room for them together" if never.most is None else f"holds at most {never.most}"
    if never.role is not None and len(judged.roles) > 1:
        role = judged.roles[never.role]
        held += f" of the {gang.needed(role)} of {wording.quoted(role.name)}"
    if gang.certain:
        yield Finding(
            gang.path, f"the {pods} vGPU pods of {workload.who} work together, but the empty fleet {held}{ADVICE}"
        )
    else:
        detail = f"the {pods} vGPU pods of {workload.who} never all run at the same time: the empty fleet {held}"
        yield Finding(gang.path, f"{detail}. If they wait for each other, none gets on{ADVICE}")
