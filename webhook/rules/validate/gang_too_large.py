"""The pods of a gang start together or not at all; the empty fleet does not hold so many.

Refuses:  a gang of vGPU pods that no placement on the empty fleet starts
Why:      the scheduler places some pods, discards them and tries again each second; the pods get no event.

A gang that may start is never refused: pods above the minimum, pods that request nothing and gangs too large to be
searched are let through.
"""

from webhook.devices.vgpu.gang import JudgedGang, NeverStarts
from webhook.rules.api import Context, Finding, Findings, Workload, deny

MAX_NODES = 3  # named in a message


@deny(fleet=True)
def check(workload: Workload, context: Context) -> Findings:
    """Name the role that is too large, or all of them."""
    judged = workload.judged
    if judged is not None and isinstance(judged.verdict, NeverStarts):
        never = judged.verdict
        if never.role is None:
            yield Finding(judged.gang.path, _together(judged, never))
        else:
            yield _alone(workload, judged, never)
    elif judged is not None and judged.doubt:
        detail = (
            f"without the nodes in doubt ({judged.doubt}) the empty fleet has no room for the {judged.gang.minimum} pods that "
            "start together; they stay pending while that is so"
        )
        yield Finding(judged.gang.path, detail, doubtful=True)


def _alone(workload: Workload, judged: JudgedGang, never: NeverStarts) -> Finding:
    role, gang = judged.roles[never.role or 0], judged.gang
    in_job = workload.is_volcano_job
    path = f"{role.template.removesuffix('.template')}.replicas" if in_job else gang.path
    needed = judged.gang.needed(role)
    most = never.most or 0
    names = [f"{name} {pods}" for name, pods in never.nodes[:MAX_NODES]]
    more = ", …" if len(never.nodes) > MAX_NODES else ""
    held = f"{most} ({', '.join(names)}{more})" if names else f"{most}"
    return Finding(
        path,
        f"{workload.role_name(role)} must start {needed} pods at once, but the empty fleet holds {held}; "
        f"set {judged.gang.setting} to {most} or request fewer vGPUs per pod",
    )


def _together(judged: JudgedGang, never: NeverStarts) -> str:
    held = "does not have room for them together" if never.most is None else f"holds at most {never.most}"
    return (
        f"{judged.request.minimum} vGPU pods of {len(judged.roles)} tasks must start at once, but the empty fleet {held}; "
        f"set a smaller {judged.gang.setting} or request fewer vGPUs per pod"
    )
