"""`vgpu-webhook completion SHELL`: the script that makes the Tab key complete commands, options and files."""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from webhook.cli.main import COMPLETION_VARIABLE, program
from webhook.cli.program import Command

_EPILOG = """
kubectl completes `kubectl vgpu` by itself, if kubectl's own completion is on.

  source <(vgpu-webhook completion bash)                                          # now; put it into ~/.bashrc to keep it
  source <(vgpu-webhook completion zsh)                                           # now; put it into ~/.zshrc to keep it
  vgpu-webhook completion fish > ~/.config/fish/completions/vgpu-webhook.fish     # from the next shell on
"""

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion", cls=Command, epilog=_EPILOG)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    print(SHELLS[shell](program, {}, "vgpu-webhook", COMPLETION_VARIABLE).source())


def kubectl_complete(arguments: Sequence[str] | None = None) -> int:
    """Complete `kubectl vgpu`: kubectl runs `kubectl_complete-vgpu` with the words, and reads values and a directive."""
    *words, incomplete = (sys.argv[1:] if arguments is None else arguments) or [""]
    items = ShellComplete(program, {}, "kubectl vgpu", COMPLETION_VARIABLE).get_completions(list(words), incomplete)
    plain = [item for item in items if item.type == "plain"]
    for item in plain:
        print(f"{item.value}\t{item.help or ''}".rstrip())
    print(":4" if len(plain) == len(items) else ":0")  # 4: offer no files
    return 0
