"""`vgpu-webhook replay`: which recorded decisions change with another policy, device config or fleet."""

import sys

import click

from webhook.audit.decision import Decision
from webhook.audit.filters import Filter
from webhook.cli.inputs import read_settings
from webhook.cli.options import output_option
from webhook.cli.program import Command, Parsed, exit_code
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cli.terminal import Terminal
from webhook.output.formats import emit
from webhook.output.json import to_json
from webhook.questions.decisions.command import LogReading, filter_option, log_files_option
from webhook.questions.replay.answer import Replayer, ReplayVerdict
from webhook.questions.replay.changes import Changes
from webhook.questions.replay.text import change_value, show_changes, sum_value
from webhook.rules.choices import Level
from webhook.rules.registry import VALIDATIONS
from webhook.settings.trial import MAX_SPLIT, try_out

_EPILOG = """
Replaying with the original inputs changes nothing. Inputs that differ from the original are listed. Give the original
files and try something out on top of them, or give others.

  vgpu-webhook replay --fleet fleet.yaml --device-config device-config.yaml --policy policy.yaml audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --what-if split=4 audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --set rules.host-access=deny audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --set 'namespaces.team-*.rules.card-count=warn' audit.jsonl

Another version of Volcano or of its device plugin is a key of the policy, too; `vgpu-webhook what-if --target` shows what it
means for nodes and pods.

  vgpu-webhook replay --cluster --set target.volcano=1.16.0 --set target.devicePlugin=1.13.0 audit.jsonl

exit codes:
  0  nothing changes
  1  some decisions change
  2  bad input or configuration, or no audit line; what could be read is reported all the same
"""


def _split(text: str) -> int:
    """The number of slices of each card in `split=N`."""
    key, _, number = text.partition("=")
    if key != "split" or not number.isdecimal() or not 1 <= int(number) <= MAX_SPLIT:
        raise ValueError(f"{text!r} is not split=N with N from 1 to {MAX_SPLIT}")
    return int(number)


def _keys(_ctx: object, _param: object, incomplete: str) -> list[str]:
    """The levels of rules that begin so, for the Tab key: `rules.ID=`, and then `rules.ID=LEVEL`."""
    rule, equals, _ = incomplete.partition("=")
    keys = [f"{rule}={level}" for level in Level] if equals else [f"rules.{each.id}=" for each in VALIDATIONS]
    return [each for each in keys if each.startswith(incomplete)]


@click.command("replay", cls=Command, epilog=_EPILOG)
@log_files_option
@settings_option("Replay with the nodes, the device config and the policy of the cluster.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=_keys,
    help="Try out a key of the policy: rules.ID=LEVEL, namespaces.GLOB.rules.ID=LEVEL, workloads=deny; can be repeated.",
)
@click.option(
    "--what-if",
    "split",
    type=Parsed("split=n", _split),
    help="Try out a fleet whose vGPU cards are split into N slices each.",
)
@output_option("table", "json", more=" json is one line for each change.")
@filter_option
def command(
    files: tuple[str, ...],
    settings: SettingsOptions,
    changes: tuple[str, ...],
    split: int | None,
    output: str,
    wanted: Filter,
) -> int:
    """Show which recorded decisions change with another policy, device config or fleet."""
    inputs = read_settings(settings)
    base = inputs.snapshot()
    tried = try_out(inputs, changes, split).snapshot() if changes or split is not None else base
    log, found, replayer = LogReading(files, wanted), Changes(), Replayer(base, tried)

    def replay(decision: Decision) -> None:
        replayed = replayer.replay(decision)
        found.add(replayed)
        if output == "json" and replayed.verdict is not ReplayVerdict.SAME:
            print(to_json(change_value(replayed)))

    # A wanted /validate decision may be about a pod whose /mutate decision is not wanted.
    log.each(replay, replayer.note, quiet=output == "json" and sys.stdout.isatty())
    emit([sum_value(found, base.digests)], output, lambda: show_changes(found, base.digests, Terminal()))
    log.report_skipped()
    return exit_code(bad_input=log.complaints > 0, found=found.any)
