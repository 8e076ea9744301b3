"""The NPUs that a node registers.

Source: volcano `pkg/scheduler/api/devices/ascend/hami/device_info.go` (getNodeDevices),
`pkg/scheduler/api/devices/device_info.go` (DeviceInfo).
"""

import json
from collections.abc import Callable
from typing import Any

from webhook.devices.model import Device, Known

_INT32 = range(-(2**31), 2**31)


def npus_by_id(text: str, word: str) -> dict[str, Device]:
    """Read the annotation `hami.io/node-register-…`: a JSON list of objects.

    Args:
        text: the annotation.
        word: the kind of NPU, which is the devices' type.

    Returns:
        The NPUs by their ids, in the order of the annotation; nothing where the scheduler, too, cannot read it.
    """
    try:
        entries = json.loads(text, object_pairs_hook=_folded, parse_constant=_refused)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(entries, list):
        return {}
    known: Known[Device] = Known()
    by_id: dict[str, Device] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not all(_FIELDS[key](entry[key]) for key in _FIELDS.keys() & entry.keys()):
            return {}
        memory, split, cores = entry.get("devmem", 0), entry.get("count", 0), entry.get("devcore", 0)
        by_id[entry.get("id", "")] = known.one(Device(word, memory, split, cores))
    return by_id


def _folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object as Go reads it: keys of any case, nulls ignored."""
    return {key.lower(): value for key, value in pairs if value is not None}


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_int32(value: Any) -> bool:
    return type(value) is int and value in _INT32


# The fields that every version of the scheduler reads; if one has the wrong type, all NPUs of the node are unusable.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "id": _is_text,
    "index": lambda value: type(value) is int and value >= 0,
    "count": _is_int32,
    "devmem": _is_int32,
    "devcore": _is_int32,
    "type": _is_text,
    "numa": lambda value: type(value) is int,
    "health": lambda value: isinstance(value, bool),
}
