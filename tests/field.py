"""Manifests that people published when they asked for help, in tests/data/field.

Each begins with its `source`, what is true of it (`truth`), what a good answer is (`expect`) and the options that it is
reviewed with (`args`), as they were collected. Then comes what is answered (`answer`, `says`, `why`).
"""

import re
from typing import Any

from tests.cli.conftest import DATA

FIELD = DATA / "field"
MANIFESTS = sorted(FIELD.glob("*.yaml"))
WORST_FIRST = ["refused", "warned", "repaired", "allowed", "not-reviewed"]


def header(text: str) -> dict[str, str]:
    """The comments with a name at the beginning of a manifest; several of a name are several lines."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"^# (\w+): *(.*)$", text, re.MULTILINE):
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def worst(answers: list[dict[str, Any]]) -> str:
    """The worst outcome of what `review -o json` says of the documents of a manifest."""
    outcomes = ["refused" if answer["podsRefused"] else answer["outcome"] for answer in answers]
    return min(outcomes, key=WORST_FIRST.index)
