"""A program that divides its work among another number of cards than its container gets fails, or leaves cards idle.

Finds:    `--tensor-parallel-size`, `--nproc-per-node` or `--num-gpus` beside another number of vGPUs, or beside several without
          `--disable-custom-all-reduce`
Why:      with too few cards the program ends in an error of CUDA or NCCL; cards that are too many are held and not used.

The custom all-reduce of vLLM and SGLang shares memory between processes by CUDA IPC, which may fail under HAMi-core, says HAMi
in `examples/nvidia/vllm_cross_vgpu.yaml` (df6ac09e, June 2026). A card in mode mig has no HAMi-core. The options compared are
those of vLLM, SGLang, torchrun, Ray and DeepSpeed.

With pipeline or data parallelism beside it, a program uses more cards than the option says, so only too few are found then.
Where `--nnodes` or Ray lets vLLM or SGLang divide its tensors among several pods, too few are none. Too many are audited: a
process may use several cards by other means.
"""

from collections.abc import Mapping

from webhook import names
from webhook.devices.requests import DeviceRequest
from webhook.pod.parallelism import CARDS, MORE_CARDS, OWN_ALL_REDUCE_OFF, SEVERAL_NODES, parallel_options
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
        texts = {part: " ".join(parallel_options(request.container.raw, part)) for part in ("args", "command")}
        found = [finding for part, text in texts.items() for finding in _compared(request, part, text)]
        yield from found
        if not found and pod.view.annotation(names.VGPU_MODE) != names.MODE_MIG:
            yield from _shares_memory(request, texts)


def _compared(request: DeviceRequest, part: str, text: str) -> Findings:
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


def _shares_memory(request: DeviceRequest, texts: Mapping[str, str]) -> Findings:
    """Look for vLLM or SGLang on several slices, whose processes share memory in a way of their own."""
    part, found = next(((part, found) for part, text in texts.items() if (found := CARDS.search(text))), ("", None))
    divides = found is not None and found[1].startswith(("-t", "--t")) and int(found[2]) > 1
    if divides and (request.number or 0) > 1 and not any(map(OWN_ALL_REDUCE_OFF.search, texts.values())):
        yield Finding(
            f"{request.container.where}.{part}",
            f"{wording.container(request.container)} divides its tensors among {counted(request.number or 0, 'vGPU')}, whose "
            "processes may fail to share memory under HAMi-core; add --disable-custom-all-reduce, as vLLM and SGLang call it",
        )
