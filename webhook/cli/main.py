"""`vgpu-webhook COMMAND`: finds the command's file and runs it."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from webhook.errors import WebhookError

COMMANDS = {
    "review": "say what the webhook would do with manifests or recorded reviews, offline",
    "scan": "say what the webhook would say of pods and workloads that are there already",
    "audit": "read the audit log: who asked for what, and what became of it",
    "replay": "say which recorded decisions would be others with another policy, device config or fleet",
    "rules": "list the rules, or explain one",
    "policy": "say what a policy file comes to, or print the default one or its schema",
    "manifests": "print the webhook configurations for a cluster's resource names",
    "doctor": "say what is wrong with the cluster around the webhook, live or from files",
    "serve": "serve the admission webhook",
    "console": "serve pages about the webhook: playground, fleet, decisions, rules, health",
    "demo": "start a standalone webhook and its console, send it three pods, show what happens",
}

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = argparse.ArgumentParser(
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
    try:
        # Imported here, so that `review` does not pay for the server.
        code: int = import_module(f"webhook.cli.{chosen.command}").main(chosen.arguments)
        sys.stdout.flush()
    except WebhookError as error:
        print(f"vgpu-webhook {chosen.command}: {error}", file=sys.stderr)
        return EXIT_BAD_INPUT
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
