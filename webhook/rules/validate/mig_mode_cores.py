"""In MIG mode an instance has its own cores, and requested ones limit nothing.

Finds:    vGPU cores in a pod for MIG, where the instance has its own
Why:      the device plugin hands over the instance and nothing else, but the scheduler counts the cores of its card.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, annotations, names, warn

DETAIL = (
    f"{{who}} requests {{resource}} {{cores}} with {names.VGPU_MODE}: {names.MODE_MIG}, where the instance has cores of its "
    "own: they limit nothing, and keep other slices off the card; leave {resource} out"
)


@warn(families=VGPU_ONLY, needs=annotations(names.VGPU_MODE))
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find cores in MIG mode."""
    if pod.view.annotation(names.VGPU_MODE) != names.MODE_MIG:
        return
    for request in pod.slices:
        if request.cores and not request.config.default_cores:  # what the cluster adds, its user cannot leave out
            yield Finding.of_resource(DETAIL, request.container, request.config.cores_name, cores=request.cores)
