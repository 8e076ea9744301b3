"""`vgpu-webhook policy`: checks a policy file, prints what holds in a namespace, the default and a schema."""

import json
from datetime import UTC, datetime

import click

from webhook.cli.files import FileArguments, files_option
from webhook.cli.options import warnings_as_errors_option
from webhook.cli.program import ExitCode, Group, bad_usage, exit_code, report_error
from webhook.cli.terminal import INDENT, Style, Terminal
from webhook.errors import Mistakes
from webhook.inputs.files import read_input, source_name
from webhook.policy.json_schema import json_schema
from webhook.policy.policy import Policy
from webhook.policy.warnings import warnings_of
from webhook.questions.policy.effective import effective_policy
from webhook.questions.policy.text import commented_default, effective_yaml
from webhook.settings.table import MAX_SETTINGS_BYTES, POLICY
from webhook.texts import counted, visible

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
@warnings_as_errors_option
def check(given: FileArguments, warnings_as_errors: bool) -> int:
    """Check a policy file, and warn of what is surely not meant."""
    file, policy = _read(given)
    if policy is None:
        return ExitCode.BAD_INPUT
    terminal, warnings = Terminal(), warnings_of(policy, datetime.now(UTC).date())
    text = (Style.WARNING, f"valid, with {counted(len(warnings), 'warning')}") if warnings else (Style.GOOD, "valid")
    terminal.line((Style.BOLD, file), ": ", text)
    for warned in warnings:
        terminal.paragraph(INDENT, ((Style.WARNING, warned.path), ": "), warned.detail)
    return exit_code(warned=bool(warnings) and warnings_as_errors)


@command.command("effective")
@files_option("The policy, YAML or JSON, or the ConfigMap that holds it.")
@click.option("-n", "--namespace", metavar="NAMESPACE", help="Where; default where no entry of `namespaces` matches.")
def effective(given: FileArguments, namespace: str | None) -> int:
    """Print what holds in a namespace: a policy file with every key, and with comments on what is not the default."""
    _, policy = _read(given)
    if policy is None:
        return ExitCode.BAD_INPUT
    for line in effective_yaml(effective_policy(policy, namespace)):
        print(line)
    return ExitCode.OK


def _read(given: FileArguments) -> tuple[str, Policy | None]:
    """The only file, and its policy; None if it is not valid, and all mistakes are printed."""
    file, *more = given.files
    if more:
        raise bad_usage(f"one policy at a time: leave out {more[0]}")
    try:
        return visible(source_name(file)), POLICY.read(read_input(file, MAX_SETTINGS_BYTES), source_name(file))
    except Mistakes as error:
        for mistake in error.each:
            report_error(f"{error.source}: {mistake}")
        return file, None


@command.command("default")
def default() -> None:
    """Print the default policy: every key, and what it means."""
    print(commented_default())


@command.command("schema", epilog=_EDITORS)
def schema() -> None:
    """Print the JSON Schema of policy files, for editors."""
    print(json.dumps(json_schema(), indent=2))
