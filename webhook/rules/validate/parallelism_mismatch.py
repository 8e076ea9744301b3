"""A program that divides its work among another number of cards than its container gets fails, or leaves cards idle.

Reads:    command and arguments of the containers that request vGPUs; the number of their vGPUs
Finds:    `--tensor-parallel-size 4` of vLLM, `--tp-size` of SGLang, `--nproc-per-node` of torchrun or `--num-gpus` of Ray and
          DeepSpeed beside another number of vGPUs
Why:      with too few cards the program ends in an error of CUDA or NCCL; cards that are too many are held and not used.

With pipeline or data parallelism beside it, a program uses more cards than the option says, so only too few are found then.
"""

import re
from itertools import islice

from webhook.rules.api import VGPU_ONLY, Context, Finding, Findings, Level, ReviewedPod, Validation, wording

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
        if not request.number:
            continue
        for part in ("args", "command"):
            words = request.container.raw.get(part)
            if not isinstance(words, list) or not words:
                continue
            text = " ".join([word for word in islice(words, MAX_WORDS) if isinstance(word, str)])[:MAX_TEXT]
            found = _OPTION.search(text)
            if found is None:
                continue
            option, wanted = found[1], int(found[2])
            if wanted > request.number or (wanted < request.number and not _MORE.search(text)):
                cards = "vGPUs" if request.number > 1 else "vGPU"
                yield Finding(
                    f"{request.container.where}.{part}",
                    f"{wording.container(request.container)} has {option} {wanted}, but requests {request.number} {cards}; "
                    f"let {request.config.number_name} be {wanted}, or change {option}",
                )
