"""A program that divides its work among another number of cards than its container gets fails, or leaves cards idle.

Finds:    `--tensor-parallel-size 4` of vLLM, `--tp-size` of SGLang, `--nproc-per-node` of torchrun or `--num-gpus` of Ray and
          DeepSpeed beside another number of vGPUs
Why:      with too few cards the program ends in an error of CUDA or NCCL; cards that are too many are held and not used.

With pipeline or data parallelism beside it, a program uses more cards than the option says, so only too few are found then.
Where `--nnodes` or Ray lets vLLM or SGLang divide its tensors among several pods, too few are none. Too many are audited: a
process may use several cards by other means.
"""

from webhook.devices.requests import DeviceRequest
from webhook.pod.parallelism import CARDS, MORE_CARDS, SEVERAL_NODES, parallel_options
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, Level, ReviewedPod, Validation, wording
from webhook.texts import counted


@Validation(
    Level.WARN,
    "a program that divides its work among another number of cards than its container gets",
    families=VGPU_ONLY,
    needs={"containers[*].args", "containers[*].command"},
)
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Compare the options of the program with the number of vGPUs."""
    for request in pod.slices:
        for part in ("args", "command"):
            yield from _compared(request, part)


def _compared(request: DeviceRequest, part: str) -> Findings:
    text = " ".join(parallel_options(request.container.raw, part))
    found = CARDS.search(text)
    if found is None or not request.number:
        return
    option, wanted, number = found[1], int(found[2]), request.number
    spans_pods = option.startswith(("-t", "--t")) and SEVERAL_NODES.search(text)
    if (wanted > number and not spans_pods) or (wanted < number and not MORE_CARDS.search(text)):
        yield Finding(
            f"{request.container.where}.{part}",
            f"{wording.container(request.container)} has {option} {wanted}, but requests {counted(number, 'vGPU')}; let "
            f"{request.config.number_name} be {wanted}, or change {option}",
            ceiling=Level.WARN if wanted > number else Level.AUDIT,
        )
