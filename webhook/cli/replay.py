"""`vgpu-webhook replay`: which recorded decisions would be others with another policy, device config or fleet."""

import argparse
import os
import sys
from collections.abc import Sequence

from webhook.audit.changes import Changes
from webhook.audit.decision import Decision
from webhook.audit.inputs import MAX_SPLIT, Inputs
from webhook.audit.replay import Replayer, Verdict
from webhook.cli.audit import EXIT_BAD_INPUT, Log, add_filters, files_of, guarded
from webhook.cli.parser import Parser
from webhook.cli.settings_options import add_files, read_files
from webhook.render.replay import json_change, json_changes, show_changes
from webhook.render.terminal import Terminal

EXIT_SAME = 0
EXIT_CHANGED = 1

_MORE = """\
With the inputs that a decision was made with it comes out as recorded; where it does not, that is said. Give the files
of then and try something out on top of them, or give others.

  vgpu-webhook replay --fleet fleet.yaml --device-config device-config.yaml --policy policy.yaml audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --what-if split=4 audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --set rules.host-access=deny audit.jsonl
  vgpu-webhook replay --fleet fleet.yaml --set 'namespaces.team-*.rules.card-count=warn' audit.jsonl

exit codes:
  0  no decision changes
  1  some do
  2  bad input or configuration; what could be read is reported all the same
"""


def main(argv: Sequence[str]) -> int:
    """Replay the logs and return the exit code."""
    parser = _parser()
    arguments = parser.parse_intermixed_args(argv)
    arguments.files = files_of(parser, arguments.files)
    return guarded("replay", lambda: _replay(arguments))


def _replay(arguments: argparse.Namespace) -> int:
    base, tried = Inputs(read_files(arguments), tuple(arguments.settings), arguments.split).load()
    log, changes, replayer = Log("replay", arguments), Changes(), Replayer(base, tried)

    def take(decision: Decision) -> None:
        replayed = replayer.replay(decision)
        changes.add(replayed)
        if arguments.output == "json" and replayed.verdict is not Verdict.SAME:
            print(json_change(replayed))

    # A judgement that is asked for may be of a pod whose repair is not.
    log.each(take, replayer.note, quiet=arguments.output == "json" and sys.stdout.isatty())
    if arguments.output == "json":
        print(json_changes(changes, base.digests))
    else:
        show_changes(changes, base.digests, Terminal(sys.stdout, os.environ))
    log.tell_skipped()
    if log.complaints:
        return EXIT_BAD_INPUT
    return EXIT_CHANGED if changes.any else EXIT_SAME


def _what_if(text: str) -> int:
    key, _, number = text.partition("=")
    if key != "split" or not number.isdecimal() or not 1 <= int(number) <= MAX_SPLIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not split=N with N from 1 to {MAX_SPLIT}")
    return int(number)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook replay",
        description="Say which recorded decisions would be others with another policy, device config or fleet.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="audit logs, as `vgpu-webhook audit` reads them")
    add_files(parser)
    add(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="try out a key of the policy: rules.ID=LEVEL, namespaces.GLOB.rules.ID=LEVEL, workloads=deny; repeatable",
    )
    add(
        "--what-if",
        dest="split",
        type=_what_if,
        metavar="split=N",
        help="try out a fleet whose vGPU cards are cut into N slices each",
    )
    add("-o", "--output", choices=["table", "json"], default="table", help="table (the default), or lines of json")
    add_filters(parser)
    return parser
