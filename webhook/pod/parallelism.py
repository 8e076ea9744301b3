"""The options by which the program of a container divides its work among cards.

Sources: the help of `vllm serve`, `sglang.launch_server`, `torchrun`, `deepspeed` and `ray start`.
"""

import re
from collections.abc import Mapping
from typing import Any

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


def parallel_options(container: Mapping[str, Any], part: str) -> list[str]:
    """The options in `args` or `command` of a container's JSON, in order; those of the options give the same."""
    words = container.get(part)
    if not isinstance(words, list):
        return []
    text = " ".join(map(str, words[:MAX_WORDS]))[:MAX_TEXT]
    return [found[0] for found in _ANY.finditer(text)]
