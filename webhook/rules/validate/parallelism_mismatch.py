"""A program that divides its work among another number of cards than its container gets fails, or leaves cards idle.

Reads:    command and arguments of the containers that request vGPUs; the number of their vGPUs
Finds:    `--tensor-parallel-size 4` of vLLM, `--tp-size` of SGLang, `--nproc-per-node` of torchrun or `--num-gpus` of Ray and
          DeepSpeed beside another number of vGPUs
Why:      with too few cards the program ends in an error of CUDA or NCCL; cards that are too many are held and not used.

With pipeline or data parallelism beside it, a program uses more cards than the option says, so only too few are found then.
"""

import re

from webhook.devices.requests import DeviceRequest
from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, Level, ReviewedPod, Validation, wording
from webhook.texts import counted

MAX_WORDS = 200  # of a command and its arguments
MAX_TEXT = 10_000  # characters of them

_OPTION = re.compile(
    r"(?<!\S)(--tensor[-_]parallel[-_]size|-tp|--tp(?:-size)?|--nproc[-_]per[-_]node|--num[-_]gpus)[= ]+([0-9]{1,4})(?!\S)"
)
_MORE = re.compile(
    r"(?<!\S)(--pipeline[-_]parallel[-_]size|-pp|--pp(?:-size)?|--data[-_]parallel[-_]size|-dp|--dp(?:-size)?)[= ]"
)


@Validation(
    Level.AUDIT,
    "a program that divides its work among another number of cards than its container gets",
    families=VGPU_ONLY,
)
def check(pod: ReviewedPod, _context: Context) -> Findings:
    """Compare the options of the program with the number of vGPUs."""
    for request in pod.slices:
        raw = request.container.raw
        for part in ("args", "command"):
            words = raw.get(part)
            if not isinstance(words, list):
                continue
            text = " ".join(map(str, words[:MAX_WORDS]))[:MAX_TEXT]
            found = _OPTION.search(text)
            if found is not None and request.number:
                yield from _compared(request, part, text, found)


def _compared(request: DeviceRequest, part: str, text: str, found: re.Match[str]) -> Findings:
    option, wanted, number = found[1], int(found[2]), request.number or 0
    if wanted > number or (wanted < number and not _MORE.search(text)):
        yield Finding(
            f"{request.container.where}.{part}",
            f"{wording.container(request.container)} has {option} {wanted}, but requests {counted(number, 'vGPU')}; let "
            f"{request.config.number_name} be {wanted}, or change {option}",
        )
