"""The policy's settings for namespaces, in CEL: bindings have no globs, and no last match that wins."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from string import ascii_lowercase, digits

from webhook.manifests.cel import text
from webhook.policy.levels import Effective
from webhook.policy.policy import Policy

EVERYWHERE, NOWHERE = "true", "false"


def where(levels: Policy, holds: Callable[[Effective], bool]) -> str:
    """A condition: the policy for the namespace of the request passes a test.

    Args:
        levels: of the policy.
        holds: of what the policy comes to.
    """
    winners = (None, *range(len(levels.namespaces)))
    entries = [-1 if winner is None else winner for winner in winners if holds(levels.at(winner))]
    if len(entries) == len(winners):
        return EVERYWHERE
    return f"variables.entry in {entries}" if entries else NOWHERE


def only(condition: str, findings: str) -> str:
    """A list where a condition holds, else an empty one."""
    if condition == EVERYWHERE:
        return findings
    return "[]" if condition == NOWHERE else f"!({condition}) ? [] :\n{findings}"


def both(*conditions: str) -> str:
    """A condition: all of some hold, none of which is `NOWHERE`."""
    return " && ".join(each for each in conditions if each != EVERYWHERE) or EVERYWHERE


def winning_entry(levels: Policy) -> str:
    """The index of the last entry of `namespaces` that covers the namespace; -1 if none does."""
    cases = [
        f"request.namespace.matches({text(_pattern(entry.match))}) ? {index} :"
        for index, entry in reversed(list(enumerate(levels.namespaces)))
    ]
    return "\n".join([*cases, "-1"])


def _pattern(globs: Sequence[str]) -> str:
    return f"^(?:{'|'.join(map(_translated, globs))})$"


def _translated(glob: str) -> str:
    """A glob as a regular expression over names of namespaces."""
    return re.sub(r"\[!?\]?[^\]]*\]|.", _translated_part, glob, flags=re.DOTALL)


def _translated_part(part: re.Match[str]) -> str:
    if part[0] == "*":
        return ".*"
    if part[0] == "?" or (part[0].startswith("[") and len(part[0]) > 1):
        characters = [each for each in f"{ascii_lowercase}{digits}-" if fnmatchcase(each, part[0])]
        return f"[{''.join(characters)}]" if characters else "_"  # which no name has
    return re.escape(part[0])
