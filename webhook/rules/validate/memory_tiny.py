"""Less memory than a CUDA context takes is most likely meant in another unit.

Finds:    less vGPU memory than a program needs, 128 MiB: GiB that were written as MiB
Why:      the container starts, and its first call of CUDA fails for want of memory.
"""

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, ReviewedPod, Role, warn

LEAST = 128  # MiB

DETAIL = "{who} requests {resource} {memory}, which is {mebibytes} MiB: less than any program on a GPU needs; {advice}"


@warn(families=VGPU_ONLY, needs={Role.MEMORY}, reads=("nodes", "deviceConfig.gpuMemoryFactor"))
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Find requests for too little memory."""
    for request in pod.slices:
        memory = request.memory
        if memory and memory * request.config.memory_factor < LEAST:
            factor, largest = request.config.memory_factor, pod.eligible.capacity
            meant = memory * 1024 // factor
            guess = f"if it means GiB, write {meant}" if largest is None or meant <= largest else "request more"
            yield Finding.of_resource(
                DETAIL,
                request.container,
                request.config.memory_name,
                memory=memory,
                mebibytes=memory * factor,
                advice=guess,
            )
