"""The policy: its effect as a table for people, and the policy file as a JSON Schema and as commented YAML."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from webhook.policy.effective import CheckLevel, EffectivePolicy, NamespaceEntry, PolicySetting, RepairSwitch
from webhook.policy.schema import PolicyFile
from webhook.render.terminal import INDENT, Piece, Style, Terminal
from webhook.render.yaml import to_yaml
from webhook.rules.levels import Source
from webhook.rules.settings import Enforcement, Level
from webhook.texts import shorten

MAX_GLOBS = 60  # characters
MAX_DEFAULT = 60

_LEVELS = {Level.DENY: Style.BAD, Level.WARN: Style.WARNING, Level.AUDIT: Style.PLAIN, Level.OFF: Style.PLAIN}


def show(policy: EffectivePolicy, terminal: Terminal, *, changed: bool) -> None:
    """Write the table.

    Args:
        policy: the effective policy.
        terminal: where to write.
        changed: leave out what is the default.
    """
    count = len(policy.warnings)
    text = (Style.WARNING, f"valid, with {count} warning{'s' * (count > 1)}") if count else (Style.GOOD, "valid")
    terminal.line((Style.BOLD, policy.file), ": ", text)
    _settings([s for s in policy.settings if not changed or s.value != s.default], terminal)
    if not policy.exempt:
        _enforcement(policy, [row for row in policy.repairs if not (changed and row.on)], terminal)
    _levels(policy, [row for row in policy.levels if not changed or row.level is not row.default], terminal)
    if policy.namespace is None and policy.namespaces:
        _entries(policy.namespaces, terminal)
    if policy.warnings:
        terminal.line()
        terminal.line((Style.BOLD, "warnings"))
    for warned in policy.warnings:
        terminal.paragraph(INDENT, ((Style.WARNING, warned.path), ": "), warned.message)


def _settings(settings: list[PolicySetting], terminal: Terminal) -> None:
    _heading("settings", terminal, empty=not settings)
    widest = max((len(setting.key) for setting in settings), default=0)
    for setting in settings:
        different = setting.value != setting.default
        default = _shown(setting.default)
        origin = f"  (default {default})" if different and len(default) <= MAX_DEFAULT else ""
        _row(f"{setting.key:<{widest}}", _shown(setting.value) + origin, terminal, different=different)
        for fact in setting.facts:
            _row(" " * widest, fact.text, terminal, different=fact.changed)


def _enforcement(policy: EffectivePolicy, rows: list[RepairSwitch], terminal: Terminal) -> None:
    where, value = _where(policy), policy.enforcement.value
    if value is not Enforcement.ENFORCE or policy.enforcement.source is Source.NAMESPACES:
        text = f"enforcement in {where}: {value}{_meaning(value)}"
        terminal.line()
        terminal.line((Style.WARNING if value is not Enforcement.ENFORCE else Style.BOLD, text))
    if any(not row.on for row in policy.repairs):
        _heading(f"repairs in {where}", terminal)
        for row in rows:
            source = f"namespaces.{policy.decider}" if row.source is Source.NAMESPACES else row.source
            _row(row.id, f"{'on' if row.on else 'off'}  {source}", terminal, different=not row.on)


def _meaning(enforcement: Enforcement) -> str:
    if enforcement is Enforcement.ENFORCE:
        return ""
    text = "their author is warned" if enforcement is Enforcement.WARN else "findings are only recorded"
    return f": pods are admitted unchanged, and {text}"


def _where(policy: EffectivePolicy) -> str:
    return policy.namespace or ("every other namespace" if policy.namespaces else "every namespace")


def _levels(policy: EffectivePolicy, rows: list[CheckLevel], terminal: Terminal) -> None:
    entry = policy.deciding
    where = _where(policy)
    if entry is not None and policy.exempt:
        _heading(f"{where} is exempt by {_named(entry)}: pods pass untouched", terminal)
        return
    _heading(f"levels in {where}{f', as {_named(entry)} decides' if entry else ''}", terminal, empty=not rows)
    widest = max((len(row.id) for row in rows), default=0)
    for row in rows:
        different = row.level is not row.default
        level = (_LEVELS[row.level] if different else Style.DIM, f"{row.level:<5}  ")
        _row(f"{row.id:<{widest}}", _origin(row, policy.decider), terminal, level, different=different)


def _origin(row: CheckLevel, decider: int | None) -> str:
    source = f"namespaces.{decider}" if row.source is Source.NAMESPACES else row.source
    if row.softened:
        return f"{source} {row.written}, softened by fleet.autoscaled"
    return source if row.level is row.default else f"{source}  (default {row.default})"


def _entries(entries: tuple[NamespaceEntry, ...], terminal: Terminal) -> None:
    _heading("namespaces, of which the last one that matches decides", terminal)
    for entry in entries:
        changes = [f"enforcement {entry.enforcement}"] if entry.enforcement else []
        changes += [f"{rule} {level}" for rule, level in entry.changes.items()]
        changes += [f"repair {rule} {'on' if on else 'off'}" for rule, on in entry.repairs.items()]
        what = "exempt" if entry.exempt else ", ".join(changes) or "as in every other namespace"
        terminal.paragraph(INDENT * 2, ((Style.BOLD, _named(entry)), ": "), what)


def _named(entry: NamespaceEntry) -> str:
    globs = ", ".join(entry.match)
    return f"namespaces.{entry.index} ({shorten(globs, MAX_GLOBS)})"


def _heading(text: str, terminal: Terminal, *, empty: bool = False) -> None:
    terminal.line()
    terminal.line((Style.BOLD, text), ": default" if empty else "")


def _row(key: str, text: str, terminal: Terminal, *middle: Piece, different: bool) -> None:
    mark, key_style, style = ("* ", Style.BOLD, Style.PLAIN) if different else ("  ", Style.DIM, Style.DIM)
    terminal.line(INDENT, mark, (key_style, key), INDENT, *middle, (style, text))


def _shown(value: Any) -> str:
    """A value as it is written in the file."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(part)}" for key, part in value.items() if part != "") + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


WIDTH = 100

_HEAD = "Where a list or map is empty, what could stand there follows, commented out."

Json = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Pydantic's, without what repeats a key or spells a private name."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name).lstrip("_")


def json_schema() -> Json:
    """The JSON Schema of the policy file, draft 2020-12.

    It is a little wider than the loader: it cannot express that schedulerName is one of schedulerNames.
    """
    schema = PolicyFile.model_json_schema(schema_generator=_Generator)
    schema["type"] = ["object", "null"]  # a file of comments alone
    return {"$schema": _Generator.schema_dialect} | schema


def commented_default() -> str:
    """The default policy as YAML: every key with what it means, and examples where it is empty."""
    schema = json_schema()
    lines = [*_comment(f"{schema['description']} {_HEAD}")]
    for key, node in schema["properties"].items():
        lines += ["", *_Writer(schema["$defs"]).entry(key, node, node["default"])]
    return "\n".join(lines)


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
            yield f"  {key}: {value['default']}  # {value['description']}"

    def _resolved(self, node: Json) -> Json:
        node = node.get("anyOf", [node])[0]  # the other one is null
        if "$ref" in node:
            found: Json = self._definitions[node["$ref"].rpartition("/")[2]]
            return found
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
