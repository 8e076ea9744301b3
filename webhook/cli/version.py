"""`vgpu-webhook version`: what `--version` prints."""

import click

from webhook.cli.program import Command


@click.command("version", cls=Command)
@click.pass_context
def command(context: click.Context) -> None:
    """Print the version of this program."""
    root = context.find_root()
    root.command.make_context(root.info_name, ["--version"])
