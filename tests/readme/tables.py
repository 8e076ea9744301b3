"""The tables of the README that are made from code, each between two markers."""

import re
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator
from typing import Any

from webhook.cli.console import _parser as parser_of_console
from webhook.cli.serve import _parser as parser_of_serve
from webhook.console.api.openapi import PREFIX, document
from webhook.console.api.routes import OPERATIONS
from webhook.offline.rulebook import rows
from webhook.render.policy_file import json_schema
from webhook.render.rules import cell, markdown
from webhook.render.yaml import to_json
from webhook.server import metrics

REQUIRED = "must be given"
_MARKED = re.compile(r"(<!-- (?P<name>[a-z]+): [^>]* -->\n)(.*?)(<!-- end of (?P=name) -->\n)", re.DOTALL)


def made() -> dict[str, str]:
    """Every such table by the name in its markers."""
    return {
        "rules": "\n".join(markdown(list(rows()))) + "\n",
        "settings": _table(("key", "default", "what"), _settings()),
        "options": _table(("option", "what"), _options(parser_of_serve())),
        "console": _table(("option", "what"), _options_of_console()),
        "operations": _table(("method", "path", "what it answers"), _operations()),
        "metrics": metrics.markdown(),
    }


def shown(page: str) -> dict[str, str]:
    """The tables between the markers of a page, by name."""
    return {match["name"]: match[3] for match in _MARKED.finditer(page)}


def renewed(page: str) -> str:
    """The page with its tables as the code has them."""
    tables = made()
    return _MARKED.sub(lambda match: match[1] + tables[match["name"]] + match[4], page)


def _table(head: tuple[str, ...], body: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *body]
    ruled = [f"| {' | '.join(line)} |" for line in lines]
    ruled[1] = ruled[1].replace(" ", "")
    return "\n".join(ruled) + "\n"


def _settings() -> Iterator[tuple[str, str, str]]:
    """Every key of the policy file, those of lists and maps below the list or map."""
    schema = json_schema()
    return _keys("", schema, schema["$defs"])


def _keys(prefix: str, schema: dict[str, Any], known: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, node in schema["properties"].items():
        key = prefix + name
        described = _resolved(node, known)
        items = _resolved(described.get("items", {}), known)
        if "properties" in described and node.get("default"):  # a map of the author's own keys is one row
            yield f"`{key}`", "", cell(node["description"])
            yield from _keys(f"{key}.", described, known)
            continue
        yield f"`{key}`", _default(node), cell(node["description"]) + _choices(node, described)
        if "properties" in items:
            yield from _keys(f"{key}[].", items, known)


def _resolved(node: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    node = node.get("anyOf", [node])[0]  # the other one is null
    found: dict[str, Any] = known[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def _default(node: dict[str, Any]) -> str:
    if "default" not in node:
        return REQUIRED
    value = node["default"]
    if isinstance(value, list) and len(value) > 1:
        return f"{len(value)} entries, which `vgpu-webhook policy default` prints"
    value = value[0] if isinstance(value, list) and value else value
    return f"`{value if isinstance(value, str) and value else to_json(value)}`"


def _choices(node: dict[str, Any], described: dict[str, Any]) -> str:
    """What may be written, where the description does not say it."""
    words = [choice or '""' for choice in described.get("enum", ()) if choice is not False]
    told = all(word in node["description"] for word in words)
    return "" if told else f" One of {', '.join(f'`{word}`' for word in words)}."


def _options(parser: ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if action.help not in (None, SUPPRESS) and action.dest != "help":
            spelled = " ".join(filter(None, (action.option_strings[-1], action.metavar)))
            yield f"`{spelled}`", cell(action.help % {"default": action.default})


def _options_of_console() -> Iterator[tuple[str, str]]:
    """Those that say something else than `serve` says of them."""
    told = set(_options(parser_of_serve()))
    return (option for option in _options(parser_of_console()) if option not in told)


def _operations() -> Iterator[tuple[str, str, str]]:
    """What the API's own document lists."""
    for path, methods in document(OPERATIONS)["paths"].items():
        for method, operation in methods.items():
            yield f"`{method.upper()}`", f"`{PREFIX}{path}`", cell(operation["summary"])
