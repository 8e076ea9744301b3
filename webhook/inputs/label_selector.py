"""Label selectors as kubectl takes them: `app=web,tier!=db,env in (a, b),gpu,!old`."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.lenient import obj

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_KEY = rf"(?P<key>([a-z0-9.-]+/)?{_NAME})"
_EQUALITY = re.compile(rf"{_KEY}\s*(?P<operator>==?|!=)\s*(?P<values>({_NAME})?)")
_SET = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EXISTS = re.compile(rf"(?P<operator>!?)\s*{_KEY}")
_COMMA = re.compile(r",(?![^()]*\))")  # not within parentheses


class LabelRequirement(NamedTuple):
    """One part of a selector.

    Attributes:
        key: of the label.
        values: one of which it must have; None for any.
        negated: whether the label must be absent, or have another value.
    """

    key: str
    values: tuple[str, ...] | None
    negated: bool

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Whether labels meet it."""
        present = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return present is not self.negated


LabelSelector = tuple[LabelRequirement, ...]


def parse_label_selector(text: str) -> LabelSelector:
    """Parse a selector; an empty one selects everything.

    Raises:
        ValueError: it is not a selector; the message explains what to write.
    """
    return tuple(_requirement(part.strip()) for part in _COMMA.split(text)) if text.strip() else ()


def _requirement(part: str) -> LabelRequirement:
    if found := _EQUALITY.fullmatch(part):
        return LabelRequirement(found["key"], (found["values"],), found["operator"] == "!=")
    if found := _SET.fullmatch(part):
        values = tuple(value.strip() for value in found["values"].split(","))
        return LabelRequirement(found["key"], values, found["operator"] == "notin")
    if found := _EXISTS.fullmatch(part):
        return LabelRequirement(found["key"], None, bool(found["operator"]))
    raise ValueError(f"{part!r} is not a label selector; write KEY=VALUE, KEY!=VALUE, 'KEY in (A, B)', KEY or !KEY")


def selects(selector: LabelSelector, document: Any) -> bool:
    """Whether a selector selects an object, by its labels."""
    labels = obj(document, "metadata", "labels")
    return all(requirement.matches(labels) for requirement in selector)
