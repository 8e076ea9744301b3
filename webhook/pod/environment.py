"""The values of environment variables, as far as rules compare them."""

import re
from collections.abc import Mapping
from typing import Any

from webhook import names
from webhook.lenient import obj

# A list of libraries that are all allocators by their names. The loader replaces `$ORIGIN`, and the kubelet `$(NAME)`.
_ALLOCATOR = r"(?:[A-Za-z0-9_.+/-]*/)?lib(?:jemalloc|tcmalloc|mimalloc)[A-Za-z0-9_.+-]*\.so[0-9.]*"
ALLOCATORS = f"[: ]*{_ALLOCATOR}(?:[: ]+{_ALLOCATOR})*[: ]*"
_are_allocators = re.compile(ALLOCATORS).fullmatch

PRELOAD = "LD_PRELOAD"
SHOW_NO_DEVICE = ("", "none", "void")  # values of NVIDIA_VISIBLE_DEVICES
FORCES_LIMIT = ("force", "FORCE")  # values of GPU_CORE_UTILIZATION_POLICY: HAMi-core then limits cores in every case

# Read by the Ascend Docker Runtime (mind-cluster, component/ascend-docker-runtime).
ASCEND_RUNTIME = (names.ASCEND_VISIBLE_DEVICES, "ASCEND_VNPU_SPECS", "ASCEND_RUNTIME_OPTIONS")
# The beginnings of the paths of annotations that only the scheduler writes; see the rule reserved-annotation.
ASSIGNED = (f"metadata.annotations['{names.RESERVED_ASCEND_PREFIX}", f"metadata.annotations['{names.NPU_CORE}']")

# In the place of values that nobody may read.
HIDDEN = "…"
SOME_ALLOCATOR = "libjemalloc.so"


def literal(variable: Mapping[str, Any]) -> str | None:
    """The value of a variable; None if it comes from elsewhere. The API server leaves out an empty value."""
    value = variable.get("value")
    if value is None or value == "":
        return "" if variable.get("valueFrom") is None else None
    return value if isinstance(value, str) else None


def is_assigned(variable: Mapping[str, Any]) -> bool:
    """Whether a variable has the value of an annotation by which the scheduler assigns NPUs, as in Huawei's own manifests."""
    path = obj(variable, "valueFrom", "fieldRef").get("fieldPath")
    return isinstance(path, str) and path.startswith(ASSIGNED)


def preloads_allocators(variable: Mapping[str, Any]) -> bool:
    """Whether a variable preloads libraries that are memory allocators by their names."""
    return variable.get("name") == PRELOAD and _are_allocators(literal(variable) or "") is not None


def without_secrets(variable: Mapping[str, Any]) -> dict[str, Any]:
    """What rules read like the variable's value, or like its source."""
    value = literal(variable)
    if is_assigned(variable):
        return {"value": SHOW_NO_DEVICE[-1]}
    if value is None:
        return {"valueFrom": {}}
    if value in (*SHOW_NO_DEVICE, *FORCES_LIMIT):
        return {"value": value}
    return {"value": SOME_ALLOCATOR if preloads_allocators(variable) else HIDDEN}


def shows_devices(variable: Mapping[str, Any]) -> bool:
    """Whether a variable makes cards visible: NVIDIA_VISIBLE_DEVICES other than none, void and empty."""
    return variable.get("name") == names.NVIDIA_VISIBLE_DEVICES and literal(variable) not in SHOW_NO_DEVICE
