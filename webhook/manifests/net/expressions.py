"""Parts of the net's expressions: requests, sentences, and the lists that findings are made of.

A rule of the net is an expression for the list of its findings, as sentences: one text for all findings of a container. It
reads the `variables` that `webhook.manifests.net.policies` defines; `c` is a container, `d` one with devices.
"""

from types import ModuleType
from typing import NamedTuple

from webhook.devices.config import DeviceConfig
from webhook.manifests.cel import list_of, sentence, text
from webhook.rules.base import Settings, Toleration
from webhook.rules.levels import LevelTable

BETWEEN = ". "  # two sentences; the API server drops a message with a line break


class Scope(NamedTuple):
    """Which requests a policy is for, and by which settings.

    Attributes:
        config: as the target version reads it.
        settings: of the webhook's policy.
        levels: of the webhook's policy.
        creates: the request makes a pod.
        judges: it brings in containers.
    """

    config: DeviceConfig
    settings: Settings
    levels: LevelTable
    creates: bool
    judges: bool

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
    return sentence(f"{rule.RULE.id}: {template}", who=who, **fields)


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
