"""`vgpu-webhook COMMAND`: finds the command's file and runs it."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from webhook.cli.parser import EXIT_BAD_INPUT, Parser
from webhook.errors import WebhookError
from webhook.mistakes import mistake_in_file
from webhook.texts import visible

COMMANDS = {
    "review": "say what the webhook would do with manifests or recorded reviews, offline",
    "scan": "say what the webhook would say of pods and workloads that are there already",
    "audit": "read the audit log: who asked for what, and what became of it",
    "replay": "say which recorded decisions would be others with another policy, device config or fleet",
    "rules": "list the rules, or explain one",
    "policy": "say what a policy file comes to, or print the default one or its schema",
    "manifests": "print the webhook configurations for a cluster's resource names",
    "doctor": "say what is wrong with the cluster around the webhook, live or from files",
    "certs": "create, renew, repair or show the webhook's certificates in a cluster",
    "serve": "serve the admission webhook",
    "console": "serve pages about the webhook: playground, fleet, decisions, rules, health",
    "demo": "start a standalone webhook and its console, send it three pods, show what happens",
}

EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = Parser(
        prog="vgpu-webhook",
        description="Repairs or refuses pods that ask Volcano for a slice of a GPU.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n" + "\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items()),
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('volcano-vgpu-webhook')}")
    parser.add_argument(
        "command", choices=COMMANDS, metavar="COMMAND", help="one of those below; COMMAND --help says more"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    _prepare_streams()
    try:
        # Imported here, so that `review` does not pay for the server.
        code: int = import_module(f"webhook.cli.{chosen.command}").main(chosen.arguments)
        sys.stdout.flush()
    except WebhookError as error:
        return _fail(chosen.command, str(error))
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        _forget_output()
        return 0
    except OSError as error:
        _forget_output()
        if error.filename is None:
            return _fail(chosen.command, f"cannot write the report: {error.strerror}")
        return _fail(chosen.command, f"{error.filename}: {mistake_in_file(error)}")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _prepare_streams() -> None:
    """Replace closed streams, and let no character that a terminal cannot show end a report."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # as long as the process
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _forget_output() -> None:
    """What is still buffered has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(command: str, reason: str) -> int:
    print(f"vgpu-webhook {command}: {visible(reason)}", file=sys.stderr)
    return EXIT_BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
