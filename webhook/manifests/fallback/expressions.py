"""Parts of the CEL expressions: requests, sentences, lists of findings, and the policy's settings for namespaces.

A rule is an expression for the list of its findings, as sentences: one text for all findings of a container. It
reads the `variables` that `webhook.manifests.fallback.policies` defines; `c` is a container, `d` one with devices.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from string import ascii_lowercase, digits
from types import ModuleType
from typing import NamedTuple

from webhook.devices.config import DeviceConfig
from webhook.manifests.cel import list_of, sentence, text
from webhook.rules.levels import Effective, LevelTable
from webhook.rules.settings import Settings, Toleration

BETWEEN = ". "  # two sentences; the API server drops a message with a line break


class Scope(NamedTuple):
    """Which requests a policy is for, and by which settings.

    Attributes:
        config: as the target version reads it.
        settings: of the webhook's policy.
        levels: of the webhook's policy.
        creates: the request makes a pod.
        judges: it brings in containers.
        binds: it is a Binding, which has annotations for a pod and nothing else that is read.
    """

    config: DeviceConfig
    settings: Settings
    levels: LevelTable
    creates: bool
    judges: bool
    binds: bool

    @property
    def trusted(self) -> str:
        """The list of the users who may write what the scheduler writes."""
        return list_of(self.settings.trusted_users)


def requests(family: str) -> str:
    """Some container requests devices of a family."""
    return f"variables.requests_{family}"


def has_amount(resource: str) -> str:
    """The container `c` has a resource in limits or requests."""
    return f"({text(resource)} in c.limits || {text(resource)} in c.requests)"


def amount(resource: str) -> str:
    """The quantity of a resource of the container `c`, as text; '0' if it has none."""
    key = text(resource)
    return f"({key} in c.limits ? string(c.limits[{key}]) : {key} in c.requests ? string(c.requests[{key}]) : '0')"


def message_of(rule: ModuleType, template: str, who: str = "c.who", **fields: str) -> str:
    """The sentence of a finding, which begins with the rule's id."""
    return sentence(f"{rule.check.id}: {template}", who=who, **fields)


def some(condition: str, message: str) -> str:
    """The sentence if the condition holds."""
    return f"({condition} ? [{message}] : [])"


def covers(wanted: Toleration) -> str:
    """The toleration `t` tolerates all that the wanted one would."""
    key, effect = (
        f"(!has(t.{field}) || t.{field} in {list_of({'', value})})"
        for field, value in (("key", wanted.key), ("effect", wanted.effect))
    )
    exists = 'has(t.operator) && t.operator == "Exists"'
    if wanted.operator != "Equal":
        return f"{key} && {effect} && {exists}"
    equal = '(!has(t.operator) || t.operator in ["", "Equal"])'
    value = f"(has(t.value) ? t.value : '') == {text(wanted.value)}"
    return f"{key} && {effect} && ({exists} || {equal} && has(t.key) && t.key != '' && {value})"


def of_each(kind: str, variable: str, condition: str, message: str) -> str:
    """The messages about the elements of a list of each judged container: one text a container."""
    listed = f"c.raw.{kind}"
    found = f"has({listed}) && {listed}.exists({variable}, {condition})"
    texts = f"{listed}.map({variable}, {condition}, {message}).join({text(BETWEEN)})"
    return f"variables.judged.filter(c, {found}).map(c, {texts})"


# --- namespaces: bindings have no globs, and no last match that wins -------------------------------------------------

EVERYWHERE, NOWHERE = "true", "false"


def where(levels: LevelTable, holds: Callable[[Effective], bool]) -> str:
    """A condition: the policy for the namespace of the request passes a test.

    Args:
        levels: of the policy.
        holds: of what the policy comes to.
    """
    winners = (None, *range(len(levels.namespaces)))
    found = [-1 if winner is None else winner for winner in winners if holds(levels.at(winner))]
    if len(found) == len(winners):
        return EVERYWHERE
    return f"variables.entry in {found}" if found else NOWHERE


def only(condition: str, findings: str) -> str:
    """A list where a condition holds, else an empty one."""
    if condition == EVERYWHERE:
        return findings
    return "[]" if condition == NOWHERE else f"!({condition}) ? [] :\n{findings}"


def both(*conditions: str) -> str:
    """A condition: all of some hold."""
    if NOWHERE in conditions:
        return NOWHERE
    return " && ".join(each for each in conditions if each != EVERYWHERE) or EVERYWHERE


def winning_entry(levels: LevelTable) -> str:
    """The index of the last entry of `namespaces` that covers the namespace; -1 if none does."""
    cases = [
        f"request.namespace.matches({text(_pattern(entry.match))}) ? {index} :"
        for index, entry in reversed(list(enumerate(levels.namespaces)))
    ]
    return "\n".join([*cases, "-1"])


def _pattern(globs: tuple[str, ...]) -> str:
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
