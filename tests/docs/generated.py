"""The parts of the documentation that are generated from code, each between two markers."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import yaml

from tests import ledger
from tests.docs.markdown import set_part, shown
from webhook.cli.main import program
from webhook.console.app import pages
from webhook.console.openapi import openapi_document
from webhook.console.pages import PREFIX
from webhook.devices.config import VgpuConfig
from webhook.devices.dialects import DIALECTS, Dialect
from webhook.output.json import to_json
from webhook.pod.workload_kinds import WORKLOAD_KINDS
from webhook.policy.json_schema import json_schema
from webhook.questions import QUESTIONS
from webhook.rules.choices import Level
from webhook.rules.registry import VALIDATIONS
from webhook.server import metrics
from webhook.settings.table import DEVICE_CONFIG
from webhook.suites.rulebook import ENGINE_FINDINGS, rows
from webhook.texts import markdown_cell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WIDTH = 100  # columns of help texts
UPSTREAM = yaml.safe_load((ROOT / "tests/docs/upstream.yaml").read_text())


@cache
def parts() -> dict[str, str]:
    """Every generated part by the name in its markers."""
    return {
        **_rules(),
        "isolation": _table(("rule", "by default", "finds"), _isolation()),
        "mig": _table(("card", "instance", "write"), _instances()),
        "settings": _table(("key", "default", "what"), _settings()),
        "commands": "\n".join(_commands()),
        "operations": _table(("method", "path", "what it answers"), _operations()),
        "workloads": _table(("API group", "kind", "pod templates"), _workloads()),
        **{
            dialect.id: f"{_table(('name', 'where', 'here'), _dialect(dialect))}\n\nNames from {dialect.source}."
            for dialect in DIALECTS.values()
        },
        "ledger": ledger.table(),
        **{part: "\n".join(map(_upstream, findings)) for part, findings in UPSTREAM.items()},
        "suite": f"```yaml\n{(DOCS / 'examples' / 'policy-tests' / 'suite.yaml').read_text()}```\n",
        "metrics": _table(("metric", "type", "labels", "what"), _metrics()),
    }


def renew(page: str) -> str:
    """The page with up-to-date generated parts."""
    for name in shown(page).keys() & parts().keys():
        page = set_part(page, name, parts()[name])
    return page


@cache
def help_texts() -> dict[str, str]:
    """The output of `--help` by command, such as `policy check`; a group comes before its commands."""
    context = program.make_context("vgpu-webhook", [], resilient_parsing=True, terminal_width=WIDTH)
    return dict(_help_texts(context))


def _help_texts(context: click.Context) -> Iterator[tuple[str, str]]:
    if context.parent is not None:
        yield context.command_path.partition(" ")[2], context.get_help()
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            _, command, _ = context.command.resolve_command(context, [name])
            assert command is not None
            yield from _help_texts(click.Context(command, context, name, **command.context_settings))


def _commands() -> Iterator[str]:
    for command, text in help_texts().items():
        yield f"## {command}\n\n```text\n{text.strip()}\n```\n"


def _table(head: tuple[str, ...], body: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *body]
    ruled = [f"| {' | '.join(line)} |" for line in lines]
    ruled[1] = ruled[1].replace(" ", "")
    return "\n".join(ruled) + "\n"


def _upstream(finding: dict[str, str]) -> str:
    """A finding of another project, under a heading to which others can link."""
    title, found, *details = finding.items()
    listed = "\n".join([f"- **{what.capitalize()}:** {text}" for what, text in details])
    return f"### {title[1]}\n\n{found[1]}.\n\n{listed}\n"


def _rules() -> dict[str, str]:
    """The part of docs/rules.md, the page of a question."""
    if "rules" not in QUESTIONS:
        return {}
    text = import_module("webhook.questions.rules.text")
    return {"rules": "\n".join(text.markdown([*rows(), *ENGINE_FINDINGS])) + "\n"}


def _isolation() -> Iterator[tuple[str, str, str]]:
    """The rules that keep tenants apart, those that deny first."""
    isolating = (rule for rule in VALIDATIONS if rule.isolates)
    for rule in sorted(isolating, key=lambda rule: rule.level is not Level.DENY):
        yield f"[`{rule.id}`](rules.md#{rule.id})", rule.level, markdown_cell(rule.summary)


def _instances() -> Iterator[tuple[str, str, str]]:
    """What to write for each MIG instance of the cards that Volcano's device config has by default."""
    config = DEVICE_CONFIG.load(ROOT / "webhook" / "samples" / "device-config.yaml").vgpu
    for models in config.mig_models:
        sizes = {one.name: one.memory for geometry in models.geometries for one in geometry.instances}
        for name, memory in sizes.items():
            yield ", ".join(dict.fromkeys(models.models)), f"`{name}`", f"`{config.memory_name}: {memory}`"


def _settings() -> Iterator[tuple[str, str, str]]:
    """Every key of the policy file; the keys of a list or map follow it."""
    schema = json_schema()
    return _keys("", schema, schema["$defs"])


def _keys(prefix: str, schema: dict[str, Any], known: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, node in schema["properties"].items():
        key = prefix + name
        described = _resolved(node, known)
        items = _resolved(described.get("items", {}), known)
        if "properties" in described and node.get("default"):
            yield f"`{key}`", "", markdown_cell(node["description"])
            yield from _keys(f"{key}.", described, known)
            continue
        yield f"`{key}`", _default(node), markdown_cell(node["description"]) + _choices(node, described)
        if "properties" in items:
            yield from _keys(f"{key}[].", items, known)


def _resolved(node: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    node = node.get("anyOf", [node])[0]  # the other one is null
    found: dict[str, Any] = known[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    return found


def _default(node: dict[str, Any]) -> str:
    if "default" not in node:
        return "required"
    value = node["default"]
    if isinstance(value, list) and len(value) > 1:
        return f"{len(value)} entries; `vgpu-webhook policy default` prints them"
    value = value[0] if isinstance(value, list) and value else value
    return f"`{value if isinstance(value, str) and value else to_json(value)}`"


def _choices(node: dict[str, Any], described: dict[str, Any]) -> str:
    """The allowed values, where the description does not list them."""
    words = [choice or '""' for choice in described.get("enum", ()) if choice is not False]
    listed = all(word in node["description"] for word in words)
    return "" if listed else f" One of {', '.join(f'`{word}`' for word in words)}."


def _workloads() -> Iterator[tuple[str, str, str]]:
    for kind in WORKLOAD_KINDS.values():
        paths = ", ".join(f"`{template.templates}`" for template in kind.templates)
        yield f"`{kind.group}`" if kind.group else "core", kind.kind, paths if kind.is_whole else f"{paths} (in part)"


def _dialect(dialect: Dialect) -> Iterator[tuple[str, str, str]]:
    """Every name of another system, and what says the same in a cluster with the default names."""
    called = VgpuConfig().role_names
    for word in dialect.words:
        here = f"{'not translated' if word.blocks else 'nothing'}: {word.note}"
        if word.role is not None:
            unit = f", times {word.unit}" if word.unit > 1 else ", from bytes" if word.unit < 1 else ""
            here = f"`{called[word.role]}`{unit}{f' ({word.note})' if word.note else ''}"
        elif word.here:
            here = "the same" if word.here == word.name else f"`{word.here}`"
            here += f": {' or '.join(f'`{value}`' for value in word.values)}" if word.values else ""
        yield f"`{word.name}`", word.place, here
    if dialect.chooser:
        yield f"`{dialect.chooser}`", "annotation", "the container that requests them; by default the first"
    for scheduler in dialect.schedulers:
        yield f"`{scheduler}`", "schedulerName", "`volcano`, or what the policy's `schedulerName` is"


def _metrics() -> Iterator[tuple[str, str, str, str]]:
    kinds = (
        ("counter", "_total", metrics.COUNTERS),
        ("histogram", "", metrics.HISTOGRAMS),
        ("gauge", "", metrics.GAUGES),
    )
    for kind, suffix, known in kinds:
        for name, (text, labels) in known.items():
            label_list = ", ".join(f"`{label}`" for label in labels)
            yield f"`{metrics.PREFIX}{name}{suffix}`", kind, label_list, text.removesuffix(".")


def _operations() -> Iterator[tuple[str, str, str]]:
    for path, methods in openapi_document(pages())["paths"].items():
        for method, operation in methods.items():
            yield f"`{method.upper()}`", f"`{PREFIX}{path}`", markdown_cell(operation["summary"])
