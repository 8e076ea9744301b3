"""A privileged container sees every card, whatever it requests.

Refuses:  a privileged container in a pod that requests a vGPU
Why:      the isolation limits the devices that a container gets; a privileged container can open the others itself.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, deny

DETAIL = "{who} is privileged and so sees every card of the node, not its slice; remove privileged: true"

# Of zero-to-jupyterhub-k8s: an init container that the chart adds by default; source: jupyterhub/files/hub/jupyterhub_config.py
OF_JUPYTERHUB = "block-cloud-metadata"
IN_CHART = f"{DETAIL}: in JupyterHub's chart, write singleuser.cloudMetadata.blockWithIptables: false"


@deny(families=VGPU_ONLY, needs={"containers[*].securityContext.privileged"}, on={"ephemeral"}, isolates=True)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find privileged containers."""
    for container in pod.judged:
        if "securityContext" in container.raw and container.security_context().get("privileged") is True:
            detail = IN_CHART if container.name == OF_JUPYTERHUB else DETAIL
            yield Finding.in_container(detail, container, "securityContext.privileged")
