"""`vgpu-webhook what-if`: what would start, and what would not fit again, if nodes came or went or cards changed."""

from pathlib import Path

import click

from webhook.cli.options import output_option, pods_option, target_option
from webhook.cli.program import Command, Decorator, Parsed, bad_usage, combined, exit_code
from webhook.cli.reading import reading
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import Terminal
from webhook.output.formats import emit
from webhook.questions.what_if.answer import what_if
from webhook.questions.what_if.changes import Addition, FleetChange, parse_addition, parse_mode
from webhook.questions.what_if.text import show
from webhook.settings.trial import MAX_SPLIT

MAX_FACTOR = 1 << 20

_EPILOG = """
It reads nodes, pods and PodGroups, and changes nothing. Waiting pods are placed one after another, in the order in which the
scheduler takes them. It judges devices; cpu, memory, pod affinity and what a queue has left keep pods waiting, too.

  kubectl vgpu what-if --add 'gpu-pool x 2'
  kubectl vgpu what-if --drain gpu-a --drain gpu-b
  kubectl vgpu what-if --split 4 --mode gpu-a=mig
  kubectl get pods,podgroups -A -o json > pods.json; kubectl get nodes -o json > nodes.json
  kubectl vgpu what-if --add 'pool=a100 x 2' --fleet nodes.json --pods pods.json

exit codes:
  0  no running pod loses its place
  1  some running pods would not fit again
  2  something could not be read
"""


def _change(
    add: tuple[Addition, ...],
    drain: tuple[str, ...],
    split: int | None,
    factor: int | None,
    modes: tuple[tuple[str, str], ...],
    target: tuple[str, ...],
) -> FleetChange:
    if not (add or drain or split or factor or modes or target):
        raise bad_usage("name a change: --add, --drain, --split, --factor, --mode or --target")
    return FleetChange(add=add, drain=drain, split=split, factor=factor, modes=dict(modes), target=target)


_change_option: Decorator = combined(
    "change",
    _change,
    click.option(
        "--add",
        type=Parsed("shape", parse_addition),
        multiple=True,
        metavar="'SHAPE x N'",
        help="Nodes that come: SHAPE is a name of fleet.declared in the policy, or a node, or a label of alike nodes as "
        "KEY=VALUE, of which they are copies. Labels may follow, as in 'gpu-pool x 2 zone=a'; can be repeated.",
    ),
    click.option("--drain", multiple=True, metavar="NODE", help="A node that goes; can be repeated."),
    click.option(
        "--split", type=click.IntRange(1, MAX_SPLIT), metavar="N", help="Another deviceSplitCount, of all vGPU cards."
    ),
    click.option("--factor", type=click.IntRange(1, MAX_FACTOR), metavar="N", help="Another gpuMemoryFactor."),
    click.option(
        "--mode",
        "modes",
        type=Parsed("mode", parse_mode),
        multiple=True,
        metavar="NODE=MODE",
        help="How a node shares its vGPU cards: hami-core, mig or mps; can be repeated.",
    ),
    target_option,
)


@click.command("what-if", cls=Command, epilog=_EPILOG)
@_change_option
@settings_option("Read the cluster, which is the default without --fleet.", cluster_by_default=True)
@pods_option("What `kubectl get pods,podgroups -A -o json` prints, instead of the cluster; can be repeated.")
@output_option("text", "wide", "json", "yaml", more=" wide lists also what does not change.")
def command(change: FleetChange, settings: SettingsOptions, pod_files: tuple[Path, ...], output: str) -> int:
    """Show what would start, and what would not fit again, if nodes came or went or cards changed."""
    with reading(settings, pod_files) as reader:
        inputs, state = reader.settings()[0], reader.whole()
    answer = what_if(state, inputs, change)
    emit([answer], output, lambda: show(answer, Terminal(wide=output == "wide"), wide=output == "wide"))
    return exit_code(found=answer.loses)
