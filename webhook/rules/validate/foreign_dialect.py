"""A pod asks for a GPU in the names of another system, which Volcano does not read.

Finds:    names of other systems, such as HAMi or KAI, after all repairs, with what to write instead (policy `dialects`)
Why:      the pod stays pending, or gets a whole card where it means a share.
"""

from webhook.rules.api import EVERY_POD, Context, Finding, Findings, PodFact, ReviewedPod, warn
from webhook.rules.choices import DialectUse
from webhook.rules.dialects import ANNOTATED, DIALECT, resolved_steps, translatable

SEVERAL = "the pod uses names of {systems}, so none is translated; keep those of one system"
NOT_SENT = (  # it would have been translated before
    "the policy translates this pod, but the webhook configurations do not send it to be translated; upgrade the chart with "
    "the policy, or apply what `vgpu-webhook manifests --policy FILE` prints"
)
SCHEDULER = "spec.schedulerName"
TRANSLATION = "translate-dialect"


@warn(
    families=EVERY_POD,
    needs={ANNOTATED, PodFact.FOREIGN},
    reads=(DIALECT, "policy.dialects", "policy.repairs", "deviceConfig.gpuMemoryFactor"),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find what is asked for in the names of another system."""
    used = resolved_steps(pod, context)
    if not used:
        return ()
    findings = [
        Finding(step.path, step.advice(dialect))
        for dialect, steps in used
        for step in steps
        if step.path != SCHEDULER or not pod.requested or not context.reports("foreign-scheduler")
    ]
    if len(used) > 1 and any(context.effective.dialects[dialect.id] is DialectUse.TRANSLATE for dialect, _ in used):
        systems = " and ".join(dialect.title for dialect, _ in used)
        findings.append(Finding(findings[-1].path, SEVERAL.format(systems=systems)))
    if translatable(used, context) and TRANSLATION not in context.effective.repairs_off:
        findings.append(Finding(findings[0].path, NOT_SENT))
    return findings
