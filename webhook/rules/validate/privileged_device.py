"""A privileged container sees every card, whatever it requests.

Reads:    securityContext.privileged of every container; on update, of new ephemeral containers
Refuses:  true, in a pod that requests a vGPU
Why:      the isolation limits the devices that a container gets; a privileged container can open the others itself.
"""

from webhook.rules.api import VGPU_ONLY, Context, Findings, Level, ReviewedPod, Validation, wording

DETAIL = "{who} is privileged and so sees every card of the node, not its slice; remove privileged: true"


@Validation(
    Level.DENY,
    "a privileged container in a pod that requests a vGPU",
    families=VGPU_ONLY,
    needs={"securityContext"},
    on={"ephemeral"},
    isolates=True,
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find privileged containers."""
    for container in pod.judged:
        if "securityContext" in container.raw and container.security_context().get("privileged") is True:
            yield wording.find_in_container(DETAIL, container, "securityContext.privileged")
