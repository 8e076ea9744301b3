"""The values of environment variables, as far as rules compare them."""

import re
from collections.abc import Mapping
from typing import Any

# A list of libraries that are all allocators by their names. The loader replaces `$ORIGIN`, and the kubelet `$(NAME)`.
_ALLOCATOR = r"(?:[A-Za-z0-9_.+/-]*/)?lib(?:jemalloc|tcmalloc|mimalloc)[A-Za-z0-9_.+-]*\.so[0-9.]*"
ALLOCATORS = f"[: ]*{_ALLOCATOR}(?:[: ]+{_ALLOCATOR})*[: ]*"
_are_allocators = re.compile(ALLOCATORS).fullmatch

PRELOAD = "LD_PRELOAD"
SHOW_NO_DEVICE = ("", "none", "void")  # values of NVIDIA_VISIBLE_DEVICES
FORCES_LIMIT = ("force", "FORCE")  # values of GPU_CORE_UTILIZATION_POLICY: HAMi-core then limits cores in every case

# In the place of values that nobody may read.
HIDDEN = "…"
SOME_ALLOCATOR = "libjemalloc.so"


def literal(variable: Mapping[str, Any]) -> str | None:
    """The value of a variable; None if it comes from elsewhere. The API server leaves out an empty value."""
    value = variable.get("value")
    if value is None or value == "":
        return "" if variable.get("valueFrom") is None else None
    return value if isinstance(value, str) else None


def preloads_allocators(variable: Mapping[str, Any]) -> bool:
    """Whether a variable preloads libraries that are memory allocators by their names."""
    return variable.get("name") == PRELOAD and _are_allocators(literal(variable) or "") is not None


def without_secrets(variable: Mapping[str, Any]) -> str:
    """A value for a variable that rules read like its own."""
    value = literal(variable)
    if value in (*SHOW_NO_DEVICE, *FORCES_LIMIT):
        return value or ""
    return SOME_ALLOCATOR if preloads_allocators(variable) else HIDDEN
