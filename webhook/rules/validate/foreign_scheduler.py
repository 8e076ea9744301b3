"""Only Volcano's scheduler assigns cards.

Refuses:  a schedulerName outside policy `schedulerNames`
Why:      another scheduler writes no assignment, and the pod fails with UnexpectedAdmissionError.
"""

from webhook.rules.api import Context, Finding, Findings, ReviewedPod, deny, names, wording

DETAIL = "schedulerName is {scheduler}{own}, but only {allowed} assigns devices; {advice}"
AGENTS = "agent-scheduler"  # the default name; source: volcano cmd/agent-scheduler/app/options/options.go
OWN = " (Volcano's scheduler for agents)"
NAME_IT = "name it"
# Of zero-to-jupyterhub-k8s, whose hub writes the name of its own scheduler; source: jupyterhub/files/hub/jupyterhub_config.py
OF_JUPYTERHUB = "-user-scheduler"
IN_PROFILE = "in JupyterHub's chart, write scheduler_name: {name} into kubespawner_override of the profile"
NAME_IT_OR_NONE = "name it, or leave schedulerName out"  # where the webhook fills it in


@deny(reads=("spec.schedulerName", "policy.schedulerNames", "policy.repairs"))
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find another scheduler."""
    allowed = context.cluster.policy.scheduler_names
    scheduler = pod.view.scheduler or names.DEFAULT_SCHEDULER
    if scheduler not in allowed:
        unrepaired = scheduler == names.DEFAULT_SCHEDULER or "scheduler-name" in context.effective.repairs_off
        advice = NAME_IT if unrepaired else NAME_IT_OR_NONE
        if scheduler.endswith(OF_JUPYTERHUB):
            advice = IN_PROFILE.format(name=allowed[0])
        yield Finding(
            "spec.schedulerName",
            DETAIL.format(
                scheduler=wording.quoted(scheduler),
                own=OWN if scheduler == AGENTS else "",
                allowed=" or ".join(map(wording.quoted, allowed)),
                advice=advice,
            ),
        )
