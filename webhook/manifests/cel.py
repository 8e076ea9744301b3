"""Writes CEL expressions. `[x].exists(name, …)` binds x to a name, as CEL has no variables."""

import json
import string
import textwrap
from collections.abc import Iterable, Mapping

from webhook.devices.wording import SHOWN

_SHORT = 80  # a condition that is written on the line of its list


def exists(subject: str, variable: str, condition: str) -> str:
    """Whether the condition holds for some element of a list or map."""
    separated = f",{block(condition)}" if "\n" in condition or len(condition) > _SHORT else f", {condition}"
    return f"{subject}.exists({variable}{separated})"


def exists_or_many(subject: str, most: int, variable: str, condition: str, many: str = "true") -> str:
    """Whether the condition holds for some element, or what holds of more elements than `most`, none of which is looked at.

    Args:
        subject: a list or a map.
        most: elements to look at.
        variable: the name of an element in the condition.
        condition: of an element.
        many: an expression for what is true of more elements.

    The API server keeps the steps of a loop until it ends and searches them at each step, so that the time of a loop grows with
    the square of its length (cel-go 0.26, interpreter/runtimecost.go).
    """
    return few_or_many(f"size({subject}) > {most}", exists(subject, variable, condition), many)


def few_or_many(are_many: str, few: str, many: str) -> str:
    """What holds of few elements; or of many, if they are."""
    return f"({are_many} || {few})" if many == "true" else f"({are_many} ? {many} : {few})"


def first(subject: str, most: int) -> str:
    """The list, or as many elements of its beginning."""
    indexes = ", ".join(map(str, range(most)))
    return f"(size({subject}) > {most} ? [{indexes}].map(at, {subject}[at]) : {subject})"


def any_of(*conditions: str) -> str:
    """Whether one of the conditions holds."""
    return " ||\n".join(conditions)


def let(value: str, variable: str, expression: str) -> str:
    """An expression that reads the value of another by a name."""
    return f"[{value}].map({variable}, {expression})[0]"


def list_of(values: Iterable[str]) -> str:
    """A list of strings, sorted."""
    texts = [text(value) for value in sorted(values)]
    return f"[{', '.join(texts)}]" if len(texts) < 3 else lines(texts)


def map_of(values: Mapping[str, str]) -> str:
    """A map from texts to the values of expressions."""
    return "{" + ", ".join(f"{text(key)}: {value}" for key, value in values.items()) + "}"


def lines(items: Iterable[str]) -> str:
    """A list of expressions, each on its line."""
    return "[" + block(",\n".join(items)) + "]"


def block(inner: str) -> str:
    """An expression, indented on lines of its own."""
    return f"\n{textwrap.indent(inner, '  ')}\n"


def text(value: str) -> str:
    """A CEL string: CEL has all escapes of JSON."""
    return json.dumps(value, ensure_ascii=False)


def matches(value: str, pattern: str) -> str:
    """Whether a pattern matches the whole value of an expression."""
    return f"{value}.matches({text(f'^(?:{pattern})$')})"


def quoted(value: str) -> str:
    """The value of an expression as sentences show it: quoted, and cut to a length."""
    return f"strings.quote({cut(value)})"


def cut(value: str) -> str:
    """The value of an expression, or as much of its beginning as sentences show."""
    return f"(size({value}) > {SHOWN} ? {value}.substring(0, {SHOWN - 1}) + '…' : {value})"


def sentence(template: str, **fields: str) -> str:
    """An expression for a sentence; each `{field}` of the template is the value of another expression."""
    parts: list[str] = []
    for words, field, _, _ in string.Formatter().parse(template):
        if words:
            parts.append(text(words))
        if field is not None:
            parts.append(fields[field])
    return " + ".join(parts)
