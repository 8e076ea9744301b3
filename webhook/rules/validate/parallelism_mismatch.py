"""A program that divides its work among another number of cards than its container gets fails, or leaves cards idle.

Finds:    a program that divides its work among another number of cards than its container gets
Why:      with too few cards the program ends in an error of CUDA or NCCL; cards that are too many are held and not used.

The custom all-reduce of vLLM and SGLang shares memory between processes by CUDA IPC, which may fail under HAMi-core, says HAMi
in `examples/nvidia/vllm_cross_vgpu.yaml` (df6ac09e, June 2026). A card in mode mig has no HAMi-core. The options compared are
those of vLLM, SGLang, torchrun, Ray and DeepSpeed.

With pipeline or data parallelism beside it, a program uses more cards than the option says, so only too few are found then.
Where `--nnodes` or Ray lets vLLM or SGLang divide its tensors among several pods, too few are none. Too many are audited: a
process may use several cards by other means.

The options are `--tensor-parallel-size`, `--nproc-per-node` and `--num-gpus` beside another number of vGPUs, or beside several
without `--disable-custom-all-reduce`.
"""

import re
from collections.abc import Mapping
from typing import Any

from webhook.devices.requests import DeviceRequest
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, Level, ReviewedPod, names, warn, wording
from webhook.texts import counted

# Sources: the help of `vllm serve`, `sglang.launch_server`, `torchrun`, `deepspeed` and `ray start`.
MAX_WORDS = 200  # of a command or its arguments
MAX_TEXT = 10_000  # characters of them

CARDS = re.compile(
    r"(?<!\S)(--tensor[-_]parallel[-_]size|-tp|--tp(?:-size)?|--nproc[-_]per[-_]node|--num[-_]gpus)[= ]+([0-9]{1,4})(?!\S)"
)
MORE_CARDS = re.compile(
    r"(?<!\S)(?:--pipeline[-_]parallel[-_]size|-pp|--pp(?:-size)?|--data[-_]parallel[-_]size|-dp|--dp(?:-size)?)[= ]"
)
SEVERAL_NODES = re.compile(
    r"(?<!\S)(?:--nnodes[= ]+(?!1(?!\S))[^\s=]\S*|--distributed[-_]executor[-_]backend[= ]+ray(?!\S))"
)  # tensor parallelism may then span the pods of a group
OWN_ALL_REDUCE_OFF = re.compile(r"(?<!\S)--disable[-_]custom[-_]all[-_]reduce(?!\S)")  # of vLLM and SGLang
_ANY = re.compile("|".join(each.pattern for each in (CARDS, MORE_CARDS, SEVERAL_NODES, OWN_ALL_REDUCE_OFF)))


@warn(families=VGPU_ONLY, needs={"containers[*].args", "containers[*].command"})
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Compare the options of the program with the number of vGPUs."""
    for request in pod.slices:
        texts = {part: " ".join(parallel_options(request.container.raw, part)) for part in ("args", "command")}
        mismatches = [finding for part, text in texts.items() for finding in _compared(request, part, text)]
        yield from mismatches
        if not mismatches and pod.view.annotation(names.VGPU_MODE) != names.MODE_MIG:
            yield from _shares_memory(request, texts)


def _compared(request: DeviceRequest, part: str, text: str) -> Findings:
    match = CARDS.search(text)
    if match is None or not request.number:
        return
    option, wanted, number = match[1], int(match[2]), request.number
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
    part, match = next(((part, match) for part, text in texts.items() if (match := CARDS.search(text))), ("", None))
    divides = match is not None and match[1].startswith(("-t", "--t")) and int(match[2]) > 1
    if divides and (request.number or 0) > 1 and not any(map(OWN_ALL_REDUCE_OFF.search, texts.values())):
        yield Finding(
            f"{request.container.where}.{part}",
            f"{wording.container(request.container)} divides its tensors among {counted(request.number or 0, 'vGPU')}, whose "
            "processes may fail to share memory under HAMi-core; add --disable-custom-all-reduce, as vLLM and SGLang call it",
        )


def parallel_options(container: Mapping[str, Any], part: str) -> list[str]:
    """The options in `args` or `command` of a container's JSON, in order; those of the options give the same."""
    words = container.get(part)
    if not isinstance(words, list):
        return []
    text = " ".join(map(str, words[:MAX_WORDS]))[:MAX_TEXT]
    return [match[0] for match in _ANY.finditer(text)]
