"""What a pod asks for in the names of another system becomes the same in this cluster's names.

Writes:   the vgpu resources and annotations, the schedulerName of that system; removes the names of that system
Why:      Volcano does not read them, so the pod stays pending or gets a whole card.

A pod that uses the names of several systems, or one that has no counterpart though it changes the slice, is left as it is:
the rule foreign-dialect says why.
"""

from webhook.devices.dialects import TITLES
from webhook.rules.api import EVERY_POD, Context, Edits, Mutation, Notice, ReviewedPod
from webhook.rules.dialects import ANNOTATED, DIALECT, resolved_steps, translatable


@Mutation(
    f"names of {TITLES} become this cluster's, with a warning (policy `dialects: {{hami: translate}}`)",
    families=EVERY_POD,
    reads=(ANNOTATED, DIALECT, "policy.dialects", "deviceConfig.gpuMemoryFactor"),
)
def propose(pod: ReviewedPod, context: Context) -> Edits:
    """Translate the one dialect of a pod, wholly or not at all."""
    if translated := translatable(resolved_steps(pod, context), context):
        dialect, steps = translated
        for step in steps:
            yield from step.edits
            yield Notice(step.report(dialect))
