"""`vgpu-webhook help`: what `--help` prints."""

import click

from webhook.cli.program import Command


@click.command("help", cls=Command)
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
    """Explain a command, as its option --help does; without one, list them all."""
    root = context.find_root()
    with root.command.make_context(root.info_name, [*names, "--help"]) as explained:
        root.command.invoke(explained)
