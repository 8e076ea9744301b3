"""`vgpu-webhook policy`: checks a policy file, shows what applies in a namespace, prints the default and a schema."""

import json

import click

from webhook.cli.inputs import FileArguments, files_option
from webhook.cli.options import output_option, warnings_as_errors_option
from webhook.cli.program import ExitCode, Group, bad_usage, exit_code, report_error
from webhook.errors import Mistakes
from webhook.inputs.files import read_input, source_name
from webhook.policy.effective import effective_policy
from webhook.render.policy import commented_default, json_schema, show
from webhook.render.terminal import Terminal
from webhook.render.yaml import to_json
from webhook.settings.table import MAX_SETTINGS_BYTES, POLICY

_EXITS = """
exit codes:
0  the policy is valid
2  it is invalid; the message says what is wrong
3  it is valid, with warnings, under --warnings-as-errors
"""
_EDITORS = """
In editors with the YAML language server, make this the first line of the policy:
  # yaml-language-server: $schema=policy.schema.json
"""


@click.group("policy", cls=Group, no_args_is_help=False)
def command() -> None:
    """Check a policy file, or write one."""


@command.command("check", epilog=_EXITS)
@files_option("The policy, YAML or JSON, or the ConfigMap that holds it.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="Show what applies there; default where no entry of `namespaces` matches.",
)
@click.option("--changed", is_flag=True, help="Show only what differs from the defaults (in text).")
@output_option("text", "json")
@warnings_as_errors_option
def check(given: FileArguments, namespace: str | None, changed: bool, output: str, warnings_as_errors: bool) -> int:
    """Check a policy file, and show what applies in a namespace."""
    file, *more = given.files
    if more:
        raise bad_usage(f"one policy at a time: leave out {more[0]}")
    try:
        policy = POLICY.read(read_input(file, MAX_SETTINGS_BYTES), source_name(file))
    except Mistakes as error:
        for mistake in error.each:
            report_error(f"{error.source}: {mistake}")
        return ExitCode.BAD_INPUT
    found = effective_policy(policy, source_name(file), namespace)
    if output == "json":
        print(to_json(found.json()))
    else:
        show(found, Terminal(), changed=changed)
    return exit_code(warned=bool(found.warnings) and warnings_as_errors)


@command.command("default")
def default() -> None:
    """Print the default policy: every key, and what it means."""
    print(commented_default())


@command.command("schema", epilog=_EDITORS)
def schema() -> None:
    """Print the JSON Schema of policy files, for editors."""
    print(json.dumps(json_schema(), indent=2))
