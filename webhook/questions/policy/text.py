"""The policy file as commented YAML: the default one, and what holds in a namespace."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from webhook.output.json import to_json
from webhook.output.yaml import lines, to_yaml
from webhook.policy.json_schema import json_schema
from webhook.questions.policy.effective import EffectivePolicy
from webhook.texts import visible

WIDTH = 100

_HEAD = "Where a list or map is empty, what could stand there follows, commented out."

Json = dict[str, Any]


def commented_default() -> str:
    """The default policy as YAML: every key with what it means, and examples where it is empty."""
    schema = json_schema()
    lines = [*_comment(f"{schema['description']} {_HEAD}")]
    for key, node in schema["properties"].items():
        lines += ["", *_Writer(schema["$defs"]).entry(key, node, node["default"])]
    return "\n".join(lines)


def effective_yaml(policy: EffectivePolicy) -> Iterator[str]:
    """The lines of what holds in a namespace; a policy file again."""
    yield f"# {visible(policy.where)}"
    for line in lines(policy.document, ""):
        field = line.field.replace("[", ".").replace("]", "")
        indent = line.text[: len(line.text) - len(line.text.lstrip())]
        yield from [f"{indent}# {fact}" for fact in policy.facts.get(field, ())]
        comment = policy.comments.get(field)
        yield f"{line.text}  # {visible(comment)}" if comment else line.text


class _Writer:
    """Writes values of a schema as lines of YAML, with the descriptions as comments."""

    def __init__(self, definitions: Json) -> None:
        self._definitions = definitions

    def entry(self, key: str, node: Json, value: Any) -> Iterator[str]:
        """A key with its comment and value."""
        schema = self._resolved(node)
        yield from _comment(_description(node, schema))
        items = self._resolved(schema.get("items", {}))
        if value and "properties" in items:
            yield f"{key}:"
            for item in value:
                yield from _dashed(list(self._section(items, item)))
        elif value and "properties" in schema and node.get("default"):  # a map of the author's own keys stays as it is
            yield f"{key}:"
            yield from _prefixed("  ", self._section(schema, value))
        else:
            yield from to_yaml({key: value}).splitlines()
        if not value:
            yield from _prefixed("# ", self._possible(node, schema, items))

    def _section(self, schema: Json, values: Json) -> Iterator[str]:
        for key, node in schema["properties"].items():
            yield from self.entry(key, node, values.get(key, node.get("default")))

    def _possible(self, node: Json, schema: Json, items: Json) -> Iterator[str]:
        """What could be written where nothing is."""
        for item in (node.get("examples") or [[]])[0]:
            yield from _dashed(list(self._section(items, item)))
        for key, value in schema.get("properties", {}).items():
            shown = to_json(value["examples"][0]) if "examples" in value else value["default"]
            yield f"  {key}: {shown}  # {value['description']}"

    def _resolved(self, node: Json) -> Json:
        node = node.get("anyOf", [node])[0]  # the other one is null
        if "$ref" in node:
            definition: Json = self._definitions[node["$ref"].rpartition("/")[2]]
            return definition
        return node


def _description(node: Json, schema: Json) -> str:
    text: str = node.get("description", "")
    choices = [choice or '""' for choice in schema.get("enum", ()) if choice is not False]
    return text if all(choice in text for choice in choices) else f"{text} One of: {', '.join(choices)}.".lstrip()


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False)]


def _prefixed(prefix: str, lines: Iterable[str]) -> Iterator[str]:
    return (prefix + line for line in lines)


def _dashed(lines: list[str]) -> list[str]:
    """An item of a list: the dash goes before its first key, the comment of that stays above."""
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [("- " if number == first else "  ") + line for number, line in enumerate(lines)]
