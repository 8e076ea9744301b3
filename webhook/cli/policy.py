"""`vgpu-webhook policy`: what a policy file comes to, what its keys mean, and a schema for editors."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from webhook.cli.parser import Parser
from webhook.errors import Mistakes
from webhook.policy.effective import effective_policy
from webhook.render.policy import show
from webhook.render.policy_file import commented_default, json_schema
from webhook.render.terminal import Terminal
from webhook.render.yaml import to_json
from webhook.settings.files import MAX_SETTINGS_BYTES, read_input, read_policy, source_name
from webhook.texts import visible

EXIT_GOOD = 0
EXIT_BAD_INPUT = 2
EXIT_WARNED = 3

_EXITS = """exit codes:
  0  the policy is good
  2  it cannot be used; the message says why
  3  it is good, with warnings, under --warnings-as-errors
"""

_EDITORS = """In editors with the YAML language server, make this the first line of the policy:
  # yaml-language-server: $schema=policy.schema.json
"""


def main(argv: Sequence[str]) -> int:
    """Run one of the commands."""
    arguments = _parser().parse_args(argv)
    if arguments.command == "check":
        return _check(arguments)
    print(commented_default() if arguments.command == "default" else json.dumps(json_schema(), indent=2))
    return EXIT_GOOD


def _check(arguments: argparse.Namespace) -> int:
    try:
        policy = read_policy(read_input(arguments.file, MAX_SETTINGS_BYTES), source_name(arguments.file))
    except Mistakes as error:
        for mistake in error.each:
            print(f"vgpu-webhook policy: {visible(f'{error.source}: {mistake}')}", file=sys.stderr)
        return EXIT_BAD_INPUT
    found = effective_policy(policy, source_name(arguments.file), arguments.namespace)
    if arguments.output == "json":
        print(to_json(found.json()))
    else:
        show(found, Terminal(sys.stdout, os.environ), changed=arguments.changed)
    return EXIT_WARNED if found.warnings and arguments.warnings_as_errors else EXIT_GOOD


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="vgpu-webhook policy", description="Check a policy file, or write one.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, what: str, more: str = "") -> argparse.ArgumentParser:
        raw = argparse.RawDescriptionHelpFormatter
        return commands.add_parser(
            name, help=what, description=f"{what[0].upper()}{what[1:]}.", epilog=more, formatter_class=raw
        )

    add = command("check", "say whether a policy file is good, and what holds in a namespace", _EXITS).add_argument
    add("file", metavar="FILE", help="the policy, YAML or JSON, or the ConfigMap that holds it; - is standard input")
    add("--namespace", metavar="NS", help="what holds there; without it, what holds wherever no entry says otherwise")
    add("--changed", action="store_true", help="leave out of the text what is as by default")
    add("-o", "--output", choices=["text", "json"], default="text", help="default text")
    add("--warnings-as-errors", action="store_true", help="exit with 3 if something is surely not meant")
    command("default", "print the default policy: every key, and what it means")
    command("schema", "print the JSON Schema of policy files, for editors", _EDITORS)
    return parser
