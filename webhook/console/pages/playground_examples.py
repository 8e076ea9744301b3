"""Manifests to begin with: the sample pods, and each rule's example."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from webhook.offline.rulebook import REPAIR, rows
from webhook.settings.files import MAX_SETTINGS_BYTES, SAMPLES, read_bytes

START = "pod-repaired"
POLICY = "policy."  # the conditions of an example that can be tried here

_SAMPLES = {
    START: "a pod that is repaired",
    "pod-warned": "a pod that is admitted with warnings",
    "pod-refused": "a pod that is refused",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A manifest to begin with.

    Attributes:
        name: by which it is chosen.
        manifest: its text.
        settings: of the policy under which it is meant.
        needs: what else it needs that cannot be tried here.
    """

    name: str
    manifest: str
    settings: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@cache
def choices() -> Mapping[str, Mapping[str, str]]:
    """All examples by group: what is chosen, and what it is in words."""
    listed = rows()
    repairs = {row.id: row.id for row in listed if row.level == REPAIR}
    return {
        "Samples": _SAMPLES,
        "Repairs": repairs,
        "Checks": {row.id: row.id for row in listed if row.id not in repairs},
    }


def example(name: str) -> Example | None:
    """One of them; None if there is none of that name."""
    if name in _SAMPLES:
        return Example(name, read_bytes(SAMPLES / f"{name}.yaml", MAX_SETTINGS_BYTES).decode())
    row = next((row for row in rows() if row.id == name), None)
    if row is None:
        return None
    found = row.example()
    settings, needs = [], []
    for key, value in found.conditions.items():
        if key.startswith(POLICY):
            settings.append(f"{key.removeprefix(POLICY)}={value}")
        else:
            needs.append(f"{key}: {value}")
    return Example(name, found.manifest, tuple(settings), tuple(needs))
