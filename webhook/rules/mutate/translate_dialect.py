"""What a pod asks for in the names of another system becomes the same in this cluster's names.

Writes:   this cluster's names for those of other systems, such as HAMi or KAI, with a warning (policy `dialects: {hami:
          translate}`)
Why:      Volcano does not read them, so the pod stays pending or gets a whole card.

A pod that uses the names of several systems, or one that has no counterpart though it changes the slice, is left as it is:
the rule foreign-dialect says why.

It writes the resources and annotations of vGPUs and the schedulerName, and removes the names of that system.
"""

from webhook.rules.api import EVERY_POD, Context, Edits, Mutation, Notice, ReviewedPod
from webhook.rules.dialects import ANNOTATED, DIALECT, resolved_steps, translatable


@Mutation(
    families=EVERY_POD,
    reads=(ANNOTATED, DIALECT, "policy.dialects", "policy.repairs", "nodes", "deviceConfig.gpuMemoryFactor"),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Translate the one dialect of a pod, wholly or not at all."""
    if translated := translatable(resolved_steps(pod, context), context):
        dialect, steps = translated
        for step in steps:
            yield from step.edits
            yield Notice(step.report(dialect))
